//! CUBIC's equations, and the stage of congestion avoidance to which they apply.

use anabranch_core::{
    math::{cbrt, cube},
    units::{Duration, Instant},
};

use super::super::{
    params::{RenoFriendly, WindowCount},
    ticks,
    window::whole_segments,
};

/// The constant parameters of the control, as plain numbers.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "parameters of their own")]
pub(in super::super) struct Constants {
    pub c: f64,
    pub beta: f64,
    /// `None` for `beta`.
    pub beta_ecn: Option<f64>,
    pub fast_convergence: bool,
    pub tcp_friendly: bool,
    pub reno_friendly: RenoFriendly,
    /// [`WindowCount::Segments`] only.
    pub interval: Duration,
    /// [`WindowCount::Segments`] only: clock tick; zero for a clock without ticks.
    pub tick: Duration,
    /// [`WindowCount::Segments`] only.
    pub count_outlives: bool,
    pub undo_restores_w_max: bool,
    pub count: WindowCount,
    pub first_epoch_growth: f64,
}

impl Constants {
    /// Figure 1.
    pub(super) fn w_cubic(&self, epoch: &Epoch, t: f64) -> f64 {
        self.c * cube(t - epoch.k) + epoch.w_max
    }

    /// The time from `then` to `now`, by a clock with ticks.
    pub(super) fn since(&self, then: Instant, now: Instant) -> Duration {
        ticks::between(then, now, self.tick)
    }

    /// The first moment at which a clock with ticks shows that `time` has passed since `then`.
    pub(super) fn after(&self, then: Instant, time: Duration) -> Instant {
        let tick = self.tick.as_picos();
        match then.as_picos().checked_div(tick) {
            None => then.saturating_add(time),
            Some(ticks) => Instant::from_picos(
                ticks
                    .saturating_add(time.as_picos().div_ceil(tick))
                    .saturating_mul(tick),
            ),
        }
    }

    /// Rounds a window that results from an equation to the unit of the control.
    pub(super) fn whole(&self, cwnd: f64) -> f64 {
        match self.count {
            WindowCount::Bytes => cwnd,
            WindowCount::Segments => whole_segments(cwnd),
        }
    }

    /// α_cubic (§4.3): the same mean growth as Reno, with the smaller reduction by β.
    pub(super) fn alpha(&self, epoch: &Epoch, cwnd_prior: f64) -> f64 {
        if self.reno_friendly == RenoFriendly::Rfc9438 && epoch.w_est >= cwnd_prior {
            1.0
        } else {
            3.0 * (1.0 - self.beta) / (1.0 + self.beta)
        }
    }
}

/// A stage of congestion avoidance (§4.2).
#[derive(Debug, Clone, Copy)]
pub(super) struct Epoch {
    /// t_epoch, moved forward by the pauses in which the window was not used (§5.8).
    pub start: Instant,
    pub paused: Option<Instant>,
    pub w_max: f64,
    pub k: f64,
    pub w_est: f64,
    /// Segments acknowledged since W_est last grew. This field and the next:
    /// [`WindowCount::Segments`] only.
    pub acked: f64,
    pub looked_up: Option<LookedUp>,
}

/// The last value of `cnt`, the number of acknowledged segments for a growth by one.
#[derive(Debug, Clone, Copy)]
pub(super) struct LookedUp {
    pub cnt: f64,
    pub cwnd: f64,
    /// Valid until then if the window is unchanged.
    pub stands_until: Instant,
    /// Valid until then even if the window changes, by a clock with ticks.
    pub tick_until: Instant,
}

impl Epoch {
    /// Begins a stage with the current window. `w_max` is the plateau, if known.
    pub(super) fn begin(w_max: &mut Option<f64>, law: &Constants, cwnd: f64, now: Instant) -> Self {
        let plateau = w_max.unwrap_or(cwnd).max(cwnd);
        *w_max = Some(plateau);
        Self {
            start: now,
            paused: None,
            w_max: plateau,
            k: cbrt((plateau - cwnd) / law.c),
            w_est: cwnd,
            acked: 0.0,
            looked_up: None,
        }
    }

    /// Duration of growth in seconds.
    pub(super) fn elapsed(&self, now: Instant) -> f64 {
        now.saturating_since(self.start).as_secs_f64()
    }

    /// Ends a pause in which the window was not used.
    pub(super) fn resume(&mut self, now: Instant) {
        if let Some(paused) = self.paused.take() {
            self.start = self.start.saturating_add(now.saturating_since(paused));
        }
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
            let law = Constants {
                c: 0.4,
                beta: 0.7,
                beta_ecn: None,
                fast_convergence: true,
                tcp_friendly: true,
                reno_friendly: RenoFriendly::Rfc8312,
                interval: Duration::ZERO,
                tick: Duration::from_nanos(tick),
                count_outlives: false,
                undo_restores_w_max: false,
                count: WindowCount::Segments,
                first_epoch_growth: 0.0,
            };
            let now = Instant::from_nanos(then + later);
            let (then, time) = (Instant::from_nanos(then), Duration::from_nanos(time));
            prop_assert_eq!(law.since(then, now) >= time, now >= law.after(then, time));
        }
    }
}
