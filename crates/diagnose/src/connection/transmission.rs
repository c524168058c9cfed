//! A segment that takes sequence numbers, and what it is beside those before it.

use super::acknowledged::Late;
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
    pub(crate) fn time(&self) -> Nanos {
        self.segment.time
    }

    pub(super) fn copy(&self) -> Copy {
        copy_of(self.segment)
    }
}

/// A transmission of a segment.
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

/// What a segment is, beside those before it.
#[derive(Debug)]
pub(crate) enum Entry {
    /// No octet of it had been sent before.
    New,
    /// Originals that passed behind later data.
    Late(Late),
    /// A part of it had been sent before.
    Retransmission(Repeated),
}

/// What a retransmission repeats.
#[derive(Debug)]
pub(crate) struct Repeated {
    /// What had been sent before and is not acknowledged.
    pub(super) old: (i64, i64),
    /// The parts of it that the capture has not seen.
    pub(super) holes: Vec<(i64, i64)>,
    /// From here on nothing had been sent before.
    pub(super) known: i64,
    pub(crate) is_acknowledged: bool,
    /// It ends a tail of which the capture has nothing.
    pub(crate) ends_tail: bool,
}

impl Repeated {
    /// A part of it is in no earlier copy of the capture.
    pub(crate) fn is_unseen(&self) -> bool {
        !self.holes.is_empty()
    }
}

/// An original that is retransmitted for the first time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Suspect {
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// When the original passed, if the capture has it.
    pub(crate) first: Option<Nanos>,
    /// When the packet behind the gap passed that it left.
    pub(crate) gap: Option<Nanos>,
}

/// A retransmission's place on the scoreboard.
#[derive(Debug, Default)]
pub(crate) struct Marked {
    pub(crate) parts: Parts,
    /// The frame of the copy before.
    pub(crate) earlier: Option<u64>,
    pub(crate) suspects: Vec<Suspect>,
}

/// What the scoreboard has of a segment's data before the segment is entered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct History {
    pub(crate) next: i64,
    /// When the copy before passed, and whether that was a retransmission.
    pub(crate) latest: Option<Nanos>,
    pub(crate) is_repeated: bool,
    /// Octets SACKed above.
    pub(crate) sacked_above: i64,
    pub(crate) has_sack: bool,
}
