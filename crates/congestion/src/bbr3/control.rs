//! Rate and window (draft-ietf-ccwg-bbr §5.6.2, §5.6.4).

use anabranch_core::units::Duration;

use super::{
    Model, Repair,
    sample::Sample,
    state::{Phase, State},
};

impl Model {
    /// InitPacingRate, once there is a round-trip time
    pub(super) fn init_pacing_rate(&mut self, srtt: Duration) {
        if !self.rate_from_rtt && !srtt.is_zero() {
            self.rate_from_rtt = true;
            let gain = self.params.startup_pacing_gain.get();
            self.pacing_rate = gain * self.initial_cwnd / srtt.as_secs_f64();
        }
    }

    /// SetPacingRateWithGain
    pub(super) fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bw() * (1.0 - self.params.pacing_margin.get());
        if rate > 0.0 && (self.full.reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// C.is_cwnd_limited
    pub(super) const fn is_cwnd_limited(&self) -> bool {
        matches!(self.cwnd_full_in, Some(round) if round + 1 >= self.rounds.count)
    }

    /// SaveCwnd
    pub(super) fn save_cwnd(&mut self) {
        let undisturbed = self.repair == Repair::No && !matches!(self.state, State::ProbeRtt(_));
        self.prior_cwnd = if undisturbed {
            self.cwnd
        } else {
            self.prior_cwnd.max(self.cwnd)
        };
    }

    /// RestoreCwnd
    pub(super) const fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// SetCwnd
    pub(super) fn set_cwnd(&mut self, rs: &Sample) {
        let max_inflight = self.max_inflight();
        if self.full.reached {
            self.cwnd = (self.cwnd + rs.newly_acked).min(max_inflight);
        } else if self.cwnd < max_inflight || self.delivered < self.initial_cwnd {
            self.cwnd += rs.newly_acked;
        }
        self.cwnd = self.cwnd.max(self.min_window());
        if matches!(self.state, State::ProbeRtt(_)) {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.cwnd = self.cwnd.min(self.volume_cap());
    }

    /// BoundCwndForModel
    pub(super) fn volume_cap(&self) -> f64 {
        let cap = match self.state {
            State::ProbeBw(Phase::Cruise) | State::ProbeRtt(_) => self.inflight_with_headroom(),
            State::ProbeBw(_) => self.inflight_longterm,
            State::Startup | State::Drain { .. } => f64::INFINITY,
        };
        cap.min(self.short_term.inflight).max(self.min_window())
    }
}
