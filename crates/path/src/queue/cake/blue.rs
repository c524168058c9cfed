//! BLUE: a drop probability that rises when a queue overflows and falls when it is empty (Feng et
//! al. 2002).
//!
//! In COBALT it takes over if CoDel's drops have no effect because a flow does not respond
//! (Høiland-Jørgensen et al. 2018 §3.3).

use anabranch_core::units::{Duration, Instant};

/// Increase at an overflow.
const INCREMENT: f64 = 1.0 / 256.0;
/// Decrease when the queue is empty.
const DECREMENT: f64 = 1.0 / 4096.0;

/// BLUE of one queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blue {
    probability: f64,
    /// Time of the last change.
    moved: Instant,
}

impl Blue {
    pub const NEW: Self = Self {
        probability: 0.0,
        moved: Instant::START,
    };
    #[inline]
    pub fn probability(&self) -> f64 {
        self.probability
    }
    /// Raises the probability after a packet was dropped because there was no room.
    pub fn overflows(&mut self, now: Instant, at_most_every: Duration) {
        self.moves(now, at_most_every, INCREMENT);
    }
    /// Lowers the probability when the queue is empty.
    #[inline]
    pub fn is_empty(&mut self, now: Instant, at_most_every: Duration) {
        if self.probability > 0.0 {
            self.moves(now, at_most_every, -DECREMENT);
        }
    }
    fn moves(&mut self, now: Instant, at_most_every: Duration, by: f64) {
        if now.saturating_since(self.moved) > at_most_every {
            self.probability = (self.probability + by).clamp(0.0, 1.0);
            self.moved = now;
        }
    }
}
