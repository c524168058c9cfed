//! Data that was always sent together: its copies, and the first sign that it arrived.

use super::recognition::{Filler, Gap, sent_before};
use crate::time::Nanos;

/// Retransmissions of a piece that are kept, at most: a host gives up sooner (Linux after 15).
const MOST_COPIES: usize = 64;

/// One transmission of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(crate) time: Nanos,
    pub(crate) number: u64,
    /// `TSval`.
    pub(crate) stamp: Option<u32>,
    pub(crate) id: Option<u16>,
    /// Its acknowledgment of the other direction's data.
    pub(crate) ack: Option<u32>,
    /// Which retransmission it is a part of.
    pub(crate) retransmission: Option<u64>,
}

/// The first sign that a piece has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cover {
    pub(crate) time: Nanos,
    /// `TSecr` of a cumulative acknowledgment, where it tells which copy arrived.
    pub(crate) echo: Option<u32>,
    /// The acknowledgment also covers data behind the piece that nothing had acknowledged before, although it was sent
    /// before the last copy.
    pub(crate) reaches_beyond: bool,
    /// Without SACK, one acknowledgment covers the piece with the gap before it and more segments than a receiver waits
    /// for: they had arrived beside the gap.
    pub(crate) is_at_once: bool,
}

/// Octets that were always sent together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// The original, if the capture has it.
    pub(crate) first: Option<Copy>,
    /// Retransmissions, and an original that passed behind one of them.
    pub(crate) again: Vec<Copy>,
    /// The gap that the retransmission filled, if the capture had no original then.
    pub(crate) gap: Option<Box<Gap>>,
    /// The original passed behind a retransmission: it was not lost.
    pub(crate) is_original_late: bool,
    pub(crate) cover: Option<Cover>,
    /// Duplicate SACKs that named it.
    pub(crate) duplicates: u32,
    /// Data that was sent after the original had arrived when it was retransmitted first.
    pub(crate) overtaken: bool,
    /// Whether a SACK option would have named it, had it arrived.
    pub(crate) room: Room,
}

/// Room for data in the SACK options that name later data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Room {
    #[default]
    Enough,
    /// An option was full.
    Full,
    /// An option was full of blocks that no option before had.
    Exceeded,
}

impl Piece {
    /// The latest transmission.
    pub(crate) fn latest(&self) -> Option<&Copy> {
        self.again.last().or(self.first.as_ref())
    }

    /// The latest transmission but an original that passed late.
    pub(crate) fn latest_sent(&self) -> Option<&Copy> {
        let again = self.again.iter().rev();
        let mut sent = again.filter(|copy| copy.retransmission.is_some());
        sent.next().or(self.first.as_ref())
    }

    /// Whether a copy is the original that the capture lacks: the sender made it before the packet behind the gap.
    pub(crate) fn is_original(&self, filler: &Filler) -> bool {
        let is_missing = self.first.is_none() && !self.is_original_late && !self.again.is_empty();
        let gap = self.gap.as_ref().filter(|_| is_missing);
        gap.is_some_and(|gap| sent_before(filler, gap) == Some(true))
    }

    /// Adds a retransmission, unless there are too many.
    pub(crate) fn add(&mut self, copy: Copy) -> bool {
        let has_room = self.again.len() < MOST_COPIES;
        if has_room {
            self.again.push(copy);
        }
        has_room
    }

    /// Its original passed behind a retransmission.
    pub(crate) fn add_late_original(&mut self, copy: Copy) {
        self.again.push(copy);
        self.is_original_late = true;
    }

    /// Cuts it; returns what lies behind `at`.
    pub(crate) fn split(&mut self, at: i64) -> Self {
        let behind = Self {
            start: at,
            ..self.clone()
        };
        self.end = at;
        behind
    }
}
