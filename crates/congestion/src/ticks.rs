//! Time on a kernel clock that counts ticks. A tick of zero means a clock without ticks.

use anabranch_core::units::{Duration, Instant};

/// Time between two moments on a clock with this tick.
#[inline]
pub(super) fn between(then: Instant, now: Instant, tick: Duration) -> Duration {
    if tick.is_zero() {
        return now.saturating_since(then);
    }
    let ticks = |at: Instant| at.as_picos() / tick.as_picos();
    tick.saturating_mul(ticks(now).saturating_sub(ticks(then)))
}

/// `time` in whole ticks, rounded up.
#[inline]
pub(super) fn rounded_up(time: Duration, tick: Duration) -> Duration {
    if tick.is_zero() {
        return time;
    }
    tick.saturating_mul(time.as_picos().div_ceil(tick.as_picos()))
}
