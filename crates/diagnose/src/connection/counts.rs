//! What a direction counts.

use crate::time::Nanos;

/// Packets and octets, by what they show.
#[derive(Debug, Default, Clone)]
pub(crate) struct Counts {
    pub(crate) packets: u64,
    pub(crate) data_packets: u64,
    /// Octets of payload, retransmissions included.
    pub(crate) sent: u64,
    pub(crate) reordered: u64,
    /// Originals that arrived after later segments, behind the capture point.
    pub(crate) late: u64,
    /// Copies of a packet that the network or the capture made.
    pub(crate) duplicated: u64,
    /// Holes in the capture: data that was acknowledged and never seen.
    pub(crate) capture_gaps: u64,
    pub(crate) unseen_octets: u64,
    /// Octets of payload beyond the last window that the capture has: it lacks acknowledgments.
    pub(crate) beyond_window: u64,
    pub(crate) zero_windows: u64,
    pub(crate) implausible: u64,
    pub(crate) first_data: Option<Nanos>,
    pub(crate) last_data: Option<Nanos>,
}

impl Counts {
    /// A copy of a packet.
    pub(crate) fn see_copy(&mut self) {
        self.packets += 1;
        self.duplicated += 1;
    }

    /// A packet of another connection.
    pub(crate) fn see_foreign(&mut self) {
        self.packets += 1;
        self.implausible += 1;
    }

    /// The application's data passes; a keepalive has none.
    pub(crate) fn see_data(&mut self, time: Nanos) {
        self.first_data.get_or_insert(time);
        self.last_data = Some(time);
    }
}
