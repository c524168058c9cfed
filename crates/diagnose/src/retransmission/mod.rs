//! Retransmissions: their copies and recognition ([`piece`]), need ([`need`]) and trigger.
//!
//! A segment is a retransmission if any of its octets had been sent before, even if the original
//! was not captured.

pub(crate) mod ledger;
pub(crate) mod need;
pub(crate) mod piece;

use serde::Serialize;

use crate::{
    segment::{LostBy, Quic, Segment},
    time::seconds,
};

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

/// The trigger of a retransmission, in the order of results: by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// Three duplicate acknowledgments, or a later partial acknowledgment (RFC 5681, RFC 6582).
    FastRetransmit,
    /// Retransmission of later data after a timeout.
    GoBackN,
    /// A keepalive with an old octet (RFC 1122 §4.2.3.6).
    Keepalive,
    /// Elapsed time, by RACK or early retransmit (RFC 8985, RFC 5827).
    Rack,
    /// The retransmission timer (RFC 6298).
    Rto,
    /// SACKed data above it during a recovery (RFC 6675).
    Sack,
    /// A tail loss probe (RFC 8985 §7).
    Tlp,
    /// Unknown.
    Unknown,
    /// A probe of a closed window (RFC 1122 §4.2.2.17).
    WindowProbe,
}

impl Trigger {
    /// The trigger by the record of a QUIC sender. QUIC has one timer, and it sends probes.
    pub(crate) const fn recorded(self, quic: Quic) -> Self {
        match (quic.lost, self) {
            (Some(LostBy::Time), _) => Self::Rack,
            (Some(LostBy::Reordering), Self::FastRetransmit | Self::Sack) => self,
            (Some(LostBy::Reordering), _) => Self::FastRetransmit,
            (Some(LostBy::Probe), _) | (None, Self::Rto | Self::GoBackN) => Self::Tlp,
            (None, _) => self,
        }
    }
}

/// The sender's recovery state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Phase {
    #[default]
    Open,
    /// Fast recovery, until this octet is acknowledged.
    Recovery(i64),
    /// After a timeout, until this octet is acknowledged.
    Loss(i64),
}

impl Phase {
    /// The phase after everything below `una` is acknowledged.
    pub(crate) fn at(self, una: i64) -> Self {
        match self {
            Self::Recovery(high) | Self::Loss(high) if una >= high => Self::Open,
            same => same,
        }
    }
}
