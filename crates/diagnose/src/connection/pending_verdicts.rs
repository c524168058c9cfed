//! Retransmitted pieces that are acknowledged. Their verdict waits until no D-SACK can arrive any
//! more.

use std::collections::VecDeque;

use super::outstanding::MOST_TOUCHED;
use crate::{
    retransmission::piece::Piece,
    time::{MILLISECOND, Nanos},
};

/// Maximum number of pieces that wait.
const MOST: usize = 4096;
/// Minimum waiting time for a D-SACK.
const LEAST: Nanos = 500 * MILLISECOND;

/// A piece, and the end of its wait.
#[derive(Debug)]
struct Waiting {
    piece: Piece,
    until: Nanos,
}

/// The pieces in the order of their acknowledgments, which is the order of their data.
#[derive(Debug, Default)]
pub(crate) struct Settling {
    waiting: VecDeque<Waiting>,
    /// Pieces that do not wait.
    given_up: VecDeque<Piece>,
}

impl Settling {
    /// Adds a piece that was acknowledged at `time`. A D-SACK takes `round_trip`.
    pub(crate) fn push(&mut self, piece: Piece, time: Nanos, round_trip: Nanos) {
        if self.waiting.len() >= MOST
            && let Some(oldest) = self.waiting.front_mut()
        {
            oldest.until = Nanos::MIN;
        }
        let last = piece.latest().map_or(time, |copy| copy.time);
        self.waiting.push_back(Waiting {
            until: time.max(last) + LEAST.max(2 * round_trip),
            piece,
        });
    }

    /// Adds an unacknowledged piece that is no longer tracked. It does not wait.
    pub(crate) fn give_up(&mut self, piece: Piece) {
        self.given_up.push_back(piece);
    }

    /// Records that the receiver reported a range as duplicate.
    pub(crate) fn duplicate(&mut self, start: i64, end: i64) {
        for piece in self.touching(start, end).take(MOST_TOUCHED) {
            piece.duplicates += 1;
        }
    }

    /// The pieces that overlap a range.
    pub(crate) fn touching(&mut self, start: i64, end: i64) -> impl Iterator<Item = &mut Piece> {
        let first = self.waiting.partition_point(|one| one.piece.end <= start);
        let pieces = self.waiting.range_mut(first..).map(|one| &mut one.piece);
        pieces.take_while(move |piece| piece.start < end)
    }

    /// Removes and returns the next piece whose wait is over.
    pub(crate) fn take_due(&mut self, now: Nanos) -> Option<Piece> {
        if let Some(piece) = self.given_up.pop_front() {
            return Some(piece);
        }
        let oldest = self.waiting.front()?;
        if oldest.until > now {
            return None;
        }
        self.waiting.pop_front().map(|one| one.piece)
    }
}
