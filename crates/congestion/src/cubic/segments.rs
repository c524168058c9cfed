//! CUBIC counted in whole segments, as its authors published it and as in Linux and ns-3.
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
//! With its `clock_tick` this reproduces the window growth of a kernel's CUBIC, traced at every
//! acknowledgment (`docs/design/008-stack-habits.md`):
//!
//! - Times are whole ticks, and the function is evaluated once per tick. A window that has grown
//!   within the tick keeps growing with the same `cnt`, or with a smaller one if W_est requires it.
//! - W_est is a whole number. It grows by one once more than `window ÷ α` segments have been
//!   acknowledged, with 1/α rounded down to eighths (15/8 for β = 0.7). It is updated when `cnt` is
//!   computed.
//! - The acknowledgment with which HyStart ends slow start already counts in congestion avoidance.
//! - The function is evaluated one smallest round-trip time ahead, as in the paper (`dMin`). RFC
//!   9438 §4.2, and this law without `clock_tick`, use the smoothed round-trip time.
//!
//! The paper does not specify the rounding, or how an ACK's segments add to the previous count.
//! Both follow ns-3 3.37, in its traces and in the mean of thirty runs at 1 % loss.
//!
//! # Differs from Linux
//! - The smallest round-trip time is a real number, not whole ticks; without `clock_tick` all times
//!   and W_est are real numbers, too.
//! - An ACK counts as at most one window: after a timeout it may acknowledge more.

use anabranch_core::math::cube;

use super::{
    Ack, CubicLaw, Window, WindowCount,
    law::{Constants, Epoch, LookedUp},
};

/// Growth at the plateau of the cubic function: one segment per 100 windows.
const FLAT: f64 = 100.0;
/// 1/α is rounded down to eighths.
const PARTS: f64 = 8.0;

impl Constants {
    /// Whether the acknowledgment that ends slow start also counts in congestion avoidance.
    pub(super) const fn counts_end_of_slow_start(&self) -> bool {
        matches!(self.count, WindowCount::Segments) && !self.tick.is_zero()
    }

    /// `cnt`: the number of acknowledged segments after which a window of `cwnd` grows by one, by
    /// the cubic function. `t` is one round trip ahead.
    fn cnt(&self, cwnd: f64, epoch: &Epoch, t: f64, first_epoch: bool) -> f64 {
        let from_plateau = t - epoch.k;
        let distance = (self.c * cube(from_plateau)).abs().floor();
        let target = epoch.w_max + distance.copysign(from_plateau);
        let cnt = if target > cwnd {
            // RFC 9438 §4.2: at most half a window per round trip.
            (cwnd / (target - cwnd)).floor().max(2.0)
        } else {
            FLAT * cwnd
        };
        if first_epoch && self.first_epoch_growth > 0.0 {
            return cnt.min((1.0 / self.first_epoch_growth).floor());
        }
        cnt
    }

    /// Updates W_est by the segments acknowledged (RFC 9438 §4.3).
    fn move_w_est(&self, epoch: &mut Epoch, cwnd: f64, cwnd_prior: f64) {
        let alpha = self.alpha(epoch, cwnd_prior);
        if self.tick.is_zero() {
            epoch.w_est += alpha * std::mem::take(&mut epoch.acked) / cwnd;
            return;
        }
        let each = (cwnd * (PARTS / alpha).floor() / PARTS).floor().max(1.0);
        while epoch.acked > each {
            epoch.acked -= each;
            epoch.w_est += 1.0;
        }
    }

    /// Limits `cnt` so that the window reaches W_est within a round trip.
    fn no_slower_than_reno(&self, cnt: f64, cwnd: f64, epoch: &mut Epoch, cwnd_prior: f64) -> f64 {
        if !self.tcp_friendly {
            return cnt;
        }
        // Without ticks W_est is updated with every ACK.
        let least = if self.tick.is_zero() {
            1.0
        } else {
            self.move_w_est(epoch, cwnd, cwnd_prior);
            2.0
        };
        let ahead = epoch.w_est - cwnd;
        if ahead >= 1.0 {
            cnt.min((cwnd / ahead.floor()).floor().max(least))
        } else {
            cnt
        }
    }
}

impl CubicLaw {
    /// Congestion avoidance. `acked` is a whole number of segments.
    #[expect(clippy::float_cmp, reason = "the same window, not one like it")]
    pub(super) fn avoid_congestion_in_segments(
        &mut self,
        window: &mut Window<f64>,
        ack: &Ack,
        acked: f64,
    ) {
        let law = &self.constants;
        let state = &mut self.state;
        let (cwnd, cwnd_prior) = (window.cwnd, state.cwnd_prior);
        let acked = acked.min(cwnd);
        let epoch = state
            .epoch
            .get_or_insert_with(|| Epoch::begin(&mut state.w_max, law, cwnd, ack.now));
        epoch.resume(ack.now);
        epoch.acked += acked;
        let ahead = if law.tick.is_zero() {
            law.move_w_est(epoch, cwnd, cwnd_prior);
            ack.srtt
        } else {
            ack.min_rtt
        };
        let cnt = match epoch.looked_up {
            Some(last) if last.cwnd == cwnd && ack.now < last.stands_until => last.cnt,
            Some(last) if ack.now < last.tick_until => {
                let cnt = law.no_slower_than_reno(last.cnt, cwnd, epoch, cwnd_prior);
                epoch.looked_up = Some(LookedUp { cnt, ..last });
                cnt
            }
            _ => {
                let t = law.since(epoch.start, ack.now).as_secs_f64() + ahead.as_secs_f64();
                let cnt = law.cnt(cwnd, epoch, t, state.first_epoch);
                let cnt = law.no_slower_than_reno(cnt, cwnd, epoch, cwnd_prior);
                epoch.looked_up = Some(LookedUp {
                    cnt,
                    cwnd,
                    stands_until: law.after(ack.now, law.interval),
                    tick_until: law.after(ack.now, law.tick),
                });
                cnt
            }
        };
        state.acked_count.grow(window, acked, cnt);
    }
}
