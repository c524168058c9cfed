//! The part of a run that is measured.

use anabranch_core::units::{Duration, Instant};

/// The part of a run that is measured: after `start`, up to and with `end`. A run's first instant
/// belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    start: Instant,
    end: Instant,
    /// The first instant that counts, and the picoseconds from it to the last: one comparison tells
    /// whether an instant lies between. An empty window's lies past all that is asked about.
    first: u64,
    span: u64,
}

impl Window {
    /// From `start` to `end`.
    #[must_use]
    pub const fn new(start: Instant, end: Instant) -> Self {
        let first = match start.as_picos() {
            0 => 0,
            later => later + 1,
        };
        let (first, span) = match end.as_picos().checked_sub(first) {
            Some(span) => (first, span),
            None => (u64::MAX, 0),
        };
        Self {
            start,
            end,
            first,
            span,
        }
    }
    /// Whether it is measured.
    #[must_use]
    #[inline]
    pub fn contains(self, at: Instant) -> bool {
        at.as_picos().wrapping_sub(self.first) <= self.span
    }
    /// The measured part of a span.
    #[must_use]
    #[inline]
    pub fn overlap(self, from: Instant, to: Instant) -> Duration {
        to.min(self.end).saturating_since(from.max(self.start))
    }
    /// Its end.
    #[must_use]
    pub const fn end(self) -> Instant {
        self.end
    }
    /// Its start.
    #[must_use]
    pub const fn start(self) -> Instant {
        self.start
    }
    /// Its length.
    #[must_use]
    pub fn length(self) -> Duration {
        self.end.saturating_since(self.start)
    }
}
