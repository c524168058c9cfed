//! A kernel clock, which counts ticks.

use anabranch_core::units::{Duration, Instant};

/// A clock with a tick; an exact clock has a tick of one picosecond.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    pub tick: Duration,
}

impl Clock {
    /// For a tick of zero, the exact clock.
    pub(super) fn new(tick: Duration) -> Self {
        Self {
            tick: tick.max(Duration::from_picos(1)),
        }
    }

    /// Time between two moments.
    #[inline]
    pub(super) fn between(self, then: Instant, now: Instant) -> Duration {
        let ticks = |at: Instant| at.as_picos() / self.tick.as_picos();
        self.tick
            .saturating_mul(ticks(now).saturating_sub(ticks(then)))
    }

    /// `time` in whole ticks, rounded up.
    #[inline]
    pub(super) fn rounded_up(self, time: Duration) -> Duration {
        self.tick
            .saturating_mul(time.as_picos().div_ceil(self.tick.as_picos()))
    }

    /// The first moment at which the clock shows that `time` has passed since `then`.
    pub(super) fn after(self, then: Instant, time: Duration) -> Instant {
        let tick = self.tick.as_picos();
        Instant::from_picos(
            (then.as_picos() / tick)
                .saturating_add(time.as_picos().div_ceil(tick))
                .saturating_mul(tick),
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_time_has_passed_when_the_clock_shows_it(
            then in 0_u64..50_000, later in 0_u64..50_000, time in 0_u64..40_000, tick in 0_u64..9_000,
        ) {
            let clock = Clock::new(Duration::from_nanos(tick));
            let now = Instant::from_nanos(then + later);
            let (then, time) = (Instant::from_nanos(then), Duration::from_nanos(time));
            prop_assert_eq!(clock.between(then, now) >= time, now >= clock.after(then, time));
        }
    }
}
