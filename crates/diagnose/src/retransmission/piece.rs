//! A piece: data that was always sent together, with its copies and the first evidence of its
//! arrival.

use super::recognition::{Filler, Gap, sent_before};
use crate::time::Nanos;

/// Maximum number of stored retransmissions of a piece. Hosts abort sooner (Linux after 15).
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
    /// The retransmission of which it is a part.
    pub(crate) retransmission: Option<u64>,
}

/// The first evidence that a piece has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cover {
    pub(crate) time: Nanos,
    /// `TSecr` of a cumulative acknowledgment, if it shows which copy arrived.
    pub(crate) echo: Option<u32>,
    /// The acknowledgment also covers data after the piece that was unacknowledged until then,
    /// although it was sent before the last copy.
    pub(crate) reaches_beyond: bool,
    /// Without SACK, one acknowledgment covers the piece, the gap before it, and more segments than
    /// a receiver delays an acknowledgment for: they had arrived above the gap.
    pub(crate) is_at_once: bool,
}

/// Octets that were always sent together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Piece {
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// The original, if it was captured.
    pub(crate) first: Option<Copy>,
    /// Retransmissions, and an original that passed after one of them.
    pub(crate) again: Vec<Copy>,
    /// The gap that the retransmission filled, if the original had not been captured.
    pub(crate) gap: Option<Box<Gap>>,
    /// The original passed after a retransmission: it was not lost.
    pub(crate) is_original_late: bool,
    pub(crate) cover: Option<Cover>,
    /// The number of D-SACK blocks that covered it.
    pub(crate) duplicates: u32,
    /// Data sent after the original had arrived when the piece was first retransmitted.
    pub(crate) overtaken: bool,
    /// Whether a SACK option would have included the piece if it had arrived.
    pub(crate) room: Room,
}

/// Room in the SACK options that cover later data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Room {
    #[default]
    Enough,
    /// An option was full.
    Full,
    /// An option was full of blocks that no earlier option contained.
    Exceeded,
}

impl Piece {
    /// The latest copy.
    pub(crate) fn latest(&self) -> Option<&Copy> {
        self.again.last().or(self.first.as_ref())
    }

    /// The latest copy, excluding an original that passed late.
    pub(crate) fn latest_sent(&self) -> Option<&Copy> {
        let again = self.again.iter().rev();
        let mut sent = again.filter(|copy| copy.retransmission.is_some());
        sent.next().or(self.first.as_ref())
    }

    /// Whether a copy is the missing original: it was sent before the packet after the gap.
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

    /// Adds the original, which passed after a retransmission.
    pub(crate) fn add_late_original(&mut self, copy: Copy) {
        self.again.push(copy);
        self.is_original_late = true;
    }

    /// Splits the piece at `at`. Returns the second part.
    pub(crate) fn split(&mut self, at: i64) -> Self {
        let behind = Self {
            start: at,
            ..self.clone()
        };
        self.end = at;
        behind
    }
}
