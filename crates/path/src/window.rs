//! Measured part of a run.

use anabranch_core::units::{Duration, Instant};

/// The measured part of a run: after `start`, up to and including `end`. A run's first instant is
/// included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    start: Instant,
    end: Instant,
    /// First measured instant. `span` is the picoseconds from it to the last, so that one
    /// comparison decides whether an instant is inside. `first` of an empty window is beyond all
    /// instants in use.
    first: u64,
    span: u64,
}

impl Window {
    /// Creates the window from `start` to `end`.
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
    /// Whether `at` is measured.
    #[must_use]
    #[inline]
    pub fn contains(self, at: Instant) -> bool {
        at.as_picos().wrapping_sub(self.first) <= self.span
    }
    /// Measured part of the interval from `from` to `to`.
    #[must_use]
    #[inline]
    pub fn overlap(self, from: Instant, to: Instant) -> Duration {
        to.min(self.end).saturating_since(from.max(self.start))
    }
    /// End of the window.
    #[must_use]
    pub const fn end(self) -> Instant {
        self.end
    }
    /// Start of the window.
    #[must_use]
    pub const fn start(self) -> Instant {
        self.start
    }
    /// Length of the window.
    #[must_use]
    pub fn length(self) -> Duration {
        self.end.saturating_since(self.start)
    }
}
