//! TCP Vegas (Brakmo and Peterson 1995): the window follows the number of its packets in queues.
//!
//! Once per round trip the expected rate `cwnd / BaseRTT`, without any queue, is compared with the
//! actual rate `cwnd / RTT`. The difference times `BaseRTT` is the number of packets queued: below
//! `alpha` the window grows by one in the next round trip, above `beta` it shrinks by one. Slow
//! start doubles the window every other round trip, keeps it constant in between, and ends when
//! more than `gamma` packets are queued. A single flow thus remains without loss; beside loss-based
//! flows it yields.
//!
//! # Differs from the paper
//! - Thresholds are packets, following the paper's interpretation as buffers in §III-B; in the
//!   paper they are rates.
//! - `BaseRTT` is the smallest round-trip time of data segments, without the handshake.
//! - `RTT` is the mean of the round trip's samples, as in ns-2's Vegas. With `rtt = "segment"` it
//!   is that of the segment whose acknowledgment ends the round trip, the paper's distinguished
//!   segment. That segment is the first of the burst that a doubled window sends, so it encounters
//!   no queue, and slow start then ends by losses.
//! - The actual rate is computed from the window, not from the bytes sent in the round trip. A
//!   round trip in which the window was not used is not evaluated.
//! - The window changes at once at the end of a round trip, by one segment; the paper spreads the
//!   change over the next round trip.
//! - §III-A does not specify the reduction by a loss: `beta_loss` is half as in RFC 5681. By the
//!   endpoint's rule, only a loss of data sent after the last reduction reduces the window again.
//!
//! # Linux
//! `form = "linux"`, the default of `stack = "linux"`, is Linux's module as measured on Linux 6.12;
//! see [`linux`].
//!
//! # Not implemented
//! - The retransmission rules of §III-A: no segment is retransmitted at the first duplicate ACK, or
//!   at the first two ACKs after a retransmission, because its fine-grained timeout has expired.
//!   The stack detects losses (`transport.recovery`).
//! - The spike suppression and the paced slow start of later versions.

mod linux;

use anabranch_core::{
    registry::{Meta, Source},
    units::Duration,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::linux::Rounds;
use super::{
    Ack, ControlParams, Family, HyStartUse, Idle, Init, Signal,
    classic::{Classic, Law, Setup, Window},
    params::{DecreaseFactor, Form, OrStack, Packets, ReductionBase, SlowStartLimit},
    rtt_samples::RttSamples,
    window::{SegmentCount, rounded_up, whole_segments},
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "vegas",
    title: "TCP Vegas",
    summary: "Keeps a few of the flow's packets in the queue, estimated from the growth of the round-trip time. The \
              first delay-based control.",
    sources: &[Source {
        id: "Brakmo and Peterson, IEEE JSAC 13-8 (1995)",
        items: &["§III-B", "§III-C"],
    }],
};

/// The round-trip time that Vegas uses for a round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum RttEstimate {
    /// The mean of its samples.
    #[default]
    Mean,
    /// Smallest sample.
    Least,
    /// The sample of the segment whose acknowledgment ends the round trip (§III-B's distinguished
    /// segment).
    Segment,
}

/// Parameters of Vegas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct Params {
    /// As published, or as in Linux.
    pub form: OrStack<Form>,
    /// Packets queued below which the window grows (§III-B: 1; Linux: 2).
    pub alpha: OrStack<Packets>,
    /// Packets queued above which the window shrinks (§III-B: 3; Linux: 4).
    pub beta: OrStack<Packets>,
    /// Packets queued above which slow start ends (§III-C: 1).
    pub gamma: Packets,
    /// The share of the window that remains after a loss (RFC 5681 §3.1: half).
    pub beta_loss: DecreaseFactor,
    /// Largest growth by one ACK in slow start (`L` of RFC 3465 §2.3; RFC 5681 §3.1 equation 2 has
    /// 1).
    pub slow_start_limit: SlowStartLimit,
    /// The round-trip time for the estimate of the queue (§III-B): the mean of a round trip, or its
    /// minimum in Linux.
    pub rtt: OrStack<RttEstimate>,
    /// The base of a reduction: FlightSize (RFC 5681 §3.1 equation 4) or cwnd.
    pub reduce_from: OrStack<ReductionBase>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            form: OrStack::Stack,
            alpha: OrStack::Stack,
            beta: OrStack::Stack,
            gamma: Packets::new(1),
            beta_loss: DecreaseFactor::new(0.5),
            slow_start_limit: SlowStartLimit::default(),
            rtt: OrStack::Stack,
            reduce_from: OrStack::Stack,
        }
    }
}

impl Params {
    /// `alpha` and `beta` in this form. A default of `alpha` is limited to an explicit `beta`.
    fn thresholds(&self, form: Form) -> (Packets, Packets) {
        let (alpha, beta) = match form {
            Form::Published => (1, 3),
            Form::Linux => (2, 4),
        };
        let beta = self.beta.or(Packets::new(beta));
        (self.alpha.or(Packets::new(alpha).min(beta)), beta)
    }
}

impl Serialize for Params {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, to)
    }
}

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let params = Self::deserialize(from)?;
        let (alpha, beta) = params.thresholds(params.form.or(Form::Published));
        if alpha > beta {
            return Err(serde::de::Error::custom(format!(
                "`alpha` ({}) is above `beta` ({})",
                String::from(alpha),
                String::from(beta)
            )));
        }
        Ok(params)
    }
}

impl ControlParams for Params {
    const FAMILY: Family = Family::DelayBased;

    fn decrease_factor(&self) -> Option<f64> {
        Some(self.beta_loss.get())
    }
    fn hystart(&self) -> HyStartUse {
        HyStartUse::None
    }
}

/// Vegas.
pub type Vegas = Classic<VegasLaw>;

/// The window law of Vegas. Windows are in segments.
#[derive(Debug)]
pub struct VegasLaw {
    form: Form,
    /// In packets queued.
    alpha: f64,
    beta: f64,
    gamma: f64,
    beta_loss: f64,
    estimate: RttEstimate,
    round: u64,
    /// The current round trip is outside a recovery, and the window was used throughout.
    whole_round: bool,
    /// Slow start grows the window in this round trip and keeps it constant in the next.
    doubling: bool,
    /// Packets queued, by the last estimate.
    queued: f64,
    /// The smallest round-trip time of a data segment. The SYN does not count: its round-trip time
    /// lacks the serialization time of a full segment, which a window of hundreds of segments would
    /// interpret as a queue.
    base_rtt: Option<Duration>,
    samples: RttSamples,
    /// Round trips of [`Form::Linux`].
    rounds: Rounds,
}

impl VegasLaw {
    /// §III-B and §III-C.
    fn end_round(&mut self, window: &mut Window<f64>, base: Duration, rtt: Duration) {
        let share = 1.0 - base.as_secs_f64() / rtt.as_secs_f64();
        self.queued = window.cwnd * share.max(0.0);
        if window.in_slow_start() {
            // Only a window that was constant for a round trip yields a valid estimate.
            if !self.doubling && self.queued > self.gamma {
                window.ssthresh = window.cwnd.max(2.0);
            }
        } else if self.queued < self.alpha {
            window.cwnd += 1.0;
        } else if self.queued > self.beta {
            window.cwnd = (window.cwnd - 1.0).max(2.0);
            // Otherwise slow start would begin again.
            window.ssthresh = window.ssthresh.min(window.cwnd);
        }
    }

    /// The smallest round-trip time so far, and that of the round trip that ends with `ack`.
    fn base_and_rtt(&self, samples: RttSamples, ack: &Ack) -> Option<(Duration, Duration)> {
        let rtt = match self.estimate {
            RttEstimate::Mean => samples.mean(),
            RttEstimate::Least => samples.least(),
            RttEstimate::Segment => ack.rtt,
        }
        .unwrap_or(ack.srtt);
        self.base_rtt
            .filter(|_| !rtt.is_zero())
            .map(|base| (base, rtt))
    }

    fn reduced(&self, flight: f64) -> f64 {
        self.whole(flight * self.beta_loss).max(2.0)
    }
}

impl Law for VegasLaw {
    type Params = Params;
    type Count = f64;
    type Saved = ();

    fn new(params: &Params, init: &Init) -> (Self, Setup) {
        let form = params.form.or(init.stack.form);
        let (alpha, beta) = params.thresholds(form);
        let law = Self {
            form,
            alpha: alpha.as_f64(),
            beta: beta.as_f64(),
            gamma: params.gamma.as_f64(),
            beta_loss: params.beta_loss.get(),
            estimate: params.rtt.or(match form {
                Form::Published => RttEstimate::Mean,
                Form::Linux => RttEstimate::Least,
            }),
            round: 0,
            whole_round: false,
            doubling: true,
            queued: 0.0,
            base_rtt: None,
            samples: RttSamples::default(),
            rounds: Rounds::new(init.smss),
        };
        let setup = Setup::new(params.slow_start_limit, params.reduce_from, false, init);
        (law, setup)
    }

    fn whole(&self, window: f64) -> f64 {
        match self.form {
            Form::Published => window,
            Form::Linux => whole_segments(window),
        }
    }
    #[inline]
    fn counted(&self, acked: f64) -> f64 {
        match self.form {
            Form::Published => acked,
            Form::Linux => rounded_up(acked),
        }
    }
    fn grows_unused(&self) -> bool {
        self.form == Form::Linux
    }

    #[inline]
    fn measure(&mut self, ack: &Ack) {
        let rtt = match self.form {
            Form::Published => ack.rtt,
            Form::Linux => ack.rtt.or(ack.rtt_by_timestamp),
        };
        if let Some(rtt) = rtt {
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
            self.samples.add(rtt);
        }
        if ack.in_recovery || !ack.cwnd_limited {
            self.whole_round = false;
        }
        if ack.in_recovery && self.form == Form::Linux {
            self.restart_rounds();
        }
    }

    /// The window changes at the end of a round trip. Slow start grows it in every other round
    /// trip.
    #[inline]
    fn slow_starts(&mut self, window: &mut Window<f64>, ack: &Ack) -> bool {
        if self.form == Form::Linux {
            return self.slow_starts_as_linux(window, ack);
        }
        if ack.round != self.round {
            self.round = ack.round;
            let samples = std::mem::take(&mut self.samples);
            if self.whole_round
                && let Some((base, rtt)) = self.base_and_rtt(samples, ack)
            {
                self.end_round(window, base, rtt);
            }
            self.doubling = !(self.whole_round && self.doubling);
            self.whole_round = true;
        }
        window.in_slow_start() && self.doubling
    }

    /// The window is constant until the round trip ends.
    #[inline]
    fn avoid_congestion(&mut self, window: &mut Window<f64>, ack: &Ack, acked: f64) {
        if self.form == Form::Linux {
            self.rounds.grow_as_reno(window, ack, acked);
        }
    }

    fn reduce(&mut self, _window: &Window<f64>, flight: f64, _signal: Signal) -> Window<f64> {
        self.rounds.wait_for(flight);
        Window::of(self.reduced(flight))
    }
    fn ssthresh_at_timeout(&mut self, _window: &Window<f64>, flight: f64) -> f64 {
        self.rounds.wait_for(flight);
        self.reduced(flight)
    }
    fn end_stage(&mut self) {
        self.whole_round = false;
        self.doubling = true;
    }
    fn on_idle(&mut self, _event: &Idle) {
        self.end_stage();
        if self.form == Form::Linux {
            self.restart_rounds();
            self.base_rtt = None;
        }
    }
    fn saved(&self) {}
    fn restore(&mut self, _saved: (), restored: bool) {
        if restored {
            self.end_stage();
        }
    }
    /// `queued`: the packets in queues, by the last estimate.
    fn state(&self) -> Vec<(&'static str, f64)> {
        vec![("queued", self.queued)]
    }
}
