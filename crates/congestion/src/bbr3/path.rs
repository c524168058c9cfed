//! The model of the path: round trips, bandwidth, round-trip time, aggregation (draft-ietf-ccwg-bbr
//! §5.5.1 to §5.5.9), and the volumes that follow from it (§5.6.3, §5.6.4.2).

use anabranch_core::units::{Duration, Instant};

use super::{
    Model,
    sample::Sample,
    state::{Phase, State},
};
use crate::bbr::filter::MaxFilter;

/// Largest burst in bytes (§5.6.3).
const MAX_QUANTUM: f64 = 65_536.0;

/// Round trips by the count of delivered data (§5.5.1).
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// BBR.round_count
    pub(super) count: u64,
    /// BBR.next_round_delivered
    next_delivered: f64,
    /// BBR.round_start
    pub(super) start: bool,
    /// BBR.loss_round_start
    pub(super) loss_start: bool,
}

/// Data that arrives beyond the bandwidth (§5.5.9).
#[derive(Debug, Default)]
pub(super) struct ExtraAcked {
    /// BBR.extra_acked_interval_start
    pub(super) since: Option<Instant>,
    /// BBR.extra_acked_delivered
    delivered: f64,
    max: MaxFilter,
}

impl Model {
    /// StartRound
    pub(super) const fn start_round(&mut self) {
        self.rounds.next_delivered = self.delivered;
    }

    /// UpdateRound
    fn update_round(&mut self, rs: &Sample) {
        self.rounds.start = rs
            .prior_delivered
            .is_some_and(|prior| prior >= self.rounds.next_delivered);
        if self.rounds.start {
            self.start_round();
            self.rounds.count += 1;
            self.cycle.rounds_since_probe_up += 1;
        }
    }

    /// UpdateMaxBw
    pub(super) fn update_max_bw(&mut self, rs: &Sample) {
        self.update_round(rs);
        if rs.rate > 0.0 && (rs.rate >= self.max_bw.max() || !rs.app_limited) {
            let cycles = u64::from(self.params.bw_window_cycles.get());
            self.max_bw.update(self.cycle.count, cycles, rs.rate);
        }
    }

    /// BoundBWForModel
    pub(super) fn bw(&self) -> f64 {
        self.max_bw.max().min(self.short_term.bw)
    }

    /// UpdateACKAggregation
    pub(super) fn update_ack_aggregation(&mut self, rs: &Sample) {
        let bw = self.bw();
        let extra = &mut self.extra;
        let since = *extra.since.get_or_insert(rs.now);
        let mut expected = bw * rs.now.saturating_since(since).as_secs_f64();
        if extra.delivered <= expected {
            extra.delivered = 0.0;
            extra.since = Some(rs.now);
            expected = 0.0;
        }
        extra.delivered += rs.newly_acked;
        let beyond = (extra.delivered - expected).min(self.cwnd).max(0.0);
        let rounds = if self.full.reached {
            u64::from(self.params.extra_acked_window_rounds.get())
        } else {
            1
        };
        extra.max.update(self.rounds.count, rounds, beyond);
    }

    /// UpdateMinRTT. Returns whether ProbeRTT is due: BBR.probe_rtt_expired.
    pub(super) fn update_min_rtt(&mut self, rs: &Sample) -> bool {
        let expired = |(_, stamp): (Duration, Instant), window: Duration| {
            rs.now.saturating_since(stamp) > window
        };
        let due = self
            .probe_rtt_min
            .is_some_and(|least| expired(least, self.params.probe_rtt_interval));
        if let Some(rtt) = rs.rtt
            && (due || self.probe_rtt_min.is_none_or(|(least, _)| rtt < least))
        {
            self.probe_rtt_min = Some((rtt, rs.now));
        }
        if let Some(recent) = self.probe_rtt_min
            && self.min_rtt.is_none_or(|least| {
                recent.0 < least.0 || expired(least, self.params.min_rtt_window)
            })
        {
            self.min_rtt = Some(recent);
        }
        due
    }

    /// BDPMultiple: `gain` bandwidth-delay products of `bw`.
    pub(super) fn bdp_multiple(&self, bw: f64, gain: f64) -> f64 {
        match self.min_rtt {
            Some((min_rtt, _)) => gain * bw * min_rtt.as_secs_f64(),
            None => self.initial_cwnd,
        }
    }

    /// TargetInflight
    pub(super) fn target_inflight(&self) -> f64 {
        self.bdp_multiple(self.bw(), 1.0).min(self.cwnd)
    }

    /// BBR.MinPipeCwnd
    pub(super) fn min_window(&self) -> f64 {
        self.params.min_window.as_f64() * self.smss
    }

    /// C.send_quantum
    pub(super) fn send_quantum(&self) -> f64 {
        (self.pacing_rate * 1e-3)
            .min(MAX_QUANTUM)
            .max(2.0 * self.smss)
    }

    /// QuantizationBudget, with TCP's BBR.offload_budget
    fn quantized(&self, volume: f64) -> f64 {
        let volume = volume.max(3.0 * self.send_quantum()).max(self.min_window());
        match self.state {
            // Probing for more bandwidth must be possible on the shortest paths, too.
            State::ProbeBw(Phase::Up) => volume + 2.0 * self.smss,
            _ => volume,
        }
    }

    /// Inflight
    pub(super) fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.quantized(self.bdp_multiple(bw, gain))
    }

    /// BBR.max_inflight
    pub(super) fn max_inflight(&self) -> f64 {
        let gain = self.state.cwnd_gain(&self.params);
        self.quantized(self.bdp_multiple(self.bw(), gain) + self.extra.max.max())
    }

    /// InflightWithHeadroom; infinite without a long-term bound.
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        if self.inflight_longterm == f64::INFINITY {
            return f64::INFINITY;
        }
        let headroom = (self.params.headroom.get() * self.inflight_longterm).max(self.smss);
        (self.inflight_longterm - headroom).max(self.min_window())
    }
}
