//! Retransmissions: their recognition ([`recognition`]), need ([`need`]) and trigger ([`trigger`]).
//!
//! A segment is a retransmission if any of its octets had been sent before, even if the original
//! was not captured.

pub(crate) mod ledger;
pub(crate) mod need;
pub(crate) mod piece;
pub(crate) mod trigger;

pub use trigger::Trigger;

use serde::Serialize;

use crate::{segment::Segment, time::seconds};

/// The side of the capture point on which data was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossSide {
    /// Before the capture point: no earlier copy was captured.
    Before,
    /// After the capture point.
    After,
    /// No data was lost, or it cannot be decided.
    Unknown,
}

/// The evidence for a verdict on need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// An acknowledgment of the data had passed before.
    AcknowledgedBefore,
    /// The acknowledgment came sooner than the retransmission's can.
    AcknowledgedTooSoon,
    /// The acknowledgment echoes the timestamp of one copy (RFC 3522).
    TimestampEcho,
    /// The acknowledgment names the packet of one copy (QUIC).
    PacketNumber,
    /// A duplicate SACK (RFC 2883).
    DuplicateSack,
    /// The acknowledgment covers later data that had not arrived above a gap (RFC 5682).
    AcknowledgmentReachesBeyond,
    /// Later data was acknowledged around a gap, and the acknowledgment came a round trip after the
    /// retransmission.
    Gap,
    /// The acknowledgment came a round trip after the retransmission.
    RoundTrip,
    /// Later acknowledgments leave the data out.
    LeftOut,
    /// No acknowledgment in the capture covers the data.
    NeverAcknowledged,
    /// The time between data and acknowledgment is unknown.
    NoRoundTripKnown,
}

/// A retransmission with its verdicts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Retransmission {
    /// The frame's number in the file, from 1.
    pub packet: u64,
    /// Time as in the file.
    pub time_s: f64,
    /// Its first octet, relative to the first octet of data.
    pub seq: i64,
    /// Octets of payload.
    pub bytes: u32,
    /// Whether part of its data was in no earlier copy that arrived; `None` if undecided.
    pub needed: Option<bool>,
    /// The evidence for `needed`.
    pub evidence: Evidence,
    /// Its trigger.
    pub trigger: Trigger,
    /// The queue of the path was about full when it was sent, or when its original was.
    pub queue_full: bool,
    /// The side of the capture point on which the data was lost.
    pub lost: LossSide,
    /// The frame of the previous copy, if it was captured.
    pub earlier: Option<u64>,
}

impl Retransmission {
    /// Creates a retransmission without a verdict.
    pub(crate) fn new(segment: &Segment, seq: i64, trigger: Trigger) -> Self {
        Self {
            packet: segment.number,
            time_s: seconds(segment.time),
            seq,
            bytes: segment.payload,
            needed: None,
            evidence: Evidence::NeverAcknowledged,
            trigger,
            queue_full: false,
            lost: LossSide::Unknown,
            earlier: None,
        }
    }
}
