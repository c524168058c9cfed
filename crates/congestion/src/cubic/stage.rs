//! CUBIC's equations, and the stage of congestion avoidance to which they apply.

use anabranch_core::{
    math::{cbrt, cube},
    units::Instant,
};

use super::super::params::RenoFriendly;

/// The constant parameters of the control, as plain numbers.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Constants {
    pub c: f64,
    pub beta: f64,
    /// `None` for `beta`.
    pub beta_ecn: Option<f64>,
    pub fast_convergence: bool,
    pub tcp_friendly: bool,
    pub reno_friendly: RenoFriendly,
    pub undo_restores_w_max: bool,
    pub first_epoch_growth: f64,
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

/// The current stage, with the numbers that its equations need.
#[derive(Debug)]
pub struct Stage<'a> {
    pub(super) law: &'a Constants,
    pub(super) epoch: &'a mut Epoch,
    pub(super) cwnd_prior: f64,
    pub(super) first_epoch: bool,
}

impl Stage<'_> {
    /// Figure 1.
    pub(super) fn w_cubic(&self, t: f64) -> f64 {
        self.law.c * cube(t - self.epoch.k) + self.epoch.w_max
    }

    /// α_cubic (§4.3): the same mean growth as Reno, with the smaller reduction by β.
    pub(super) fn alpha(&self) -> f64 {
        let law = self.law;
        if law.reno_friendly == RenoFriendly::Rfc9438 && self.epoch.w_est >= self.cwnd_prior {
            1.0
        } else {
            3.0 * (1.0 - law.beta) / (1.0 + law.beta)
        }
    }
}
