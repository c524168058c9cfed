//! What is noted in the packet log when the run is over: the windows, and what middleboxes lost.

use anabranch_core::{body::Body, packet::WaitAccount, trace::Fate};

use super::Network;
use crate::record::packet_log::PacketKey;

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

    /// Notes the packets that went into a middlebox and will not come out.
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
