//! H-TCP (draft-leith-tcp-htcp-06; Leith and Shorten, PFLDnet 2004): Reno with growth that depends
//! on the time since the last congestion event, and with a reduction that depends on the round-trip
//! times.
//!
//! For `delta_l` after a congestion event the window grows by one segment per round trip. After
//! that it grows by `1 + 10 (Δ - delta_l) + ((Δ - delta_l) / 2)²` segments per round trip. A long
//! path is thus filled in seconds, while a short path with frequent losses is shared as with Reno.
//!
//! Adaptive backoff reduces the window to the share `RTT_min / RTT_max`, between 0.5 and 0.8, which
//! just empties a queue that was full at the loss. If the throughput has changed by more than
//! `delta_b` since the previous congestion event (bandwidth switch), the window is halved. Growth
//! is scaled by `2 (1 - β)`, so that the mean window at a given loss rate is Reno's.
//!
//! RTT scaling multiplies growth in the high-speed regime by `RTT_min / rtt_ref`, with a minimum of
//! one segment. Flows of different round-trip times then grow equally per second, not per round
//! trip.
//!
//! # Linux
//! `form = "linux"`, the default of `stack = "linux"`, is Linux's module; see [`linux`].
//!
//! # Choices that the sources leave open
//! - `RTT_max` is the largest round-trip time since the last congestion event. The throughput of a
//!   congestion epoch is the largest of its round trips, without those in a recovery.
//! - An ACK counts by the number of segments that it acknowledges, so that delayed ACKs do not slow
//!   the growth of the window. It adds at most this number.
//! - The time since a timeout counts from the first acknowledgment after it.
//!
//! # Not implemented
//! - Nothing of the draft's algorithm.

mod linux;

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, Duration, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Ack, ControlParams, Family, HyStartUse, Idle, Init, Signal,
    classic::{Classic, Law, Setup, Window},
    params::{Form, OrStack, ReductionBase, Share, SlowStartLimit, VirtualRtt},
    ticks::Clock,
    window::{rounded_up, whole_segments},
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "htcp",
    title: "H-TCP",
    summary: "Reno whose growth increases with the time since the last loss. A loss reduces the window to the share \
              that keeps the path full. For long paths with large windows.",
    sources: &[
        Source {
            id: "draft-leith-tcp-htcp-06",
            items: &["H-TCP algorithm", "adaptive backoff", "RTT scaling"],
        },
        Source {
            id: "Leith and Shorten, PFLDnet 2004",
            items: &["α(Δ)", "β"],
        },
    ],
};

/// Bounds of the share of the window that remains after adaptive backoff.
const BETA: (f64, f64) = (0.5, 0.8);
/// Coefficients of `α(Δ) = 1 + 10 (Δ - Δ_L) + ((Δ - Δ_L) / 2)²`, in segments per second and
/// segments per second squared.
const LINEAR: f64 = 10.0;
const QUADRATIC: f64 = 0.25;

/// Parameters of H-TCP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// As published, or as in Linux.
    pub form: OrStack<Form>,
    /// `Δ_L`: the time after a congestion event with the growth of Reno (draft: 1 s).
    pub delta_l: Duration,
    /// Adaptive backoff: a reduction leaves `RTT_min / RTT_max` of the window, from 0.5 to 0.8.
    /// Otherwise it leaves half.
    pub adaptive_backoff: bool,
    /// `Δ_B`: the relative change of throughput between two congestion events above which adaptive
    /// backoff leaves half of the window (draft: 0.2).
    pub delta_b: Share,
    /// RTT scaling: growth in the high-speed regime is multiplied by `RTT_min / rtt_ref`.
    pub rtt_scaling: bool,
    /// The round-trip time at which RTT scaling does not change growth (100 ms).
    pub rtt_ref: VirtualRtt,
    /// Largest growth by one ACK in slow start (`L` of RFC 3465 §2.3; RFC 5681 §3.1 equation 2 has
    /// 1).
    pub slow_start_limit: SlowStartLimit,
    /// The base of a reduction: FlightSize (RFC 5681 §3.1 equation 4) or cwnd.
    pub reduce_from: OrStack<ReductionBase>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            form: OrStack::Stack,
            delta_l: Duration::from_secs(1),
            adaptive_backoff: true,
            delta_b: Share::new(0.2),
            rtt_scaling: true,
            rtt_ref: VirtualRtt::from_millis(100),
            slow_start_limit: SlowStartLimit::default(),
            reduce_from: OrStack::Stack,
        }
    }
}

impl ControlParams for Params {
    const FAMILY: Family = Family::LossBased;

    fn decrease_factor(&self) -> Option<f64> {
        (!self.adaptive_backoff).then_some(BETA.0)
    }
    fn hystart(&self) -> HyStartUse {
        HyStartUse::Rfc9406
    }
}

/// H-TCP.
pub type Htcp = Classic<HtcpLaw>;

/// The window law of H-TCP. Windows are in segments.
#[derive(Debug)]
pub struct HtcpLaw {
    form: Form,
    delta_l: Duration,
    adaptive_backoff: bool,
    delta_b: f64,
    /// `rtt_ref`, if growth is scaled.
    rtt_ref: Option<Duration>,
    /// [`Form::Published`]: exact.
    clock: Clock,
    min_rtt: Duration,
    /// Time of the latest acknowledgment.
    now: Instant,
    epoch: Epoch,
    round: Round,
    /// Growth of [`Form::Linux`].
    count: linux::Count,
}

/// State of a congestion epoch: the time since the last congestion event.
#[derive(Debug, Clone, Copy)]
pub struct Epoch {
    /// The last congestion event; `None` until the first acknowledgment after it.
    began: Option<Instant>,
    /// `β` of the last congestion event.
    beta: f64,
    /// `RTT_max`.
    max_rtt: Duration,
    throughput: Throughput,
    /// `B(k)`: the largest throughput of the previous epoch, if it was measured.
    throughput_before: Option<f64>,
    /// The throughput was unchanged at the previous event ([`Form::Linux`]).
    is_steady: bool,
}

/// Throughput of an epoch, in bytes per second; `None` before the end of its first round trip.
#[derive(Debug, Clone, Copy, Default)]
struct Throughput {
    /// Mean of its round trips ([`Form::Linux`]).
    mean: Option<f64>,
    /// `B(k + 1)`.
    largest: Option<f64>,
}

/// The current round trip.
#[derive(Debug, Clone, Copy, Default)]
struct Round {
    number: u64,
    /// `None` if its throughput is not measured: in the first round trip, in a recovery, or with a
    /// pause.
    began: Option<Instant>,
    delivered: Bytes,
}

impl HtcpLaw {
    /// `α`, in segments per round trip.
    fn alpha(&self) -> f64 {
        let delta = self
            .epoch
            .began
            .map_or(Duration::ZERO, |began| self.clock.between(began, self.now));
        let high_speed = delta.saturating_sub(self.delta_l).as_secs_f64();
        let mut alpha = 1.0;
        if high_speed > 0.0 {
            alpha = 1.0 + LINEAR * high_speed + QUADRATIC * high_speed * high_speed;
            alpha = self.scaled(alpha);
        }
        2.0 * (1.0 - self.epoch.beta) * alpha
    }

    /// RTT scaling.
    fn scaled(&self, alpha: f64) -> f64 {
        let min_rtt = self.rounded(self.min_rtt).as_secs_f64();
        match (self.form, self.rtt_ref) {
            (Form::Published, None) => alpha,
            (Form::Linux, None) => alpha.floor(),
            (Form::Published, Some(reference)) => {
                (alpha * min_rtt / reference.as_secs_f64()).max(1.0)
            }
            (Form::Linux, Some(reference)) => {
                linux::scaled(alpha, min_rtt, reference.as_secs_f64())
            }
        }
    }

    /// Rounds a round-trip time to the clock of the form.
    fn rounded(&self, rtt: Duration) -> Duration {
        self.clock.rounded_up(rtt)
    }

    /// `RTT_min / RTT_max`, from 0.5 to 0.8; `None` without a sample.
    fn ratio(&self) -> Option<f64> {
        let Epoch { max_rtt, .. } = self.epoch;
        let [min, max] = [self.min_rtt, max_rtt].map(|rtt| self.rounded(rtt).as_secs_f64());
        let ratio = (max > 0.0).then(|| (min / max).clamp(BETA.0, BETA.1))?;
        Some(match self.form {
            Form::Published => ratio,
            Form::Linux => linux::whole_parts(ratio),
        })
    }

    /// `β` at a congestion event, and whether the throughput is unchanged.
    fn beta(&self) -> (f64, bool) {
        let Epoch {
            throughput,
            throughput_before,
            is_steady,
            ..
        } = self.epoch;
        let before = throughput_before.zip(throughput.largest);
        let changed = before.is_some_and(|(old, new)| (new - old).abs() / old > self.delta_b);
        let adapts = self.adaptive_backoff
            && !changed
            && match self.form {
                Form::Published => before.is_some(),
                Form::Linux => is_steady,
            };
        let beta = self.ratio().filter(|_| adapts).unwrap_or(BETA.0);
        (beta, !changed)
    }

    /// Handles a congestion event and returns the share of the window that remains.
    fn back_off(&mut self) -> f64 {
        let (beta, is_steady) = self.beta();
        let Epoch {
            throughput,
            throughput_before,
            ..
        } = self.epoch;
        self.epoch = Epoch {
            began: None,
            beta,
            max_rtt: Duration::ZERO,
            throughput: Throughput::default(),
            throughput_before: throughput.largest.or(throughput_before),
            is_steady,
        };
        self.round.began = None;
        self.count = linux::Count::after(beta);
        beta
    }

    fn reduced(&mut self, flight: f64) -> f64 {
        let reduced = flight * self.back_off();
        self.whole(reduced).max(2.0)
    }

    /// A round trip ended.
    fn measure_throughput(&mut self, took: Duration) {
        if took.is_zero() {
            return;
        }
        let latest = self.round.delivered.get() as f64 / took.as_secs_f64();
        let throughput = &mut self.epoch.throughput;
        let measured = match (self.form, throughput.mean) {
            (Form::Linux, Some(mean)) => mean + linux::THROUGHPUT_WEIGHT * (latest - mean),
            _ => latest,
        };
        throughput.mean = Some(measured);
        throughput.largest = Some(
            throughput
                .largest
                .map_or(measured, |most| most.max(measured)),
        );
    }
}

impl Law for HtcpLaw {
    type Params = Params;
    type Count = f64;
    type Saved = Epoch;

    fn new(params: &Params, init: &Init) -> (Self, Setup) {
        let form = params.form.or(init.stack.form);
        let law = Self {
            form,
            delta_l: params.delta_l,
            adaptive_backoff: params.adaptive_backoff,
            delta_b: params.delta_b.get(),
            rtt_ref: params.rtt_scaling.then(|| params.rtt_ref.get()),
            clock: Clock::new(match form {
                Form::Published => Duration::ZERO,
                Form::Linux => init.stack.clock_tick,
            }),
            min_rtt: Duration::ZERO,
            now: Instant::from_picos(0),
            epoch: Epoch {
                began: None,
                beta: BETA.0,
                max_rtt: Duration::ZERO,
                throughput: Throughput::default(),
                throughput_before: None,
                is_steady: false,
            },
            round: Round::default(),
            count: linux::Count::after(BETA.0),
        };
        let setup = Setup::new(params.slow_start_limit, params.reduce_from, true, init);
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

    #[inline]
    fn measure(&mut self, ack: &Ack) {
        self.now = ack.now;
        self.min_rtt = ack.min_rtt;
        if self.form == Form::Linux && ack.in_recovery {
            // The time counts from the last acknowledgment of a recovery.
            self.epoch.began = None;
        }
        self.epoch.began.get_or_insert(ack.now);
        if ack.in_recovery {
            self.round.began = None;
            return;
        }
        if let Some(rtt) = ack.rtt {
            self.epoch.max_rtt = self.epoch.max_rtt.max(rtt);
        }
        self.round.delivered += ack.delivered;
        if ack.round != self.round.number {
            if let Some(began) = self.round.began {
                self.measure_throughput(ack.now.saturating_since(began));
            }
            self.round = Round {
                number: ack.round,
                began: Some(ack.now),
                delivered: Bytes::ZERO,
            };
        }
    }

    #[inline]
    fn avoid_congestion(&mut self, window: &mut Window<f64>, _ack: &Ack, acked: f64) {
        let alpha = self.alpha();
        match self.form {
            Form::Published => window.cwnd += acked * (alpha / window.cwnd).min(1.0),
            Form::Linux => self.count.grow(window, acked, alpha),
        }
    }

    fn reduce(&mut self, _window: &Window<f64>, flight: f64, _signal: Signal) -> Window<f64> {
        Window::of(self.reduced(flight))
    }
    fn ssthresh_at_timeout(&mut self, _window: &Window<f64>, flight: f64) -> f64 {
        self.reduced(flight)
    }
    fn on_idle(&mut self, _event: &Idle) {
        self.round.began = None;
    }
    fn saved(&self) -> Epoch {
        self.epoch
    }
    fn restore(&mut self, epoch: Epoch, restored: bool) {
        if restored {
            self.epoch = epoch;
        }
    }
    /// `alpha` in segments per round trip, and `beta` of the last reduction.
    fn state(&self) -> Vec<(&'static str, f64)> {
        vec![("alpha", self.alpha()), ("beta", self.epoch.beta)]
    }
}
