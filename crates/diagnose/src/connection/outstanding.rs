//! Data that is not acknowledged, or whose verdict waits, and gaps in the captured data.

use std::collections::VecDeque;

use crate::{
    retransmission::piece::{Copy, Gap, Piece},
    time::{MILLISECOND, Nanos},
};

/// Maximum number of pieces that are stored: more segments than a window of 16 MiB has.
const MOST_PIECES: usize = 1 << 14;

/// Maximum number of boxes that wait for new pieces.
const MOST_SPARE: usize = 8;

/// Maximum number of pieces of one segment that remain separate. A retransmission joins more than
/// these, so that the cost per segment is bounded.
pub(crate) const MOST_TOUCHED: usize = 64;

/// Pieces in order of sequence numbers, perhaps with holes between them.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// Boxed, so that an insertion in the middle moves little memory.
    pieces: VecDeque<Box<Piece>>,
    /// Boxes of acknowledged pieces, for new ones.
    #[expect(clippy::vec_box, reason = "the boxes themselves are reused")]
    spare: Vec<Box<Piece>>,
}

impl Pieces {
    /// The first piece that ends after `at`.
    fn behind(&self, at: i64) -> usize {
        self.pieces.partition_point(|piece| piece.end <= at)
    }

    pub(crate) fn at(&self, at: i64) -> Option<&Piece> {
        let piece = self.pieces.get(self.behind(at))?;
        (piece.start <= at).then_some(piece.as_ref())
    }

    /// Adds a piece where there is none. Returns the lowest piece if there are too many.
    pub(crate) fn insert(&mut self, piece: Piece) -> Option<Piece> {
        let piece = if let Some(mut spare) = self.spare.pop() {
            *spare = piece;
            spare
        } else {
            Box::new(piece)
        };
        if self
            .pieces
            .back()
            .is_none_or(|last| last.end <= piece.start)
        {
            self.pieces.push_back(piece);
        } else {
            let at = self.behind(piece.start);
            self.pieces.insert(at, piece);
        }
        if self.pieces.len() > MOST_PIECES {
            return self.take_lowest();
        }
        None
    }

    #[cold]
    fn split_at(&mut self, at: i64) {
        let index = self.behind(at);
        if let Some(piece) = self.pieces.get_mut(index)
            && piece.start < at
        {
            let behind = piece.split(at);
            self.pieces.insert(index + 1, Box::new(behind));
        }
    }

    /// The pieces within a range, split at its ends.
    pub(crate) fn within(&mut self, start: i64, end: i64) -> impl Iterator<Item = &mut Piece> {
        self.split_at(start);
        self.split_at(end);
        let first = self.behind(start);
        self.pieces
            .range_mut(first..)
            .map(Box::as_mut)
            .take_while(move |piece| piece.start < end)
    }

    /// All pieces that overlap a range, without splitting.
    pub(crate) fn touching(&mut self, start: i64, end: i64) -> impl Iterator<Item = &mut Piece> {
        let first = self.behind(start);
        self.pieces
            .range_mut(first..)
            .map(Box::as_mut)
            .take_while(move |piece| piece.start < end)
    }

    /// Joins the pieces within a range, and the holes between them, if there are too many. Returns
    /// the original pieces.
    ///
    /// The time of the joined piece is that of the last of them.
    #[cold]
    pub(crate) fn join(&mut self, start: i64, end: i64) -> Vec<Piece> {
        let first = self.behind(start);
        let is_many = self
            .pieces
            .get(first + MOST_TOUCHED)
            .is_some_and(|piece| piece.start < end);
        if !is_many {
            return Vec::new();
        }
        self.split_at(start);
        self.split_at(end);
        let first = self.behind(start);
        let last = self.pieces.partition_point(|piece| piece.start < end);
        let joined: Vec<Piece> = self.pieces.drain(first..last).map(|piece| *piece).collect();
        let originals = joined.iter().filter_map(|piece| piece.first);
        let all_covered = joined.iter().all(|piece| piece.cover.is_some());
        let piece = Piece {
            start,
            end,
            first: originals.max_by_key(|copy| copy.time),
            cover: joined
                .last()
                .and_then(|piece| piece.cover)
                .filter(|_| all_covered),
            overtaken: joined.iter().any(|piece| piece.overtaken),
            room: joined
                .iter()
                .map(|piece| piece.room)
                .max()
                .unwrap_or_default(),
            ..Piece::default()
        };
        self.pieces.insert(first, Box::new(piece));
        joined
    }

    /// Removes and returns the lowest piece below `una`. A piece that reaches beyond is split.
    pub(crate) fn take_below(&mut self, una: i64) -> Option<Box<Piece>> {
        let front = self.pieces.front_mut()?;
        if front.start >= una {
            return None;
        }
        if front.end > una {
            let behind = front.split(una);
            self.pieces.insert(1, Box::new(behind));
        }
        self.pieces.pop_front()
    }

    /// Keeps the box of a piece that has been acknowledged.
    pub(crate) fn reuse(&mut self, piece: Box<Piece>) {
        if self.spare.len() < MOST_SPARE {
            self.spare.push(piece);
        }
    }

    /// Removes and returns the lowest piece.
    pub(crate) fn take_lowest(&mut self) -> Option<Piece> {
        self.pieces.pop_front().map(|piece| *piece)
    }
}

/// Maximum number of pieces that wait.
const MOST_WAITING: usize = 4096;
/// Minimum waiting time for a D-SACK.
const LEAST_WAIT: Nanos = 500 * MILLISECOND;

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
        if self.waiting.len() >= MOST_WAITING
            && let Some(oldest) = self.waiting.front_mut()
        {
            oldest.until = Nanos::MIN;
        }
        let last = piece.latest().map_or(time, |copy| copy.time);
        self.waiting.push_back(Waiting {
            until: time.max(last) + LEAST_WAIT.max(2 * round_trip),
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

/// Maximum number of stored gaps.
const MOST_GAPS: usize = 256;

/// The gaps in order of their data.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    open: VecDeque<Gap>,
}

impl Gaps {
    /// Records a packet that starts at `end`, beyond `start`; `is_bare` if it has no data.
    #[cold]
    pub(crate) fn note(&mut self, start: i64, end: i64, copy: &Copy, is_bare: bool) {
        if self.open.len() >= MOST_GAPS {
            self.open.pop_front();
        }
        self.open.push_back(Gap {
            start,
            end,
            packet: *copy,
            is_bare,
        });
    }

    pub(crate) fn at(&self, at: i64) -> Option<&Gap> {
        let mut gaps = self.open.iter().rev();
        gaps.find(|gap| gap.start <= at && at < gap.end)
    }

    /// Discards the gaps below a cumulative acknowledgment.
    pub(crate) fn acknowledge(&mut self, una: i64) {
        while self.open.front().is_some_and(|gap| gap.end <= una) {
            self.open.pop_front();
        }
    }
}
