//! CUBIC counted in whole segments, as its authors published it and as Linux and ns-3 run it.
//!
//! The window is a whole number of segments. An ACK does not move it a little; instead the way to
//! the cubic function says for how many acknowledged segments the window grows by one, and those
//! are counted (Ha, Rhee and Xu, SIGOPS 2008, Algorithm 1: `cnt` and `cwnd_cnt`). Where windows are
//! large this is RFC 9438 rounded. Where they are a few segments it is faster:
//!
//! - the distance between the cubic function and its plateau is rounded down, so that the window
//!   is back at W_max early;
//! - the count outlives a reduction: where the function was flat it has grown large, and the first
//!   ACK after the recovery brings a segment at once;
//! - where the function stands still the window grows by 1 % per round trip all the same.
//!
//! With the stack's `cubic_interval` that count is looked up only so often while the window stands,
//! so that windows of round-trip times below it grow later and by more than one.
//!
//! Rounding, and what an ACK's own segments add beside the count before it, the paper leaves open;
//! they are as ns-3 3.37 behaves in its traces and in the mean of thirty runs at 1 % loss.
//!
//! # Differs from Linux
//! - Times and W_est (RFC 9438 §4.3) are real numbers; what W_est is ahead of cwnd is rounded down.
//! - An ACK counts as one window at most: after a timeout it may acknowledge more.

use anabranch_core::math::cube;

use super::{
    Ack, Cubic,
    law::{Epoch, Law, LookedUp},
};

/// Growth where the cubic function stands still: one segment per 100 windows.
const FLAT: f64 = 100.0;

impl Law {
    /// `cnt`: for how many acknowledged segments a window of `cwnd` grows by one. `t` is one round
    /// trip ahead.
    fn cnt(&self, cwnd: f64, epoch: &Epoch, t: f64, first_epoch: bool) -> f64 {
        let from_plateau = t - epoch.k;
        let distance = (self.c * cube(from_plateau)).abs().floor();
        let target = epoch.w_max + distance.copysign(from_plateau);
        let mut cnt = if target > cwnd {
            // RFC 9438 §4.2: half a window in a round trip at most.
            (cwnd / (target - cwnd)).floor().max(2.0)
        } else {
            FLAT * cwnd
        };
        let ahead = (epoch.w_est - cwnd).floor();
        if self.tcp_friendly && ahead >= 1.0 {
            cnt = cnt.min((cwnd / ahead).floor().max(1.0));
        }
        if first_epoch && self.first_epoch_growth > 0.0 {
            cnt = cnt.min((1.0 / self.first_epoch_growth).floor());
        }
        cnt
    }
}

impl Cubic {
    /// Congestion avoidance. `acked` is a whole number of segments.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the count is what a division by cnt leaves, and cnt is 100 windows at most"
    )]
    #[expect(clippy::float_cmp, reason = "the same window, not one like it")]
    pub(super) fn avoid_congestion_in_segments(&mut self, ack: &Ack, acked: f64) {
        let law = self.law;
        let window = &mut self.window;
        let cwnd = window.cwnd;
        let acked = acked.min(cwnd);
        let mut epoch = window
            .epoch
            .unwrap_or_else(|| window.begin_epoch(&law, ack.now));
        epoch.resume(ack.now);
        if law.tcp_friendly {
            epoch.w_est += law.alpha(&epoch, window.cwnd_prior) * acked / cwnd;
        }

        let t = epoch.elapsed(ack.now) + ack.srtt.as_secs_f64();
        let cnt = match epoch.looked_up {
            Some(last) if last.cwnd == cwnd && ack.now.saturating_since(last.at) < law.interval => {
                last.cnt
            }
            _ => {
                let cnt = law.cnt(cwnd, &epoch, t, window.first_epoch);
                let at = ack.now;
                epoch.looked_up = Some(LookedUp { cnt, cwnd, at });
                cnt
            }
        };
        // What was counted before, perhaps when `cnt` was large, brings one segment at most.
        let mut count = f64::from(window.acked_count);
        if count >= cnt {
            count = 0.0;
            window.cwnd += 1.0;
        }
        count += acked;
        let grown = (count / cnt).floor();
        window.cwnd += grown;
        window.acked_count = (count - grown * cnt) as u32;
        window.epoch = Some(epoch);
    }
}
