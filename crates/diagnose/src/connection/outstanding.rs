//! The pieces of data that were sent and are not cumulatively acknowledged.

use std::collections::VecDeque;

use crate::retransmission::piece::Piece;

/// Maximum number of pieces that are stored: more segments than a window of 16 MiB has.
const MOST: usize = 1 << 14;

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
        if self.pieces.len() > MOST {
            return self.take_lowest();
        }
        None
    }

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
