//! One round of measurement: the octets that left, arrived and were lost.

use crate::time::Instant;

/// Delivery is measured by the receiver's clock if a round is longer than this multiple of the
/// jitter.
pub(super) const CLEAR: f64 = 16.0;

/// The counts of a round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    pub(super) since: Instant,
    /// Arrival times of the first and the newest packet, by the receiver's clock in microseconds.
    pub(super) from: Option<u32>,
    pub(super) to: u32,
    pub(super) sent: usize,
    pub(super) arrived: usize,
    pub(super) lost: usize,
    pub(super) losses: u32,
    pub(super) least_queue_s: f64,
}

impl Round {
    /// A round without packets; `from` is the arrival time of the last packet before it.
    pub(super) const fn new(since: Instant, from: Option<u32>) -> Self {
        Self {
            since,
            from,
            to: 0,
            sent: 0,
            arrived: 0,
            lost: 0,
            losses: 0,
            least_queue_s: f64::INFINITY,
        }
    }

    /// The share of octets that were lost.
    pub(super) fn loss(&self) -> f64 {
        let decided = self.arrived + self.lost;
        if decided == 0 {
            0.0
        } else {
            self.lost as f64 / decided as f64
        }
    }

    /// The time in seconds in which the packets arrived; the round took `past_s`.
    pub(super) fn took_s(&self, jitter_s: f64, past_s: f64) -> f64 {
        let Some(from) = self.from.filter(|_| past_s > CLEAR * jitter_s) else {
            return past_s;
        };
        let took_s = f64::from(self.to.wrapping_sub(from)) * 1e-6;
        // Reports may have been lost, or the other end's clock may have stopped.
        if (0.5..2.0).contains(&(took_s / past_s)) {
            took_s
        } else {
            past_s
        }
    }
}
