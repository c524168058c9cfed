//! Westwood+ (Grieco and Mascolo, CCR 2004): Reno that measures the rate at which its data is
//! acknowledged, and reduces its window to the bandwidth-delay product at that rate.
//!
//! The estimate `BWE` is the output of a low-pass filter. Each sample `d / Δ` is the number of
//! bytes acknowledged in a time, divided by this time. The window after a loss is `BWE · RTT_min`,
//! so that random loss on a path that is not full costs little. The window grows as in
//! [`super::reno`]. Before the first sample a loss halves the window, as in Reno.
//!
//! [`Form`] selects one of two controls with this name:
//!
//! | | `published` | `linux` |
//! | --- | --- | --- |
//! | start of the first sample | the first acknowledgment | the data that it acknowledges |
//! | end of a sample | end of the round trip | after more than a round-trip time, at least 50 ms |
//! | times | real numbers | ticks of the stack's clock |
//! | duplicate ACK counts | reported data | one segment; the rest with the next cumulative ACK |
//! | filter | one stage | two stages |
//! | window after a loss | `BWE · RTT_min` (§2) | half of the window |
//! | window after the recovery | the window after the loss | `BWE · RTT_min` |
//! | after a timeout | `RTT_min` is kept | `RTT_min` is measured again |
//!
//! In the form of Linux, the default of `stack = "linux"`, the second acknowledgment ends the first
//! sample, which is one or two segments per round-trip time: the estimate starts low.
//!
//! The estimate lags the window of slow start, which doubles every round trip. If slow start
//! overflows the queue of a long path, both forms reduce the window to a small value. The Westwood
//! of ns-2's TCP/Linux agent does not, because that agent never applies the estimate: its windows
//! are Reno's (docs/validation/westwood.md).
//!
//! # Differs from Linux
//! - With `form = "linux"`: see [`super::reno`] for the window between losses.
//!
//! # Differs from the paper
//! - SACKed data is counted when it is SACKed. The paper, without SACK, counts a segment for each
//!   duplicate ACK.
//! - A round trip with a pause yields no sample, because the application limited it.
//!
//! # Not implemented
//! - Nothing of §2. The first Westwood (2001), with its samples per ACK and its filter, is a
//!   different control.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, Duration, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::params::Form;
use super::{
    Ack, ControlParams, Family, HyStartUse, Idle, Init, Signal,
    classic::{Classic, Count as _, Law, Setup, Window},
    params::{OrStack, ReductionBase, Share, SlowStartLimit},
    reno::{Avoidance, RenoLaw},
    ticks::Clock,
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "westwood-plus",
    title: "Westwood+",
    summary: "Reno that reduces its window to the rate it has measured times the smallest round-trip time. \
              For paths with random loss.",
    sources: &[Source {
        id: "Grieco and Mascolo, ACM CCR 34-2 (2004)",
        items: &["§2"],
    }],
};

/// The shortest sample of [`Form::Linux`].
const SHORTEST_SAMPLE: Duration = Duration::from_millis(50);

/// Acknowledged data that a sample counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Counting {
    /// Each byte once, when it is first reported (§2).
    #[default]
    Once,
    /// SACKed data is counted again when it is acknowledged cumulatively, so that every loss raises
    /// the estimate. Only this counting reproduces ns-3's figures under random loss; that ns-3
    /// counts in this way is inferred from them.
    Twice,
}

/// Parameters of Westwood+.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How the estimate is sampled and applied: as published, or as in Linux.
    pub form: OrStack<Form>,
    /// Weight of the old estimate in the new one: the coefficient of the low-pass filter (§2: 7/8).
    pub filter: Share,
    /// Acknowledged data that a sample counts (§2).
    pub counting: Counting,
    /// Largest growth by one ACK in slow start (`L` of RFC 3465 §2.3; RFC 5681 §3.1 equation 2 has
    /// 1).
    pub slow_start_limit: SlowStartLimit,
    /// How congestion avoidance counts: `SMSS` per window of octets (RFC 3465 §2.1), or
    /// `SMSS² / cwnd` per ACK (RFC 5681 §3.1 equation 3).
    pub avoidance: Avoidance,
    /// The base of a reduction by a loss before the first sample.
    pub reduce_from: OrStack<ReductionBase>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            form: OrStack::Stack,
            filter: Share::new(0.875),
            counting: Counting::Once,
            slow_start_limit: SlowStartLimit::default(),
            avoidance: Avoidance::Bytes,
            reduce_from: OrStack::Stack,
        }
    }
}

impl ControlParams for Params {
    const FAMILY: Family = Family::LossBased;

    fn hystart(&self) -> HyStartUse {
        HyStartUse::Rfc9406
    }
}

/// Westwood+.
pub type WestwoodPlus = Classic<WestwoodLaw>;

/// The window law of Westwood+: that of Reno, and the estimate.
#[derive(Debug)]
pub struct WestwoodLaw {
    form: Form,
    reno: RenoLaw,
    smss: Bytes,
    filter: f64,
    counting: Counting,
    /// [`Form::Linux`] only.
    clock: Clock,
    /// Both stages of the filter; `None` before the first sample.
    estimate: Option<Estimate>,
    /// Zero before the first sample.
    min_rtt: Duration,
    /// The latest round-trip time.
    rtt: Duration,
    /// The current sample: its round trip, its start and the data acknowledged in it.
    round: u64,
    began: Option<Instant>,
    delivered: Bytes,
    /// Reported by duplicate ACKs and not yet counted ([`Form::Linux`]).
    deferred: Bytes,
    /// The estimate is to be applied at the end of the current recovery.
    due: bool,
    /// The next round-trip time sample replaces the smallest.
    forgets_min_rtt: bool,
}

/// Output of the filter, in bytes per second.
#[derive(Debug, Clone, Copy)]
struct Estimate {
    first_stage: f64,
    bwe: f64,
}

impl WestwoodLaw {
    fn sample(&mut self, delivered: Bytes, interval: Duration) {
        if interval.is_zero() {
            return;
        }
        let sample = delivered.get() as f64 / interval.as_secs_f64();
        // §2 equation 1.
        let pass = |old: f64, new: f64| self.filter * old + (1.0 - self.filter) * new;
        self.estimate = Some(match self.estimate {
            None => Estimate {
                first_stage: sample,
                bwe: sample,
            },
            Some(old) => {
                let first_stage = pass(old.first_stage, sample);
                let bwe = match self.form {
                    Form::Published => first_stage,
                    Form::Linux => pass(old.bwe, first_stage),
                };
                Estimate { first_stage, bwe }
            }
        });
    }

    /// Ends the current sample.
    fn end_sample(&mut self, now: Instant, interval: Duration) {
        self.began = Some(now);
        let delivered = std::mem::replace(&mut self.delivered, Bytes::ZERO);
        self.sample(delivered, interval);
    }

    /// Ends the sample with the round trip (§2).
    fn measure_as_published(&mut self, ack: &Ack, delivered: Bytes) {
        self.min_rtt = ack.min_rtt;
        self.delivered += delivered;
        match self.began {
            Some(_) if ack.round == self.round => return,
            Some(began) => self.end_sample(ack.now, ack.now.saturating_since(began)),
            None => {
                self.began = Some(ack.now);
                self.delivered = Bytes::ZERO;
            }
        }
        self.round = ack.round;
    }

    /// Ends the sample once the clock shows more than a round-trip time, as known before this
    /// acknowledgment.
    fn measure_as_linux(&mut self, ack: &Ack, delivered: Bytes) {
        let rtt = ack.rtt.or(ack.rtt_by_timestamp);
        let rtt = rtt.map(|rtt| self.clock.rounded_up(rtt));
        match self.began {
            None => {
                let sent = ack.now.as_picos() - ack.rtt.map_or(0, Duration::as_picos);
                self.began = Some(Instant::from_picos(sent));
            }
            Some(began) => {
                let interval = self.clock.between(began, ack.now);
                if interval > self.rtt.max(SHORTEST_SAMPLE) {
                    self.end_sample(ack.now, interval);
                }
            }
        }
        if ack.acked == Bytes::ZERO {
            let counted = delivered.min(self.smss);
            self.delivered += counted;
            self.deferred += delivered - counted;
        } else {
            self.delivered += delivered + std::mem::take(&mut self.deferred);
        }
        if let Some(rtt) = rtt {
            self.rtt = rtt;
            let first = self.min_rtt.is_zero() || std::mem::take(&mut self.forgets_min_rtt);
            self.min_rtt = if first { rtt } else { self.min_rtt.min(rtt) };
        }
    }

    /// `BWE · RTT_min`.
    fn pipe(&self) -> Option<u64> {
        let bytes = self.estimate?.bwe * self.min_rtt.as_secs_f64();
        Some(self.reno.rounded(u64::from_real(bytes)))
    }
}

impl Law for WestwoodLaw {
    type Params = Params;
    type Count = u64;
    type Saved = u64;

    fn new(params: &Params, init: &Init) -> (Self, Setup) {
        let law = Self {
            form: params.form.or(init.stack.form),
            reno: RenoLaw::with(params.avoidance, init),
            smss: init.smss,
            filter: params.filter.get(),
            counting: params.counting,
            clock: Clock::new(init.stack.clock_tick),
            estimate: None,
            min_rtt: Duration::ZERO,
            rtt: Duration::ZERO,
            round: 0,
            began: None,
            delivered: Bytes::ZERO,
            deferred: Bytes::ZERO,
            due: false,
            forgets_min_rtt: false,
        };
        let setup = Setup::new(params.slow_start_limit, params.reduce_from, true, init);
        (law, setup)
    }

    /// Counts acknowledged data, and ends the current sample if it is due.
    #[inline]
    fn measure(&mut self, ack: &Ack) {
        let delivered = match self.counting {
            Counting::Once => ack.delivered,
            Counting::Twice => ack.acked + ack.sacked,
        };
        match self.form {
            Form::Published => self.measure_as_published(ack, delivered),
            Form::Linux => self.measure_as_linux(ack, delivered),
        }
    }

    #[inline]
    fn avoid_congestion(&mut self, window: &mut Window<u64>, ack: &Ack, acked: u64) {
        self.reno.avoid_congestion(window, ack, acked);
    }

    fn reduce(&mut self, window: &Window<u64>, flight: u64, signal: Signal) -> Window<u64> {
        if let Some(pipe) = self.pipe().filter(|_| self.form == Form::Published) {
            // §2: a window below the measured product is kept, and slow start grows it to that
            // value.
            return Window {
                cwnd: window.cwnd.min(pipe),
                ssthresh: pipe,
            };
        }
        self.due = self.form == Form::Linux;
        self.reno.reduce(window, flight, signal)
    }
    fn ssthresh_at_timeout(&mut self, _window: &Window<u64>, flight: u64) -> u64 {
        self.pipe().unwrap_or_else(|| self.reno.half(flight))
    }
    fn on_timeout(&mut self) {
        self.due = false;
        self.forgets_min_rtt = self.form == Form::Linux;
    }
    fn on_recovered(&mut self, window: &mut Window<u64>) {
        if std::mem::take(&mut self.due)
            && let Some(pipe) = self.pipe()
        {
            *window = Window::of(pipe);
        }
    }
    fn on_idle(&mut self, _event: &Idle) {
        self.began = None;
        self.delivered = Bytes::ZERO;
    }
    fn end_stage(&mut self) {
        self.reno.end_stage();
    }
    fn saved(&self) -> u64 {
        self.reno.saved()
    }
    fn restore(&mut self, saved: u64, restored: bool) {
        self.due = false;
        self.reno.restore(saved, restored);
    }
    /// `bwe` in Mbit/s, after the first sample, and `min_rtt` in milliseconds.
    fn state(&self) -> Vec<(&'static str, f64)> {
        let estimate = self
            .estimate
            .map(|estimate| ("bwe", estimate.bwe * 8.0 / 1e6));
        estimate
            .into_iter()
            .chain([("min_rtt", self.min_rtt.as_millis_f64())])
            .collect()
    }
}
