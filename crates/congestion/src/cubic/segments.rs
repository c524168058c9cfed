//! CUBIC counted in whole segments, as its authors published it and as Linux and ns-3 run it.
//!
//! The window is a whole number of segments. An ACK does not move it a little; instead the way to
//! the cubic function says for how many acknowledged segments the window grows by one, and those
//! are counted (Ha, Rhee and Xu, SIGOPS 2008, Algorithm 1: `cnt` and `cwnd_cnt`). Where windows are
//! large this is RFC 9438 rounded. Where they are a few segments it is faster:
//!
//! - the distance between the cubic function and its plateau is rounded down, so that the window
//!   is back at W_max early;
//! - the count outlives a reduction, unless the stack says otherwise (`cubic_count_outlives`): where the function was flat it has
//!   grown large, and the first ACK after the recovery brings a segment at once;
//! - where the function stands still the window grows by 1 % per round trip all the same.
//!
//! With the stack's `cubic_interval` that count is looked up only so often while the window stands,
//! so that windows of round-trip times below it grow later and by more than one.
//!
//! With its `clock_tick` this is a kernel's CUBIC as its window grows, traced at every acknowledgment
//! (`docs/design/008-stack-habits.md`):
//!
//! - A time is as many ticks as it saw, and the function is looked up once in a tick: a window that has grown in it goes on growing
//!   as it did, or as W_est asks.
//! - W_est is a whole number: it grows by one once more than the window ÷ α has been acknowledged, in eighths of the window (15 for
//!   β = 0.7), which is seen where the count is looked up.
//! - The acknowledgment with which `HyStart` ends slow start is the first that counts behind it.
//! - One round trip ahead is the least one, as in the paper (`dMin`); RFC 9438 §4.2 has the smoothed one, and so it is without.
//!
//! Rounding, and what an ACK's own segments add beside the count before it, the paper leaves open;
//! they are as ns-3 3.37 behaves in its traces and in the mean of thirty runs at 1 % loss.
//!
//! # Differs from Linux
//! - The least round-trip time is a real number, no whole ticks; without `clock_tick` so are all times, and W_est.
//! - An ACK counts as one window at most: after a timeout it may acknowledge more.

use anabranch_core::math::cube;

use super::{
    Ack, CubicLaw, Window, WindowCount,
    law::{Constants, Epoch, LookedUp},
};

/// Growth where the cubic function stands still: one segment per 100 windows.
const FLAT: f64 = 100.0;
/// What it takes for W_est to grow by a segment is a multiple of the window, in parts of so many.
const PARTS: f64 = 8.0;

impl Constants {
    /// Whether the acknowledgment that ends slow start counts behind it.
    pub(super) const fn counts_end_of_slow_start(&self) -> bool {
        matches!(self.count, WindowCount::Segments) && !self.tick.is_zero()
    }

    /// `cnt`: for how many acknowledged segments a window of `cwnd` grows by one, by the cubic function. `t` is one
    /// round trip ahead.
    fn cnt(&self, cwnd: f64, epoch: &Epoch, t: f64, first_epoch: bool) -> f64 {
        let from_plateau = t - epoch.k;
        let distance = (self.c * cube(from_plateau)).abs().floor();
        let target = epoch.w_max + distance.copysign(from_plateau);
        let cnt = if target > cwnd {
            // RFC 9438 §4.2: half a window in a round trip at most.
            (cwnd / (target - cwnd)).floor().max(2.0)
        } else {
            FLAT * cwnd
        };
        if first_epoch && self.first_epoch_growth > 0.0 {
            return cnt.min((1.0 / self.first_epoch_growth).floor());
        }
        cnt
    }

    /// W_est moves on by what was acknowledged (RFC 9438 §4.3).
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

    /// `cnt`, no larger than what brings the window to W_est in a round trip.
    fn no_slower_than_reno(&self, cnt: f64, cwnd: f64, epoch: &mut Epoch, cwnd_prior: f64) -> f64 {
        if !self.tcp_friendly {
            return cnt;
        }
        // Elsewhere it moves on with every ACK.
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
