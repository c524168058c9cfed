//! Data that was always sent together: its copies, and the first sign that it arrived.

use crate::time::Nanos;

/// One transmission of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(crate) time: Nanos,
    pub(crate) number: u64,
    /// `TSval`.
    pub(crate) stamp: Option<u32>,
    pub(crate) id: Option<u16>,
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
    /// Retransmissions.
    pub(crate) again: Vec<Copy>,
    pub(crate) cover: Option<Cover>,
    /// Duplicate SACKs that named it.
    pub(crate) duplicates: u32,
    /// Data that was sent after the original had arrived when it was retransmitted first.
    pub(crate) overtaken: bool,
}

impl Piece {
    /// The latest transmission.
    pub(crate) fn latest(&self) -> Option<&Copy> {
        self.again.last().or(self.first.as_ref())
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
