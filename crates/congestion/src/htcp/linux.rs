//! H-TCP in the form of Linux's module, as measured on Linux 6.12.
//!
//! - Times are ticks of the stack's clock, and round-trip times are rounded up to ticks.
//! - The time since a congestion event counts from the end of the recovery.
//! - `α` before the factor `2 (1 - β)` is in whole segments: `1 + 10 (Δ - Δ_L) + ((Δ - Δ_L) / 2)²`
//!   rounded down, times 8, divided by the whole part of `8 · rtt_ref / RTT_min`, rounded down. RTT
//!   scaling is at most a factor of 2.
//! - `β` is in 128ths, rounded down: at most 102.
//! - The throughput of an epoch is the largest value of a moving average that weights the latest
//!   round trip by 1/4. An event at which it has changed by more than `delta_b`, and the event
//!   after it, halve the window. So do the first three events of most flows, because the average
//!   during slow start is low.
//! - Windows are whole segments. An ACK that finds enough segments counted raises the window by one
//!   and is not counted itself. `α` is computed at that time, so that the high-speed regime begins
//!   up to a round trip later.

use super::Window;

/// Unit of `β` and `α`: 1/128.
pub(super) const PARTS: f64 = 128.0;
/// `rtt_ref / RTT_min` is in units of 1/8.
const SCALE_PARTS: f64 = 8.0;
/// Upper bound of RTT scaling.
const LARGEST_SCALE: f64 = 2.0;
/// Weight of the latest round trip in the throughput.
pub(super) const THROUGHPUT_WEIGHT: f64 = 0.25;

/// `α` after RTT scaling, given round-trip times in ticks, before the factor `2 (1 - β)`.
pub(super) fn scaled(alpha: f64, min_rtt: f64, reference: f64) -> f64 {
    let parts = (SCALE_PARTS * reference / min_rtt).floor();
    let parts = parts.max(SCALE_PARTS / LARGEST_SCALE);
    (alpha.floor() * SCALE_PARTS / parts).floor().max(1.0)
}

/// Rounds `β` down to 128ths.
pub(super) fn whole_parts(beta: f64) -> f64 {
    (beta * PARTS + 1e-9).floor() / PARTS
}

/// Count of acknowledged segments towards the next growth of the window.
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
