//! Final entries of the packet log: window events, and packets lost in middleboxes.

use anabranch_core::{body::Body, packet::WaitAccount, trace::Fate};

use super::Network;
use crate::record::packet_log::PacketKey;

impl<B: Body> Network<B> {
    /// Logs the window events of all connections since the last call, if packets are logged. They
    /// are available as [`windows`](crate::record::PacketLog::windows) of the log.
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

    /// Logs the packets that entered a middlebox and will not leave it.
    pub(crate) fn note_lost_inside(&mut self) {
        let now = self.fabric.now;
        let Some(log) = self.fabric.probe.log_mut() else {
            return;
        };
        for slot in &self.middleboxes {
            for (connection, direction, index) in slot.middlebox.lost(now) {
                let lost = PacketKey {
                    connection,
                    direction,
                    index,
                    waits: WaitAccount::NONE,
                };
                log.fate(now, slot.element, Fate::Lost, lost);
            }
        }
    }
}
