//! ProbeRTT (draft-ietf-ccwg-bbr §5.3.4).

use anabranch_core::units::Instant;

use super::{
    Model,
    probe_bw::AckPhase,
    sample::Sample,
    state::{Low, Phase, State},
};

impl Model {
    /// CheckProbeRTT; `due` is BBR.probe_rtt_expired.
    pub(super) fn check_probe_rtt(&mut self, rs: &Sample, due: bool) {
        if due && !self.idle_restart && !matches!(self.state, State::ProbeRtt(_)) {
            // Before the state changes, because the window to be restored is the current one.
            self.save_cwnd();
            self.state = State::ProbeRtt(Low::Emptying);
            self.cycle.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if let State::ProbeRtt(low) = self.state {
            self.handle_probe_rtt(rs, low);
        }
        if rs.newly_acked > 0.0 {
            self.idle_restart = false;
        }
    }

    /// HandleProbeRTT
    fn handle_probe_rtt(&mut self, rs: &Sample, low: Low) {
        self.app_limited_until = self.delivered + rs.in_flight;
        match low {
            Low::Emptying if rs.in_flight <= self.probe_rtt_cwnd() => {
                self.state = State::ProbeRtt(Low::Holding {
                    until: rs.now.saturating_add(self.params.probe_rtt_duration),
                    round_done: false,
                });
                self.start_round();
            }
            Low::Holding { until, round_done } => {
                let round_done = round_done || self.rounds.start;
                self.state = State::ProbeRtt(Low::Holding { until, round_done });
                if round_done {
                    self.check_probe_rtt_done(rs.now);
                }
            }
            Low::Emptying => {}
        }
    }

    /// CheckProbeRTTDone and ExitProbeRTT
    pub(super) fn check_probe_rtt_done(&mut self, now: Instant) {
        let State::ProbeRtt(Low::Holding { until, .. }) = self.state else {
            return;
        };
        if now <= until {
            return;
        }
        if let Some((_, stamp)) = &mut self.probe_rtt_min {
            *stamp = now;
        }
        self.restore_cwnd();
        self.short_term.reset();
        if self.full.reached {
            self.start_probe_bw_down(now);
            self.state = State::ProbeBw(Phase::Cruise);
        } else {
            self.state = State::Startup;
        }
    }

    /// ProbeRTTCwnd
    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        let gain = self.params.probe_rtt_cwnd_gain.get();
        self.bdp_multiple(self.bw(), gain).max(self.min_window())
    }
}
