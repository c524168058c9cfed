//! H-TCP in the form of Linux's module, as measured on Linux 6.12.
//!
//! - Times are ticks of the stack's clock, and round-trip times are rounded up to ticks.
//! - The time since a congestion event counts from the end of the recovery.
//! - `α` is whole segments before the factor `2 (1 - β)`: `1 + 10 (Δ - Δ_L) + ((Δ - Δ_L) / 2)²` rounded down, times 8, divided by the
//!   whole part of `8 · rtt_ref / RTT_min`, rounded down. RTT scaling is a factor of 2 at most.
//! - `β` is in 128ths, rounded down: 102 of them at most.
//! - Throughput is the largest of a mean with a weight of 1/4 for the latest round trip. An event at which it has changed by more than
//!   `delta_b`, and the event after it, leave half of the window; so do the first three events of most flows, because the mean of slow start
//!   is low.
//! - Windows are whole segments. An ACK that finds enough segments counted raises the window by one and is not counted itself.
//!   `α` is computed then, so that the high-speed regime begins up to a round trip later.

use super::Window;

/// Units of `β` and `α`.
pub(super) const PARTS: f64 = 128.0;
/// `RTT_min / rtt_ref` is divided in units of this part.
const SCALE_PARTS: f64 = 8.0;
/// RTT scaling multiplies by this at most.
const LARGEST_SCALE: f64 = 2.0;
/// Weight of the latest round trip in the throughput.
pub(super) const THROUGHPUT_WEIGHT: f64 = 0.25;

/// `α` after RTT scaling, given round-trip times in ticks, before the factor `2 (1 - β)`.
pub(super) fn scaled(alpha: f64, min_rtt: f64, reference: f64) -> f64 {
    let parts = (SCALE_PARTS * reference / min_rtt).floor();
    let parts = parts.max(SCALE_PARTS / LARGEST_SCALE);
    (alpha.floor() * SCALE_PARTS / parts).floor().max(1.0)
}

/// `β`, cut to 128ths.
pub(super) fn whole_parts(beta: f64) -> f64 {
    (beta * PARTS + 1e-9).floor() / PARTS
}

/// Counts acknowledged segments towards the next one of the window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count {
    acked: f64,
    alpha: f64,
}

impl Count {
    /// After a congestion event that left `beta` of the window.
    pub(super) fn after(beta: f64) -> Self {
        Self {
            acked: 0.0,
            alpha: 2.0 * (1.0 - beta),
        }
    }

    /// Counts an acknowledgment of `acked` segments. `alpha` is the current one.
    pub(super) fn grow(&mut self, window: &mut Window<f64>, acked: f64, alpha: f64) {
        if self.acked * self.alpha >= window.cwnd {
            window.cwnd += 1.0;
            self.acked = 0.0;
            self.alpha = alpha;
        } else {
            self.acked += acked;
        }
    }
}
