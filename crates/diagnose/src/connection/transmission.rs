//! A segment that takes sequence numbers, and its relation to earlier segments.

use super::acknowledgments::Late;
use crate::{
    retransmission::{ledger::Parts, piece::Copy},
    segment::Segment,
    time::Nanos,
};

/// A segment that takes a range of sequence numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transmission<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) start: i64,
    pub(crate) end: i64,
}

impl Transmission<'_> {
    pub(super) fn copy(&self) -> Copy {
        copy_of(self.segment)
    }
}

/// The copy record of a segment.
pub(super) fn copy_of(segment: &Segment) -> Copy {
    Copy {
        time: segment.time,
        number: segment.number,
        stamp: segment.stamps.map(|stamps| stamps.0),
        id: segment.id,
        ack: segment.ack,
        retransmission: None,
    }
}

/// The relation of a segment to earlier ones.
#[derive(Debug)]
pub(crate) enum Entry {
    /// No octet of it had been sent before.
    New,
    /// Original data that passed after later data.
    Late(Late),
    /// Part of it had been sent before.
    Retransmission(Repeated),
}

/// The data that a retransmission repeats.
#[derive(Debug)]
pub(crate) struct Repeated {
    /// The range that had been sent before and is not acknowledged.
    pub(super) old: (i64, i64),
    /// The parts of it that were not captured.
    pub(super) holes: Vec<(i64, i64)>,
    /// One past the highest octet sent before.
    pub(super) known: i64,
    pub(crate) is_acknowledged: bool,
    /// It ends a tail of which no copy was captured.
    pub(crate) ends_tail: bool,
}

impl Repeated {
    /// Whether part of it is in no earlier captured copy.
    pub(crate) fn is_unseen(&self) -> bool {
        !self.holes.is_empty()
    }
}

/// An original that is retransmitted for the first time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Suspect {
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// When the original passed, if it was captured.
    pub(crate) first: Option<Nanos>,
    /// When the packet after its gap passed.
    pub(crate) gap: Option<Nanos>,
}

/// The position of a retransmission on the scoreboard.
#[derive(Debug, Default)]
pub(crate) struct Marked {
    pub(crate) parts: Parts,
    /// The frame of the previous copy.
    pub(crate) earlier: Option<u64>,
    pub(crate) suspects: Vec<Suspect>,
}

/// The scoreboard's state of a segment's data before the segment is entered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct History {
    pub(crate) next: i64,
    /// When the previous copy passed, and whether it was a retransmission.
    pub(crate) latest: Option<Nanos>,
    pub(crate) is_repeated: bool,
    /// Octets SACKed above it.
    pub(crate) sacked_above: i64,
    pub(crate) has_sack: bool,
}
