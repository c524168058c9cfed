//! Counters of a direction.

use crate::{entries::Ecn, time::Nanos};

/// Counts of packets and octets.
#[derive(Debug, Default, Clone)]
pub(crate) struct Counts {
    pub(crate) packets: u64,
    pub(crate) data_packets: u64,
    /// Octets of payload, retransmissions included.
    pub(crate) sent: u64,
    pub(crate) reordered: u64,
    /// Originals that arrived after later segments, reordered downstream of the capture point.
    pub(crate) late: u64,
    /// Copies of a packet made by the network or the capture.
    pub(crate) duplicated: u64,
    /// Gaps of the capture: data that was acknowledged but not captured.
    pub(crate) capture_gaps: u64,
    pub(crate) unseen_octets: u64,
    /// Octets of payload beyond the last captured window: acknowledgments are missing.
    pub(crate) beyond_window: u64,
    pub(crate) zero_windows: u64,
    pub(crate) implausible: u64,
    pub(crate) ecn: Ecn,
    pub(crate) first_data: Option<Nanos>,
    pub(crate) last_data: Option<Nanos>,
}

impl Counts {
    /// Counts a copy of a packet.
    pub(crate) fn see_copy(&mut self) {
        self.packets += 1;
        self.duplicated += 1;
    }

    /// Counts a packet of another connection.
    pub(crate) fn see_foreign(&mut self) {
        self.packets += 1;
        self.implausible += 1;
    }

    /// Counts data of the application; a keepalive has none.
    pub(crate) fn see_data(&mut self, time: Nanos) {
        self.first_data.get_or_insert(time);
        self.last_data = Some(time);
    }
}
