//! TCP Vegas (Brakmo and Peterson 1995): the window follows how many of its packets wait in queues.
//!
//! Once per round trip, what the window would give without any queue, `cwnd / BaseRTT`, is compared
//! with what it gives, `cwnd / RTT`. The difference times `BaseRTT` is the number of packets queued:
//! below `alpha` the window grows by one in the next round trip, above `beta` it shrinks by one.
//! Slow start doubles the window every other round trip, holds it in between, and ends where more
//! than `gamma` packets are queued. A lone flow so stays without loss; beside loss-based flows it
//! yields.
//!
//! # Differs from the paper
//! - Thresholds are packets, as in §III-B's reading of them as buffers; there they are rates.
//! - `BaseRTT` is the smallest round-trip time of data segments, without the handshake's.
//! - `RTT` is the mean of the round trip's samples, as ns-2's Vegas takes it; with `rtt = "segment"` that of the segment whose
//!   acknowledgment ends the round trip, the paper's distinguished one. That segment leads the burst
//!   that a doubled window is, so it meets no queue: slow start then ends by losses. The actual rate is taken from the window, not from the bytes sent meanwhile: a round trip
//!   in which the window was not used is not looked at.
//! - The window moves at once when a round trip ends, and by one segment; the paper spreads that over
//!   the next round trip.
//! - §III-A leaves open how much a loss takes: `beta_loss` is half as in RFC 5681. It is the
//!   endpoint's rule that only a loss of what was sent after the last reduction reduces again.
//!
//! # Linux
//! `form = "linux"`, the default of `stack = "linux"`, is Linux's module as measured on Linux 6.12; see [`linux`].
//!
//! # Not implemented
//! - The retransmission rules of §III-A: a segment is not retransmitted at the first duplicate ACK, nor
//!   at the first two ACKs after a retransmission, because its fine-grained timeout is over. Losses
//!   are found by the stack (`transport.recovery`).
//! - The spike suppression and the paced slow start that later versions have.

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
    summary: "Keeps a few packets of its own in the queue, counted by the growth of the round-trip \
              time. The first of the delay-based controls.",
    sources: &[Source {
        id: "Brakmo and Peterson, IEEE JSAC 13-8 (1995)",
        items: &["§III-B", "§III-C"],
    }],
};

/// What Vegas takes for the round-trip time of a round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum RttEstimate {
    /// The mean of its samples.
    #[default]
    Mean,
    /// The least of its samples.
    Least,
    /// That of the segment whose acknowledgment ends it (§III-B's distinguished segment).
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
    /// The share of the window that a loss leaves (RFC 5681 §3.1: half).
    pub beta_loss: DecreaseFactor,
    /// What one ACK adds in slow start at most (`L` of RFC 3465 §2.3; RFC 5681 §3.1 equation 2 has 1).
    pub slow_start_limit: SlowStartLimit,
    /// The round-trip time from which the queue is counted (§III-B): the mean of a round trip, or its least in Linux.
    pub rtt: OrStack<RttEstimate>,
    /// What a reduction is taken from: FlightSize (RFC 5681 §3.1 equation 4) or cwnd.
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
    /// `alpha` and `beta` in this form. A default does not pass the bound that is written.
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
    /// The round trip under way is outside a recovery, and the window was used all along.
    whole_round: bool,
    /// Slow start grows in this round trip; it holds the window in the next.
    doubling: bool,
    /// Packets queued, as last looked at.
    queued: f64,
    /// The smallest round-trip time of a data segment. That of the SYN is left out: it is shorter by
    /// what serializing a full segment takes, which a window of hundreds of segments would read as a queue.
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
            // Only a window that stood still for a round trip tells.
            if !self.doubling && self.queued > self.gamma {
                window.ssthresh = window.cwnd.max(2.0);
            }
        } else if self.queued < self.alpha {
            window.cwnd += 1.0;
        } else if self.queued > self.beta {
            window.cwnd = (window.cwnd - 1.0).max(2.0);
            // Or slow start would begin again.
            window.ssthresh = window.ssthresh.min(window.cwnd);
        }
    }

    /// The round-trip time of a round trip that ends with `ack`, and the least so far.
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

    /// The window moves where a round trip ends. Slow start grows it in every other round trip.
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

    /// The window holds until the round trip ends.
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
    /// `queued`: the packets in queues, as last looked at.
    fn state(&self) -> Vec<(&'static str, f64)> {
        vec![("queued", self.queued)]
    }
}
