//! CUBIC counted in whole segments, as its authors published it and as in ns-3.
//!
//! The window is a whole number of segments. The distance to the cubic function determines `cnt`,
//! the number of acknowledged segments after which the window grows by one, and acknowledged
//! segments are counted (Ha, Rhee and Xu, SIGOPS 2008, Algorithm 1: `cnt` and `cwnd_cnt`). For
//! large windows this is RFC 9438 with rounding. Windows of a few segments grow faster:
//!
//! - the distance between the cubic function and its plateau is rounded down, so that the window
//!   returns to W_max early;
//! - the count survives a reduction, unless the stack resets it (`cubic_count_outlives`): at the
//!   plateau it has grown large, and the first ACK after the recovery adds a segment at once;
//! - at the plateau the window still grows by 1 % per round trip.
//!
//! With the stack's `cubic_interval`, `cnt` is computed only once per interval while the window is
//! unchanged. Windows on paths with a shorter round-trip time then grow later and by more than one.
//!
//! The paper does not specify the rounding, or how an ACK's segments add to the previous count.
//! Both follow ns-3 3.37, in its traces and in the mean of thirty runs at 1 % loss. The function is
//! evaluated one smoothed round-trip time ahead, as in RFC 9438 §4.2; the paper has the smallest
//! (`dMin`).
//!
//! # Differs from Linux
//! - All times and W_est are real numbers; see [`super::kernel`].
//! - An ACK counts as at most one window: after a timeout it may acknowledge more.

use anabranch_core::{
    math::cube,
    units::{Duration, Instant},
};

use super::{Ack, Growth, StackHabits, Window, stage::Stage, window::SegmentCount};

/// Growth at the plateau of the cubic function: one segment per 100 windows.
const FLAT: f64 = 100.0;

impl Stage<'_> {
    /// `cnt`: the number of acknowledged segments after which a window of `cwnd` grows by one, by
    /// the cubic function. `t` is one round trip ahead.
    pub(super) fn cnt(&self, cwnd: f64, t: f64) -> f64 {
        let from_plateau = t - self.epoch.k;
        let distance = (self.law.c * cube(from_plateau)).abs().floor();
        let target = self.epoch.w_max + distance.copysign(from_plateau);
        let cnt = if target > cwnd {
            // RFC 9438 §4.2: at most half a window per round trip.
            (cwnd / (target - cwnd)).floor().max(2.0)
        } else {
            FLAT * cwnd
        };
        if self.first_epoch && self.law.first_epoch_growth > 0.0 {
            return cnt.min((1.0 / self.law.first_epoch_growth).floor());
        }
        cnt
    }

    /// Limits `cnt` so that the window reaches W_est within a round trip, but not below `least`.
    pub(super) fn no_slower_than_reno(&self, cnt: f64, cwnd: f64, least: f64) -> f64 {
        let ahead = self.epoch.w_est - cwnd;
        if self.law.tcp_friendly && ahead >= 1.0 {
            cnt.min((cwnd / ahead.floor()).floor().max(least))
        } else {
            cnt
        }
    }
}

/// State of growth by whole segments.
#[derive(Debug, Clone, Copy)]
pub struct Segments {
    /// `cubic_interval`: `cnt` is valid for this time if the window is unchanged.
    pub(super) interval: Duration,
    /// `cubic_count_outlives`.
    count_outlives: bool,
    /// Segments acknowledged since the window last grew by one.
    pub(super) count: SegmentCount,
    pub(super) latest: Option<Evaluation>,
}

/// The latest value of `cnt`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evaluation {
    pub cnt: f64,
    pub cwnd: f64,
    pub valid_until: Instant,
}

impl Evaluation {
    #[expect(clippy::float_cmp, reason = "the same window, not one like it")]
    pub(super) fn is_valid(&self, cwnd: f64, now: Instant) -> bool {
        self.cwnd == cwnd && now < self.valid_until
    }
}

impl Growth for Segments {
    fn new(stack: &StackHabits) -> Self {
        Self {
            interval: stack.cubic_interval,
            count_outlives: stack.cubic_count_outlives,
            count: SegmentCount::default(),
            latest: None,
        }
    }

    fn grow(&mut self, window: &mut Window<f64>, stage: Stage<'_>, ack: &Ack, acked: f64) {
        let cwnd = window.cwnd;
        let acked = acked.min(cwnd);
        stage.epoch.w_est += stage.alpha() * acked / cwnd;
        let cnt = match self.latest {
            Some(latest) if latest.is_valid(cwnd, ack.now) => latest.cnt,
            _ => {
                let t = stage.epoch.elapsed(ack.now) + ack.srtt.as_secs_f64();
                let cnt = stage.no_slower_than_reno(stage.cnt(cwnd, t), cwnd, 1.0);
                self.latest = Some(Evaluation {
                    cnt,
                    cwnd,
                    valid_until: ack.now.saturating_add(self.interval),
                });
                cnt
            }
        };
        self.count.grow(window, acked, cnt);
    }

    fn on_reduction(&mut self) {
        if !self.count_outlives {
            self.count = SegmentCount::default();
        }
    }

    fn end_stage(&mut self) {
        self.latest = None;
    }
}
