//! BBR, version 3: sends at the measured bandwidth, keeps as much data in flight as a model of the
//! path allows, and bounds both by losses.
//!
//! draft-ietf-ccwg-bbr-06 (July 2026; work in progress). The model has a long and a short term.
//! *Long*: the largest delivery rate of the last two cycles (`max_bw`), the smallest round-trip
//! time of the last ten seconds (`min_rtt`), and the volume in flight above which the last probe
//! lost too much (`inflight_longterm`). *Short*: the bounds that result from losses since the last
//! probe (`bw_shortterm`, `inflight_shortterm`).
//!
//! - **Startup** doubles the rate every round trip until the delivery rate stops growing, or until
//!   more than 2 % of a round trip's data is lost in six places; **Drain** empties the queue.
//! - **ProbeBW** runs a cycle: *DOWN* at 90 % until the queue is empty, *CRUISE* at the bandwidth
//!   with 15 % of `inflight_longterm` left to other flows, *REFILL* for a round trip without the
//!   short-term bounds, *UP* at 125 % until the rate no longer grows or more than 2 % is lost. The
//!   interval between probes is two to three seconds, 62 to 63 round trips, or as many round trips
//!   as the window has segments, whichever is least.
//! - **ProbeRTT** halves the data in flight for 200 ms if the round-trip time has had no new
//!   minimum for five seconds.
//!
//! After a probe that lost too much, the next one goes only up to the bound; a full probe follows
//! at once if that one does no harm (precautionary probing, §5.3.3.6). A spurious reduction is
//! undone together with the change of state that it caused (§5.5.11).
//!
//! Version 1 is [`bbr`](super::bbr).
//!
//! # Differs from draft 06
//! - The random parts of the wait are derived from the time and the data delivered so far, not from
//!   a generator, so that a run is reproducible.
//! - A mark (Congestion Experienced) counts as a loss on a connection without SACK: it ends Startup
//!   or the current probe, or enters the short-term model. §3.7 requires a response and does not
//!   specify it.
//! - A timeout reduces the window to one segment, even if the draft's `C.inflight + 1` is more
//!   because RACK has not marked all data lost.
//! - An acknowledgment whose sample spans less than the smallest round-trip time counts neither for
//!   round trips nor for deliveries; the draft drops only its rate.
//! - The state that a spurious recovery restores is saved when the recovery begins. The draft saves
//!   it again with the first loss of every round trip (NoteLoss), when it may already be reduced.
//! - The window to be restored after ProbeRTT is saved before ProbeRTT is entered, not after.
//! - `inflight_longterm` is never below `min_window` when Startup ends by losses.
//!
//! # Differs from Linux
//! - Mainline Linux has only version 1. The authors' branch has its own constants and response to
//!   ECN, which this control does not follow.
//!
//! # Not implemented
//! - Offload: `send_quantum` determines the smallest window (three quanta, §5.5.8.1); the stack
//!   determines the size of bursts (`pacing_burst`).
//! - Requests to the receiver for more or fewer acknowledgments (§4.1.3.3).

mod congestion;
mod control;
mod params;
mod path;
mod probe_bw;
mod probe_rtt;
mod random;
mod sample;
mod startup;
mod state;
#[cfg(test)]
mod tests;

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, Duration, Instant, Rate},
};

pub use self::params::Params;
use self::{
    congestion::{Latest, Losses, ShortTerm, Undo},
    path::{ExtraAcked, Rounds},
    probe_bw::Cycle,
    sample::Sample,
    startup::FullPipe,
    state::State,
};
use super::{
    Ack, Congestion, CongestionControl, Idle, Init, Lost, Recovered, Rto, Sent, Signal, Spurious,
    Wants,
    bbr::filter::MaxFilter,
    window::{whole_bytes, whole_rate},
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "bbr3",
    title: "BBRv3",
    summary: "Measures the bandwidth and the round-trip time of the path and sends at that rate; losses above 2 % of a \
              round trip limit the data in flight. Version 3.",
    sources: &[Source {
        id: "draft-ietf-ccwg-bbr-06",
        items: &["§2", "§4.1", "§5"],
    }],
};

/// The current loss recovery.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Repair {
    /// None.
    No,
    /// Fast recovery: the amount delivered when it began, and whether the model has noted its loss.
    Fast { began: f64, noted: bool },
    /// After a timeout, until this much is delivered: all data outstanding at the timeout.
    Timeout { until: f64 },
}

/// State of BBRv3. Boxed, because it is large and every endpoint has room for the largest control.
#[derive(Debug)]
pub struct Bbr3(Box<Model>);

/// Amounts are in bytes, rates in bytes per second.
#[derive(Debug)]
struct Model {
    params: Params,
    smss: f64,
    initial_cwnd: f64,
    state: State,
    /// BBR.max_bw
    max_bw: MaxFilter,
    /// BBR.min_rtt and BBR.min_rtt_stamp; `None` before the first sample.
    min_rtt: Option<(Duration, Instant)>,
    /// BBR.probe_rtt_min_delay and BBR.probe_rtt_min_stamp
    probe_rtt_min: Option<(Duration, Instant)>,
    /// BBR.inflight_longterm; infinite before a probe has lost too much.
    inflight_longterm: f64,
    short_term: ShortTerm,
    latest: Latest,
    losses: Losses,
    undo: Undo,
    /// C.delivered, and its value at the last acknowledgment.
    delivered: f64,
    delivered_before: f64,
    rounds: Rounds,
    full: FullPipe,
    cycle: Cycle,
    extra: ExtraAcked,
    /// Samples of data sent before this much was delivered are lower bounds (ProbeRTT).
    app_limited_until: f64,
    pacing_rate: f64,
    /// The initial rate was set from a measured RTT.
    rate_from_rtt: bool,
    cwnd: f64,
    /// BBR.prior_cwnd
    prior_cwnd: f64,
    /// The latest round trip with a full window.
    cwnd_full_in: Option<u64>,
    repair: Repair,
    idle_restart: bool,
    /// C.has_selective_acks, as of the last loss.
    selective: bool,
}

impl Bbr3 {
    /// A control before its first acknowledgment.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        let smss = init.smss.get() as f64;
        let initial_cwnd = (init.initial_cwnd.get() as f64).max(smss);
        Self(Box::new(Model {
            params: params.clone(),
            smss,
            initial_cwnd,
            state: State::Startup,
            max_bw: MaxFilter::default(),
            min_rtt: None,
            probe_rtt_min: None,
            inflight_longterm: f64::INFINITY,
            short_term: ShortTerm::NONE,
            latest: Latest::default(),
            losses: Losses::default(),
            undo: Undo::default(),
            delivered: 0.0,
            delivered_before: 0.0,
            rounds: Rounds::default(),
            full: FullPipe::default(),
            cycle: Cycle::default(),
            extra: ExtraAcked::default(),
            app_limited_until: -1.0,
            // §5.6.2: a nominal RTT of 1 ms before the first sample.
            pacing_rate: params.startup_pacing_gain.get() * initial_cwnd / 1e-3,
            rate_from_rtt: false,
            cwnd: initial_cwnd,
            prior_cwnd: 0.0,
            cwnd_full_in: None,
            repair: Repair::No,
            idle_restart: false,
            selective: true,
        }))
    }
}

impl Model {
    /// Updates the total delivered, from the sample or else from the count of the acknowledgment.
    fn update_delivered(&mut self, ack: &Ack) {
        self.delivered = match ack.reliable_rate() {
            Some(rate) => (rate.prior_delivered + rate.delivered).get() as f64,
            None => self
                .delivered
                .max(self.delivered_before + ack.delivered.get() as f64),
        };
        self.delivered_before = self.delivered;
    }

    /// Restores the window after a recovery (§5.6.4.4).
    fn check_recovery_done(&mut self, ack: &Ack) {
        let over = match self.repair {
            Repair::No => false,
            Repair::Fast { .. } => !ack.in_recovery,
            Repair::Timeout { until } => self.delivered >= until,
        };
        if over {
            self.end_recovery();
        }
    }

    fn end_recovery(&mut self) {
        self.repair = Repair::No;
        self.restore_cwnd();
    }
}

impl CongestionControl for Bbr3 {
    fn on_sent(&mut self, sent: &Sent) {
        let model = &mut *self.0;
        model.init_pacing_rate(sent.srtt);
        if sent.in_flight.get() as f64 + model.smss > model.cwnd {
            model.cwnd_full_in = Some(model.rounds.count);
        }
    }

    /// UpdateOnACK
    fn on_ack(&mut self, ack: &Ack) {
        let model = &mut *self.0;
        model.update_delivered(ack);
        if let Repair::Fast { noted, .. } = &mut model.repair
            && !std::mem::replace(noted, true)
        {
            model.note_loss();
        }
        let rs = Sample::new(ack, model.app_limited_until);
        model.init_pacing_rate(ack.srtt);
        model.update_latest_delivery_signals(&rs);
        model.update_congestion_signals(&rs);
        model.update_ack_aggregation(&rs);
        model.check_full_bw_reached(&rs);
        model.check_startup_done(&rs);
        model.check_drain_done(&rs);
        model.update_probe_bw_cycle_phase(&rs);
        let due = model.update_min_rtt(&rs);
        model.check_probe_rtt(&rs, due);
        model.advance_latest_delivery_signals(&rs);
        model.check_recovery_done(ack);
        model.set_pacing_rate(model.state.pacing_gain(&model.params));
        model.set_cwnd(&rs);
        model.losses.just_found = false;
        model.losses.just_marked = false;
    }

    fn on_lost(&mut self, lost: &Lost) {
        let model = &mut *self.0;
        model.delivered = model.delivered.max(lost.delivered.get() as f64);
        model.handle_lost_packet(lost);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        let model = &mut *self.0;
        match event.signal {
            // OnEnterFastRecovery
            Signal::Loss => {
                model.save_state_upon_loss();
                model.repair = Repair::Fast {
                    began: model.delivered,
                    noted: false,
                };
            }
            Signal::EcnCe => model.handle_mark(event.now, event.in_flight.get() as f64),
        }
    }

    fn on_recovered(&mut self, _event: &Recovered) {
        if self.0.repair != Repair::No {
            self.0.end_recovery();
        }
    }

    /// OnEnterRTO
    fn on_rto(&mut self, event: &Rto) {
        let model = &mut *self.0;
        model.save_state_upon_loss();
        model.repair = Repair::Timeout {
            until: model.delivered + event.in_flight.get() as f64,
        };
        model.cwnd = model.smss;
    }

    fn on_spurious(&mut self, _event: &Spurious) {
        let model = &mut *self.0;
        model.repair = Repair::No;
        model.handle_spurious_loss_detection();
    }

    fn on_lost_syns(&mut self) {
        self.0.cwnd = self.0.smss;
    }
    /// HandleRestartFromIdle
    fn on_idle(&mut self, event: &Idle) {
        let model = &mut *self.0;
        model.idle_restart = true;
        model.extra.since = Some(event.now);
        if matches!(model.state, State::ProbeBw(_)) {
            model.set_pacing_rate(1.0);
        } else {
            model.check_probe_rtt_done(event.now);
        }
    }

    #[inline]
    fn cwnd(&self) -> Bytes {
        whole_bytes(self.0.cwnd)
    }
    fn ssthresh(&self) -> Option<Bytes> {
        None
    }
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        whole_rate(self.0.pacing_rate)
    }
    /// BBR.bw: the maximum, limited by the bound that losses set
    fn bandwidth_estimate(&self) -> Option<Rate> {
        let bw = self.0.bw();
        (bw > 0.0).then(|| whole_rate(bw)).flatten()
    }
    fn wants(&self) -> Wants {
        Wants {
            rate_samples: true,
            losses: true,
            ..Wants::default()
        }
    }

    /// `mode` (0 Startup, 1 Drain, 2 DOWN, 3 CRUISE, 4 REFILL, 5 UP, 6 ProbeRTT), `btl_bw` (max_bw)
    /// in Mbit/s, `pacing_gain`; once known `rt_prop` (min_rtt) in milliseconds,
    /// `inflight_longterm` and `inflight_shortterm` in segments, and `bw_shortterm` in Mbit/s.
    /// Names are those of version 1 if the meaning is the same.
    fn state(&self) -> Vec<(&'static str, f64)> {
        let model = &self.0;
        let mbit_per_s = |rate: f64| rate * 8.0 / 1e6;
        let mut state = vec![
            ("mode", model.state.number()),
            ("btl_bw", mbit_per_s(model.max_bw.max())),
            ("pacing_gain", model.state.pacing_gain(&model.params)),
        ];
        state.extend(
            model
                .min_rtt
                .map(|(rtt, _)| ("rt_prop", rtt.as_millis_f64())),
        );
        let bounds = [
            ("inflight_longterm", model.inflight_longterm / model.smss),
            ("inflight_shortterm", model.short_term.inflight / model.smss),
            ("bw_shortterm", mbit_per_s(model.short_term.bw)),
        ];
        state.extend(bounds.into_iter().filter(|(_, bound)| bound.is_finite()));
        state
    }
}
