//! BBR, version 1: sends at the measured bandwidth and keeps about twice the bandwidth-delay
//! product in flight, independent of losses and marks.
//!
//! Cardwell, Cheng, Gunn, Yeganeh and Jacobson, "BBR: Congestion-based congestion control", ACM
//! Queue 14 (2016) and CACM 60 (2017); draft-cardwell-iccrg-bbr-congestion-control-00. The model of
//! the path is the largest delivery rate of the last ten round trips (BtlBw) and the smallest
//! round-trip time of the last ten seconds (RTprop). *Startup* doubles the rate every round trip
//! until the bandwidth stops growing. *Drain* empties the resulting queue. *ProbeBW* runs a cycle
//! of eight phases (a quarter more, a quarter less, six at the bandwidth). *ProbeRTT* empties the
//! pipe for 200 ms when the smallest round-trip time is old. In the first round trip of a recovery,
//! as much data is sent as is delivered (packet conservation).
//!
//! # Differs from draft 00
//! - It includes two additions of draft 02, which Linux also has: the rate is one percent below the
//!   bandwidth, and the window has room for aggregated ACKs (`pacing_margin`, `extra_acked_gain`).
//! - The first phase of ProbeBW is derived from the time at which it begins, not from a random
//!   number generator.
//!
//! # As in Linux
//! Measured with `scenarios/live/bbr-deep.toml` and `--trace acks`, where RTprop is the handshake's
//! 40.21 ms and a bandwidth-delay product is 67.1 packets:
//! - The target for data in flight is rounded up to pairs of packets: the phase that drains ended
//!   with 74 in flight, while one product and three bursts are 73.1.
//! - A burst of more than two packets is the number of whole packets in 1/1024 s. At a bandwidth of
//!   0.92 packets per millisecond in Startup and 40.2 ms the window is 114, with bursts of two;
//!   three bursts of a millisecond, 2.6 packets each, would make it 116 (captures of
//!   `scenarios/live/bbr-beside-cubic.toml`).
//! - The burst that is about to be sent counts when ProbeBW checks whether its target is in flight.
//!   With a target of 92, its first phase ended at an acknowledgment with 90 in flight in 23 of 26
//!   cycles, and with 92 in three.
//! - A recovery that begins with the acknowledgment that ends another continues that recovery: the
//!   window is neither restored nor reduced. In `scenarios/live/lossy-bbr.toml` it was 178 packets
//!   before and after one of these, with 91 in flight, and grew from 141 to 142 in another. If a
//!   recovery began from any other state it was 85 to 115, the number in flight.
//!
//! # Differs from Linux
//! - The maximum filters are exact; Linux stores the three best values.
//! - RTTs of delayed ACKs may also renew an expired RTprop.
//!
//! # Differs from draft 00, as Linux does
//! - Only an acknowledgment with a reliable rate sample updates rounds and BtlBw. In draft 00 §4.1.1
//!   every acknowledgment does (`rounds = "acknowledgments"`). If its sample is not reliable,
//!   draft-cheng-iccrg-delivery-rate-estimation-00 §3.3 leaves the rate as it was. After a spurious
//!   timeout the originals are acknowledged just after their copies are sent. Each of these
//!   acknowledgments then ends a round trip, and after ten of them BtlBw is the rate of the first,
//!   whose interval includes the timeout.
//!
//! # Not implemented
//! - Detection of policers (long-term bandwidth sampling).

mod control_parameters;
pub(super) mod filter;
mod mode;
mod params;
mod path;

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, Duration, Instant, Rate},
};

pub use self::params::{Params, Rounds};
use self::{control_parameters::Repair, filter::MaxFilter, mode::Mode, path::ExtraAcked};
use super::{
    Ack, Congestion, CongestionControl, Idle, Init, RateSample, Recovered, Rto, Sent, Signal,
    Spurious, Wants,
    window::{whole_bytes, whole_rate},
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

/// State of BBR. Boxed, because it is large and every endpoint has room for the largest control.
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
    /// RTprop; `None` before the first sample.
    rt_prop: Option<Duration>,
    rt_prop_stamp: Instant,
    /// rs.delivery_rate: the last reliable one.
    delivery_rate: f64,
    /// Round trips by the count of delivered data (draft 00 §4.1.1.3).
    round_count: u64,
    next_round_delivered: f64,
    delivered: f64,
    /// Samples of data sent before this much was delivered are lower bounds (ProbeRTT).
    app_limited_until: f64,
    /// The largest bandwidth when it last grew, and the number of round trips since.
    full_bw: f64,
    full_bw_count: u32,
    filled_pipe: bool,
    pacing_rate: f64,
    /// The initial rate was set from a measured RTT.
    rate_from_rtt: bool,
    cwnd: f64,
    prior_cwnd: f64,
    repair: Repair,
    /// The recovery that the current acknowledgment has ended, and its window.
    ended: Option<(Repair, f64)>,
    /// The delivered count at which the round trip of packet conservation ends, or at which the
    /// data outstanding at a timeout is delivered.
    repair_delivered: f64,
    idle_restart: bool,
    extra: ExtraAcked,
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
            delivery_rate: 0.0,
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
            ended: None,
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
}

impl CongestionControl for Bbr {
    fn on_sent(&mut self, sent: &Sent) {
        if !self.0.rate_from_rtt {
            self.0.take_first_rtt(sent.now, sent.srtt);
            self.0.set_pacing_rate(sent.srtt);
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        let model = &mut *self.0;
        model.ended = None;
        let delivered = ack.delivered.get() as f64;
        model.delivered += delivered;
        let mut round_start = false;
        if let Some(sample) = model.round_sample(ack) {
            model.delivered = (sample.prior_delivered + sample.delivered).get() as f64;
            round_start = model.update_btl_bw(&sample);
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
        let model = &mut *self.0;
        if event.signal != Signal::Loss {
            return;
        }
        if let Some((repair, cwnd)) = model.ended.take() {
            (model.repair, model.cwnd) = (repair, cwnd);
            model.save_cwnd();
        } else {
            model.save_cwnd();
            model.repair = Repair::Entered;
        }
    }

    fn on_recovered(&mut self, _event: &Recovered) {
        let model = &mut *self.0;
        if model.repair != Repair::No {
            model.ended = Some((model.repair, model.cwnd));
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

    fn on_lost_syns(&mut self) {
        self.0.cwnd = self.0.smss;
    }
    fn on_idle(&mut self, _event: &Idle) {
        // Draft 00 §4.3.4.4: resumes at the bandwidth, without probing for more.
        let model = &mut *self.0;
        model.idle_restart = true;
        let bw = model.btl_bw.max();
        if matches!(model.mode, Mode::ProbeBw { .. }) && bw > 0.0 {
            model.pacing_rate = bw * (1.0 - model.params.pacing_margin.get());
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
    /// BtlBw
    fn bandwidth_estimate(&self) -> Option<Rate> {
        let bw = self.0.btl_bw.max();
        (bw > 0.0).then(|| whole_rate(bw)).flatten()
    }
    fn wants(&self) -> Wants {
        Wants {
            rate_samples: true,
            ..Wants::default()
        }
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
