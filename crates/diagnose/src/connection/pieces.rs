//! The pieces of data that were sent and are not cumulatively acknowledged.

use std::collections::VecDeque;

use crate::retransmission::piece::Piece;

/// Pieces that are kept, at most: more than a window of 16 MiB has segments.
const MOST: usize = 1 << 14;

/// Pieces in order of sequence numbers; between them may be holes.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    pieces: VecDeque<Piece>,
}

impl Pieces {
    /// The first piece that ends behind `at`.
    fn behind(&self, at: i64) -> usize {
        self.pieces.partition_point(|piece| piece.end <= at)
    }

    pub(crate) fn at(&self, at: i64) -> Option<&Piece> {
        let piece = self.pieces.get(self.behind(at))?;
        (piece.start <= at).then_some(piece)
    }

    /// Adds a piece where there is none; returns the lowest if there are too many.
    pub(crate) fn insert(&mut self, piece: Piece) -> Option<Piece> {
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
            return self.pieces.pop_front();
        }
        None
    }

    fn split_at(&mut self, at: i64) {
        let index = self.behind(at);
        if let Some(piece) = self.pieces.get_mut(index)
            && piece.start < at
        {
            let behind = piece.split(at);
            self.pieces.insert(index + 1, behind);
        }
    }

    /// The pieces within a range, cut at its ends.
    pub(crate) fn within(&mut self, start: i64, end: i64) -> impl Iterator<Item = &mut Piece> {
        self.split_at(start);
        self.split_at(end);
        let first = self.behind(start);
        self.pieces
            .range_mut(first..)
            .take_while(move |piece| piece.start < end)
    }

    /// The same without cutting: all that overlap.
    pub(crate) fn touching(&mut self, start: i64, end: i64) -> impl Iterator<Item = &mut Piece> {
        let first = self.behind(start);
        self.pieces
            .range_mut(first..)
            .take_while(move |piece| piece.start < end)
    }

    /// Takes out the lowest piece if all of it lies below `una`; a piece that reaches beyond is cut.
    pub(crate) fn take_below(&mut self, una: i64) -> Option<Piece> {
        let front = self.pieces.front_mut()?;
        if front.start >= una {
            return None;
        }
        if front.end > una {
            let behind = front.split(una);
            self.pieces.insert(1, behind);
        }
        self.pieces.pop_front()
    }

    /// Takes out the lowest piece.
    pub(crate) fn take_lowest(&mut self) -> Option<Piece> {
        self.pieces.pop_front()
    }
}
