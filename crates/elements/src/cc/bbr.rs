//! BBR, version 1: sends at the bandwidth that it measures and keeps about twice the
//! bandwidth-delay product in flight, whatever is lost or marked.
//!
//! Cardwell, Cheng, Gunn, Yeganeh and Jacobson, "BBR: Congestion-based congestion control", ACM
//! Queue 14 (2016) and CACM 60 (2017); draft-cardwell-iccrg-bbr-congestion-control-00. The model of
//! the path is the largest delivery rate of the last ten round trips (BtlBw) and the smallest
//! round-trip time of the last ten seconds (RTprop). *Startup* doubles the rate every round trip
//! until the bandwidth stops growing, *Drain* takes away the queue that this has made, *ProbeBW*
//! runs a cycle of eight phases (a quarter more, a quarter less, six at the bandwidth), and
//! *ProbeRTT* empties the pipe for 200 ms when the smallest round-trip time has grown old. In the
//! first round trip of a recovery what leaves is what arrives (packet conservation).
//!
//! # Differs from draft 00
//! - Two additions of draft 02 that Linux has too: the rate stays one percent below the bandwidth,
//!   and the window has room for aggregated ACKs (`pacing_margin`, `extra_acked_gain`).
//! - The phase in which ProbeBW begins comes from the time at which it begins, not from a generator
//!   of random numbers.
//!
//! # Differs from Linux
//! - The maximum filters are exact; Linux keeps the three best values.
//! - RTTs of delayed ACKs may renew an expired RTprop, too.
//!
//! # Not implemented
//! - Detection of policers (long-term bandwidth sampling).

mod filter;
mod params;

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, Duration, Instant, Rate},
};

use self::filter::MaxFilter;
pub use self::params::Params;
use super::{
    Ack, Congestion, CongestionControl, Idle, Init, RateSample, Recovered, Rto, Sent, Signal,
    Spurious, Wants,
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "bbr",
    title: "BBR",
    summary: "Measures the bandwidth and the round-trip time of the path, sends at that rate with \
              two bandwidth-delay products at most, and does not slow down for losses. Version 1.",
    sources: &[
        Source {
            id: "Cardwell et al., CACM 60 (2017)",
            items: &["BBR"],
        },
        Source {
            id: "draft-cardwell-iccrg-bbr-congestion-control-00",
            items: &["§4"],
        },
        Source {
            id: "draft-cardwell-iccrg-bbr-congestion-control-02",
            items: &["pacing margin", "extra_acked"],
        },
    ],
};

/// Phases of ProbeBW.
const CYCLE_LEN: u8 = 8;

/// Bytes of a burst at most (draft 00 §4.2.2).
const MAX_QUANTUM: f64 = 65_536.0;

/// What BBR is doing.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    Startup,
    Drain,
    /// Phase of the cycle, and when it began.
    ProbeBw {
        phase: u8,
        since: Instant,
    },
    /// When the window may grow again, once it is down, and the delivered count that ends the
    /// round trip begun then.
    ProbeRtt {
        until: Option<(Instant, f64)>,
    },
}

/// A fast recovery or a timeout under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repair {
    /// None.
    No,
    /// Recovery was entered and nothing acknowledged since.
    Entered,
    /// The first round trip: as much leaves as is delivered.
    Conserving,
    /// Later round trips.
    Growing,
    /// After a timeout, until what was out then has arrived.
    Timeout,
}

/// BBR at work. Boxed: it is large, and every endpoint has room for the largest control.
#[derive(Debug)]
pub struct Bbr(Box<Model>);

/// Amounts are in bytes, rates in bytes per second.
#[derive(Debug)]
struct Model {
    params: Params,
    smss: f64,
    initial_cwnd: f64,
    mode: Mode,
    /// BtlBw
    btl_bw: MaxFilter,
    /// RTprop; none before the first sample.
    rt_prop: Option<Duration>,
    rt_prop_stamp: Instant,
    /// Round trips by the count of what was delivered (draft 00 §4.1.1.3).
    round_count: u64,
    next_round_delivered: f64,
    delivered: f64,
    /// Samples of what was sent before so much was delivered are lower bounds (ProbeRTT).
    app_limited_until: f64,
    /// The largest bandwidth when it last grew, and round trips since.
    full_bw: f64,
    full_bw_count: u32,
    filled_pipe: bool,
    pacing_rate: f64,
    /// An RTT has been seen, and the initial rate was set from it.
    rate_from_rtt: bool,
    cwnd: f64,
    prior_cwnd: f64,
    repair: Repair,
    /// Where the round trip of packet conservation, or the timeout's outstanding data, ends.
    repair_delivered: f64,
    idle_restart: bool,
    extra: ExtraAcked,
}

/// What arrives beyond the bandwidth (draft 02, BBRUpdateACKAggregation).
#[derive(Debug, Default)]
struct ExtraAcked {
    since: Option<Instant>,
    delivered: f64,
    max: MaxFilter,
}

impl Bbr {
    /// A control before its first acknowledgment.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        let smss = init.smss.get() as f64;
        let initial_cwnd = (init.initial_cwnd.get() as f64).max(smss);
        Self(Box::new(Model {
            params: params.clone(),
            smss,
            initial_cwnd,
            mode: Mode::Startup,
            btl_bw: MaxFilter::default(),
            rt_prop: None,
            rt_prop_stamp: Instant::START,
            round_count: 0,
            next_round_delivered: 0.0,
            delivered: 0.0,
            app_limited_until: -1.0,
            full_bw: 0.0,
            full_bw_count: 0,
            filled_pipe: false,
            // Draft 00 §4.2.1: a nominal RTT of 1 ms before the first sample.
            pacing_rate: params.high_gain.get() * initial_cwnd / 1e-3,
            rate_from_rtt: false,
            cwnd: initial_cwnd,
            prior_cwnd: 0.0,
            repair: Repair::No,
            repair_delivered: 0.0,
            idle_restart: false,
            extra: ExtraAcked::default(),
        }))
    }
}

impl Model {
    fn min_window(&self) -> f64 {
        self.params.min_window.as_f64() * self.smss
    }

    fn pacing_gain(&self) -> f64 {
        let params = &self.params;
        match self.mode {
            Mode::Startup => params.high_gain.get(),
            Mode::Drain => 1.0 / params.high_gain.get(),
            Mode::ProbeBw { phase: 0, .. } => params.probe_up_gain.get(),
            Mode::ProbeBw { phase: 1, .. } => params.probe_down_gain.get(),
            Mode::ProbeBw { .. } | Mode::ProbeRtt { .. } => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => self.params.high_gain.get(),
            Mode::ProbeBw { .. } => self.params.cwnd_gain.get(),
            Mode::ProbeRtt { .. } => 1.0,
        }
    }

    /// BBRInflight: `gain` bandwidth-delay products, and room for three bursts.
    fn inflight(&self, gain: f64) -> f64 {
        let Some(rt_prop) = self.rt_prop else {
            return self.initial_cwnd;
        };
        let bdp = self.btl_bw.max() * rt_prop.as_secs_f64();
        let mut inflight = gain * bdp + 3.0 * self.send_quantum();
        if matches!(self.mode, Mode::ProbeBw { phase: 0, .. }) {
            // Looking for more must be possible on the shortest paths, too.
            inflight += 2.0 * self.smss;
        }
        inflight.max(self.min_window())
    }

    /// Draft 00 §4.2.2: a millisecond of data.
    fn send_quantum(&self) -> f64 {
        if self.pacing_rate < 1.2e6 / 8.0 {
            self.smss
        } else if self.pacing_rate < 24e6 / 8.0 {
            2.0 * self.smss
        } else {
            (self.pacing_rate * 1e-3)
                .min(MAX_QUANTUM)
                .max(2.0 * self.smss)
        }
    }

    /// Draft 00 §4.1.1: rounds and BtlBw. Whether a round begins.
    fn update_btl_bw(&mut self, sample: &RateSample) -> bool {
        let prior = sample.prior_delivered.get() as f64;
        let round_start = prior >= self.next_round_delivered;
        if round_start {
            self.next_round_delivered = self.delivered;
            self.round_count += 1;
        }
        let bw = sample.delivered.get() as f64 / sample.interval.as_secs_f64();
        let lower_bound = sample.app_limited || prior <= self.app_limited_until;
        if bw >= self.btl_bw.max() || !lower_bound {
            let rounds = u64::from(self.params.bw_window_rounds.get());
            self.btl_bw.update(self.round_count, rounds, bw);
        }
        if round_start && !lower_bound {
            self.check_full_pipe();
        }
        round_start
    }

    /// Draft 00 §4.3.2.2
    fn check_full_pipe(&mut self) {
        if self.filled_pipe {
            return;
        }
        let bw = self.btl_bw.max();
        if bw >= self.full_bw * self.params.full_bw_growth.get() {
            self.full_bw = bw;
            self.full_bw_count = 0;
            return;
        }
        self.full_bw_count += 1;
        self.filled_pipe = self.full_bw_count >= self.params.full_bw_rounds.get();
    }

    fn update_extra_acked(&mut self, ack: &Ack, delivered: f64) {
        let extra = &mut self.extra;
        let since = *extra.since.get_or_insert(ack.now);
        let bw = self.btl_bw.max();
        let mut expected = bw * ack.now.saturating_since(since).as_secs_f64();
        if extra.delivered <= expected {
            extra.delivered = 0.0;
            extra.since = Some(ack.now);
            expected = 0.0;
        }
        extra.delivered += delivered;
        // No more than a tenth of a second's worth: a guard of draft 02 against outliers.
        let beyond = (extra.delivered - expected).min(self.cwnd).min(bw * 0.1);
        let rounds = u64::from(self.params.bw_window_rounds.get());
        extra.max.update(self.round_count, rounds, beyond.max(0.0));
    }

    /// Draft 00 §4.3.4.3
    fn update_cycle(&mut self, ack: &Ack) {
        let Mode::ProbeBw { phase, since } = self.mode else {
            return;
        };
        let rt_prop = self.rt_prop.unwrap_or(Duration::ZERO);
        let long = ack.now.saturating_since(since) > rt_prop;
        let prior = ack.prior_in_flight.get() as f64;
        let over = match phase {
            0 => long && (ack.lost > Bytes::ZERO || prior >= self.inflight(self.pacing_gain())),
            1 => long || prior <= self.inflight(1.0),
            _ => long,
        };
        if over {
            self.mode = Mode::ProbeBw {
                phase: (phase + 1) % CYCLE_LEN,
                since: ack.now,
            };
        }
    }

    fn check_drain(&mut self, ack: &Ack) {
        if self.mode == Mode::Startup && self.filled_pipe {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && ack.in_flight.get() as f64 <= self.inflight(1.0) {
            self.enter_probe_bw(ack.now);
        }
    }

    /// Any phase but the one that drains (draft 00 §4.3.4.2).
    fn enter_probe_bw(&mut self, now: Instant) {
        // Fibonacci hashing: the upper bits depend on all of the time's.
        let mixed = now.as_picos().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let phase = match mixed % u64::from(CYCLE_LEN - 1) {
            0 => 0,
            #[expect(clippy::cast_possible_truncation, reason = "below 8")]
            n => n as u8 + 1,
        };
        self.mode = Mode::ProbeBw { phase, since: now };
    }

    /// Draft 00 §4.3.5 and §4.1.2
    fn update_rt_prop(&mut self, ack: &Ack) {
        let age = ack.now.saturating_since(self.rt_prop_stamp);
        let expired = self.rt_prop.is_some() && age > self.params.min_rtt_window;
        if let Some(rtt) = ack.rtt
            && !rtt.is_zero()
            && (expired || self.rt_prop.is_none_or(|rt_prop| rtt <= rt_prop))
        {
            self.rt_prop = Some(rtt);
            self.rt_prop_stamp = ack.now;
        }
        if expired && !self.idle_restart && !matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.save_cwnd();
            self.mode = Mode::ProbeRtt { until: None };
        }
        let Mode::ProbeRtt { until } = self.mode else {
            return;
        };
        let in_flight = ack.in_flight.get() as f64;
        self.app_limited_until = self.delivered + in_flight;
        match until {
            None if in_flight <= self.min_window() => {
                let until = ack.now.saturating_add(self.params.probe_rtt_duration);
                self.mode = Mode::ProbeRtt {
                    until: Some((until, self.delivered)),
                };
                self.next_round_delivered = self.delivered;
            }
            // A round trip that began when the window was down has ended as well.
            Some((until, began)) if ack.now >= until && self.next_round_delivered > began => {
                self.rt_prop_stamp = ack.now;
                self.cwnd = self.cwnd.max(self.prior_cwnd);
                if self.filled_pipe {
                    self.enter_probe_bw(ack.now);
                } else {
                    self.mode = Mode::Startup;
                }
            }
            _ => {}
        }
    }

    /// Draft 00 §4.2.1
    fn set_pacing_rate(&mut self, srtt: Duration) {
        if !self.rate_from_rtt && !srtt.is_zero() {
            self.rate_from_rtt = true;
            self.pacing_rate = self.params.high_gain.get() * self.initial_cwnd / srtt.as_secs_f64();
        }
        let bw = self.btl_bw.max();
        if bw > 0.0 {
            let rate = self.pacing_gain() * bw * (1.0 - self.params.pacing_margin.get());
            if self.filled_pipe || rate > self.pacing_rate {
                self.pacing_rate = rate;
            }
        }
    }

    /// BBRSaveCwnd
    fn save_cwnd(&mut self) {
        self.prior_cwnd =
            if self.repair == Repair::No && !matches!(self.mode, Mode::ProbeRtt { .. }) {
                self.cwnd
            } else {
                self.prior_cwnd.max(self.cwnd)
            };
    }

    /// Draft 00 §4.2.3
    fn set_cwnd(&mut self, ack: &Ack, delivered: f64, round_start: bool) {
        let in_flight = ack.in_flight.get() as f64;
        self.cwnd = (self.cwnd - ack.lost.get() as f64).max(self.smss);
        match self.repair {
            Repair::Entered => {
                self.cwnd = in_flight + delivered;
                self.repair = Repair::Conserving;
                self.next_round_delivered = self.delivered;
            }
            Repair::Conserving if round_start => self.repair = Repair::Growing,
            Repair::Timeout if self.delivered >= self.repair_delivered => {
                self.repair = Repair::No;
                self.cwnd = self.cwnd.max(self.prior_cwnd);
            }
            _ => {}
        }
        if self.repair == Repair::Conserving {
            self.cwnd = self.cwnd.max(in_flight + delivered);
        } else {
            let mut target = self.inflight(self.cwnd_gain());
            if self.filled_pipe {
                target += self.params.extra_acked_gain.get() * self.extra.max.max();
                self.cwnd = (self.cwnd + delivered).min(target);
            } else if self.cwnd < target || self.delivered < self.initial_cwnd {
                self.cwnd += delivered;
            }
            if self.repair != Repair::Timeout {
                self.cwnd = self.cwnd.max(self.min_window());
            }
        }
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.cwnd = self.cwnd.min(self.min_window());
        }
        self.cwnd = self.cwnd.max(self.smss);
    }
}

impl CongestionControl for Bbr {
    fn on_sent(&mut self, sent: &Sent) {
        if !self.0.rate_from_rtt {
            self.0.set_pacing_rate(sent.srtt);
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        let model = &mut *self.0;
        let delivered = ack.delivered.get() as f64;
        model.delivered += delivered;
        let mut round_start = false;
        if let Some(sample) = &ack.rate {
            model.delivered = (sample.prior_delivered + sample.delivered).get() as f64;
            round_start = model.update_btl_bw(sample);
        }
        model.update_extra_acked(ack, delivered);
        model.update_cycle(ack);
        model.check_drain(ack);
        model.update_rt_prop(ack);
        if delivered > 0.0 {
            model.idle_restart = false;
        }
        model.set_pacing_rate(ack.srtt);
        model.set_cwnd(ack, delivered, round_start);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        if event.signal == Signal::Loss {
            self.0.save_cwnd();
            self.0.repair = Repair::Entered;
        }
    }

    fn on_recovered(&mut self, _event: &Recovered) {
        let model = &mut *self.0;
        if model.repair != Repair::No {
            model.repair = Repair::No;
            model.cwnd = model.cwnd.max(model.prior_cwnd);
        }
    }

    fn on_rto(&mut self, event: &Rto) {
        let model = &mut *self.0;
        model.save_cwnd();
        model.repair = Repair::Timeout;
        model.repair_delivered = model.delivered + event.in_flight.get() as f64;
        model.full_bw = 0.0;
        model.cwnd = model.smss;
    }

    fn on_spurious(&mut self, _event: &Spurious) {
        let model = &mut *self.0;
        model.full_bw = 0.0;
        model.full_bw_count = 0;
        model.repair = Repair::No;
        model.cwnd = model.cwnd.max(model.prior_cwnd);
    }

    fn on_idle(&mut self, _event: &Idle) {
        // Draft 00 §4.3.4.4: at the bandwidth at once, without looking for more.
        let model = &mut *self.0;
        model.idle_restart = true;
        let bw = model.btl_bw.max();
        if matches!(model.mode, Mode::ProbeBw { .. }) && bw > 0.0 {
            model.pacing_rate = bw * (1.0 - model.params.pacing_margin.get());
        }
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-int cast saturates"
    )]
    fn cwnd(&self) -> Bytes {
        Bytes::new(self.0.cwnd as u64)
    }
    fn ssthresh(&self) -> Option<Bytes> {
        None
    }
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-int cast saturates"
    )]
    fn pacing_rate(&self) -> Option<Rate> {
        Rate::new((self.0.pacing_rate * 8.0).max(1.0) as u64)
    }
    fn wants(&self) -> Wants {
        Wants { rate_samples: true }
    }

    /// `mode` (0 Startup, 1 Drain, 2 ProbeBW, 3 ProbeRTT), `btl_bw` in Mbit/s, `rt_prop` in
    /// milliseconds once known, `pacing_gain`.
    fn state(&self) -> Vec<(&'static str, f64)> {
        let model = &self.0;
        let mode = match model.mode {
            Mode::Startup => 0.0,
            Mode::Drain => 1.0,
            Mode::ProbeBw { .. } => 2.0,
            Mode::ProbeRtt { .. } => 3.0,
        };
        let mut state = vec![
            ("mode", mode),
            ("btl_bw", model.btl_bw.max() * 8.0 / 1e6),
            ("pacing_gain", model.pacing_gain()),
        ];
        state.extend(model.rt_prop.map(|rtt| ("rt_prop", rtt.as_millis_f64())));
        state
    }
}
