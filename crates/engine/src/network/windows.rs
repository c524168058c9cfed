//! What happened to the windows, into the packet log.

use anabranch_core::body::Body;

use super::Network;

impl<B: Body> Network<B> {
    /// Notes what has happened to all windows since it was last noted, if packets are logged. The
    /// log's [`windows`](crate::record::PacketLog::windows) has it.
    pub fn note_windows(&mut self) {
        for place in 0..self.connections.len() {
            self.note_window(place);
        }
        if let Some(log) = self.fabric.probe.log_mut() {
            log.sort_windows();
        }
    }

    /// The same for one connection.
    pub(super) fn note_window(&mut self, place: usize) {
        let Some(log) = self.fabric.probe.log_mut() else {
            return;
        };
        if let Some((endpoint, _)) = self.agents[place * 2].end.tcp_mut() {
            log.window_events(self.connections[place].flow, &endpoint.take_window_log());
        }
    }
}
