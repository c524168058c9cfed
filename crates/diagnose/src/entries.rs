//! Entries of the report that are recorded as they occur.

use serde::Serialize;

use crate::limit::Limit;

/// The role of an end in one direction of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It sends the data.
    Sender,
    /// It receives the data.
    Receiver,
}

/// A pause.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stall {
    /// Time at which the last segment before it passed.
    pub start_s: f64,
    /// Its duration.
    pub duration_s: f64,
    /// Its cause.
    pub cause: Limit,
    /// The end whose application it waited for, if any: `sender` or `receiver`.
    pub side: Option<Role>,
    /// The frames before and after it.
    pub packets: Vec<u64>,
}

/// Segments with data, by whether they ended within the receiver's window taken without its scale,
/// or beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct UnscaledWindow {
    /// Segments within it whose first copy arrived.
    pub arrived_within: u64,
    /// Segments with a copy beyond it that arrived.
    pub arrived_beyond: u64,
    /// Segments within it whose first copy was lost.
    pub lost_within: u64,
    /// Segments beyond it whose first copy was lost.
    pub lost_beyond: u64,
}

/// Round-trip times, of TCP as the sender measures them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct RoundTrips {
    /// Minimum.
    pub min: Option<f64>,
    /// Median.
    pub median: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
}

/// Counts of retransmissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// All.
    pub all: u64,
    /// Part of the data had not arrived.
    pub needed: u64,
    /// All data had arrived.
    pub spurious: u64,
    /// Undecided.
    pub undecided: u64,
    /// Not listed.
    pub not_listed: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, needed: Option<bool>) {
        self.all += 1;
        match needed {
            Some(true) => self.needed += 1,
            Some(false) => self.spurious += 1,
            None => self.undecided += 1,
        }
    }
}

/// Congestion experienced: a value of the ECN field.
const CE: u8 = 3;

/// ECN of the data of an end (RFC 3168), and its echoes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Ecn {
    /// Both ends agreed on ECN in their SYNs; AccECN does not count.
    pub negotiated: bool,
    /// Packets with data.
    pub data_packets: u64,
    /// Data packets that are ECN-capable: ECT or CE.
    pub capable_packets: u64,
    /// Data packets with a congestion mark: CE.
    pub marked_packets: u64,
    /// Packets of the receiver that report a mark: ECE.
    pub echoes: u64,
}

impl Ecn {
    /// Counts a packet with data, by its ECN field.
    pub(crate) fn see(&mut self, field: u8) {
        self.data_packets += 1;
        self.capable_packets += u64::from(field != 0);
        self.marked_packets += u64::from(field == CE);
    }
}
