//! ProbeBW (draft-ietf-ccwg-bbr §5.3.3): its cycle, the time of the next probe, and the effect of a
//! probe on the long-term bound.

use anabranch_core::units::{Duration, Instant};

use super::{
    Model,
    random::Draw,
    sample::Sample,
    state::{Phase, State},
};

/// Stage of the acknowledgments of a bandwidth probe: BBR.ack_phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// State of the cycle.
#[derive(Debug)]
pub(super) struct Cycle {
    /// BBR.cycle_count
    pub(super) count: u64,
    /// BBR.cycle_stamp
    stamp: Instant,
    /// BBR.bw_probe_wait
    pub(super) wait: Duration,
    /// BBR.rounds_since_probe_up
    pub(super) rounds_since_probe_up: u64,
    pub(super) ack_phase: AckPhase,
    /// BBR.is_bw_probe_sample
    pub(super) is_probe_sample: bool,
    /// BBR.prev_probe_too_high
    pub(super) too_high: bool,
    /// BBR.prev_probe_precautionary
    precautionary: bool,
    /// BBR.bw_probe_up_rounds
    up_rounds: u32,
    /// BBR.bw_probe_up_acked
    up_acked: f64,
    /// BBR.probe_up_acked_per_inc; infinite while the bound does not grow.
    up_acked_per_segment: f64,
}

impl Default for Cycle {
    fn default() -> Self {
        Self {
            count: 0,
            stamp: Instant::START,
            wait: Duration::ZERO,
            rounds_since_probe_up: 0,
            ack_phase: AckPhase::Init,
            is_probe_sample: false,
            too_high: false,
            precautionary: false,
            up_rounds: 0,
            up_acked: 0.0,
            up_acked_per_segment: f64::INFINITY,
        }
    }
}

/// Number of round trips after which the growth of the bound no longer doubles
/// (RaiseInflightLongtermSlope).
const MAX_UP_ROUNDS: u32 = 30;

impl Model {
    /// StartProbeBW_DOWN, and EnterProbeBW with it
    pub(super) fn start_probe_bw_down(&mut self, now: Instant) {
        self.reset_congestion_signals();
        self.cycle.up_acked_per_segment = f64::INFINITY;
        self.pick_probe_wait(now);
        self.cycle.stamp = now;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::ProbeBw(Phase::Down);
    }

    /// StartProbeBW_REFILL
    pub(super) fn start_probe_bw_refill(&mut self) {
        self.short_term.reset();
        self.cycle.up_rounds = 0;
        self.cycle.up_acked = 0.0;
        self.cycle.precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::ProbeBw(Phase::Refill);
    }

    /// StartProbeBW_UP
    fn start_probe_bw_up(&mut self, rs: &Sample) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.full.reset(rs.rate);
        self.state = State::ProbeBw(Phase::Up);
        self.raise_inflight_longterm_slope();
    }

    /// UpdateProbeBWCyclePhase
    pub(super) fn update_probe_bw_cycle_phase(&mut self, rs: &Sample) {
        if !self.full.reached || self.adapt_long_term_model(rs) {
            return;
        }
        let State::ProbeBw(phase) = self.state else {
            return;
        };
        match phase {
            Phase::Down | Phase::Cruise if self.is_time_to_probe(rs.now) => {
                self.start_probe_bw_refill();
            }
            Phase::Down if self.is_time_to_cruise(rs) => {
                self.state = State::ProbeBw(Phase::Cruise);
            }
            Phase::Refill if self.rounds.start => {
                self.cycle.is_probe_sample = true;
                self.start_probe_bw_up(rs);
            }
            Phase::Up if self.is_time_to_go_down(rs) => {
                self.cycle.too_high = false;
                self.start_probe_bw_down(rs.now);
            }
            _ => {}
        }
    }

    /// PickProbeWait
    fn pick_probe_wait(&mut self, now: Instant) {
        let draw = Draw::new(now, self.delivered);
        self.cycle.rounds_since_probe_up = draw.bit();
        let spread = self.params.probe_wait_spread.mul_f64(draw.share());
        self.cycle.wait = self.params.probe_wait_min + spread;
    }

    /// IsTimeToProbeBW
    fn is_time_to_probe(&self, now: Instant) -> bool {
        now.saturating_since(self.cycle.stamp) > self.cycle.wait
            || self.cycle.rounds_since_probe_up as f64 >= self.reno_rounds()
    }

    /// The number of round trips in which Reno regrows the half that it gives up, within bounds
    /// (IsRenoCoexistenceProbeTime).
    pub(super) fn reno_rounds(&self) -> f64 {
        let most = f64::from(self.params.probe_wait_rounds.get());
        (self.target_inflight() / self.smss).min(most)
    }

    /// IsTimeToCruise
    fn is_time_to_cruise(&self, rs: &Sample) -> bool {
        rs.in_flight <= self.inflight_with_headroom()
            && rs.in_flight <= self.inflight(self.max_bw.max(), 1.0)
    }

    /// IsTimeToGoDown
    fn is_time_to_go_down(&mut self, rs: &Sample) -> bool {
        if self.cycle.too_high && rs.in_flight >= self.inflight_longterm {
            self.cycle.precautionary = true;
            return true;
        }
        if self.is_cwnd_limited() && self.cwnd >= self.inflight_longterm {
            // The bound limits the bandwidth, so that the rate does not measure the path.
            self.full.reset(rs.rate);
            return false;
        }
        self.full.now
    }

    /// RaiseInflightLongtermSlope
    fn raise_inflight_longterm_slope(&mut self) {
        let growth = f64::from(1_u32 << self.cycle.up_rounds);
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(MAX_UP_ROUNDS);
        self.cycle.up_acked_per_segment = (self.cwnd / growth).max(self.smss);
    }

    /// ProbeInflightLongtermUpward
    fn probe_inflight_longterm_upward(&mut self, rs: &Sample) {
        if !self.is_cwnd_limited() || self.cwnd < self.inflight_longterm {
            return;
        }
        self.cycle.up_acked += rs.newly_acked;
        let segments = (self.cycle.up_acked / self.cycle.up_acked_per_segment).floor();
        if segments >= 1.0 {
            self.cycle.up_acked -= segments * self.cycle.up_acked_per_segment;
            self.inflight_longterm += segments * self.smss;
        }
        if self.rounds.start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// AdaptLongTermModel. Returns whether it changed the state.
    fn adapt_long_term_model(&mut self, rs: &Sample) -> bool {
        let in_probe_bw = matches!(self.state, State::ProbeBw(_));
        if self.cycle.ack_phase == AckPhase::ProbeStarting && self.rounds.start {
            self.cycle.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.cycle.ack_phase == AckPhase::ProbeStopping && self.rounds.start {
            self.cycle.is_probe_sample = false;
            self.cycle.ack_phase = AckPhase::Init;
            if in_probe_bw && !rs.app_limited {
                // AdvanceMaxBwFilter
                self.cycle.count += 1;
            }
            if in_probe_bw && self.cycle.precautionary && !self.cycle.too_high {
                self.start_probe_bw_refill();
                return true;
            }
        }
        if self.is_inflight_too_high(rs.tx_in_flight, rs.lost)
            || self.inflight_longterm == f64::INFINITY
        {
            return false;
        }
        self.inflight_longterm = self.inflight_longterm.max(rs.tx_in_flight);
        if self.state == State::ProbeBw(Phase::Up) {
            self.probe_inflight_longterm_upward(rs);
        }
        false
    }
}
