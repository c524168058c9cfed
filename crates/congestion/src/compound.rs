//! Compound TCP (draft-sridharan-tcpm-ctcp-02): Reno, and beside it a window that grows fast while
//! no queue is seen and gives way to one.
//!
//! What may be in flight is `cwnd + dwnd`. The loss window `cwnd` is Reno's. The delay window `dwnd`
//! is looked at once per round trip, outside slow start: where fewer than `gamma` packets of ours
//! seem to be queued it grows by `alpha · wnd^k - 1`, else it shrinks by `zeta` times what is
//! queued. So a path with room is filled at the pace of HighSpeed TCP, and on a full one Compound
//! is Reno.
//!
//! `gamma` tunes itself (§5): the backlog that the loss window alone would have had just before a
//! loss is what a Reno flow holds in that queue; three quarters of it are a sample.
//!
//! # Where the sources differ
//! - Equations 3 and 5 of the draft raise and reduce `dwnd` alone, which would never leave zero. The
//!   draft's own text, and Tan et al., INFOCOM 2006 §III, take both from the whole window; so here:
//!   a loss leaves `beta` of it, `cwnd` gets its half and `dwnd` the rest.
//! - INFOCOM 2006 has a fixed `gamma` of 30 packets and leaves windows up to 41 packets to Reno
//!   (`gamma_tuning = false`, `low_window = "41 packets"`); the draft has 38.
//! - The draft names `lambda` and gives no value: 0.8 is a choice, not the source's.
//! - `beta` is what a loss leaves, as everywhere here; the sources' is what it takes.
//! - Whether "the current RTT" is the smoothed one or the mean of a round trip's samples, they leave open: `rtt`. The smoothed one is
//!   that of the last eight acknowledgments or so. One of them delayed by the receiver's timer looks like a queue of an eighth of
//!   its delay, so that the delay window gives way, and stays small, where no queue is.
//!
//! # Differs from Linux
//! - Linux has no Compound TCP; Windows had it from Vista on. What Windows does beyond the draft is
//!   not public.
//! - See [`super::reno`] for slow start.
//!
//! # Not implemented
//! - A limit on the samples of the round-trip time per window (§6): every ACK gives one.

use anabranch_core::{
    math::powf,
    registry::{Meta, Source},
    units::Duration,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Ack, ControlParams, Family, HyStartUse, Idle, Init, Signal,
    classic::{Classic, Count as _, Law, Setup, Window},
    params::{
        DecreaseFactor, Gain, OrStack, Packets, ReductionBase, Share, SlowStartLimit, in_order,
    },
    reno::Avoidance,
    rtt_samples::RttSamples,
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "compound",
    title: "Compound TCP",
    summary: "Reno, and a second window that grows fast where no queue is seen and yields to one. \
              Windows had it from Vista on.",
    sources: &[
        Source {
            id: "draft-sridharan-tcpm-ctcp-02",
            items: &["§2", "§3", "§5", "§6"],
        },
        Source {
            id: "Tan, Song, Zhang and Sridharan, INFOCOM 2006",
            items: &["§III"],
        },
    ],
};

/// What the delay window takes for the round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum RttEstimate {
    /// RFC 6298's, at the end of a round trip.
    #[default]
    Smoothed,
    /// The mean of the round trip's samples.
    Mean,
}

/// Parameters of Compound TCP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct Params {
    /// Scale of the delay window's growth, in packets per round trip (§3: 1/8).
    pub alpha: Share,
    /// Exponent of the window in the delay window's growth (§3: 0.75).
    pub k: Share,
    /// The share of the window that a loss leaves (§3: half, the draft's `1 - beta`).
    pub beta: DecreaseFactor,
    /// What the delay window gives up for each packet queued (`eta` in §3: 1).
    pub zeta: Gain,
    /// Queued packets from which on the delay window shrinks, before the first loss (§5: 30). Where
    /// `gamma_tuning` is on, from `gamma_low` to `gamma_high`.
    pub gamma: Packets,
    /// Whether losses tune `gamma` (§5).
    pub gamma_tuning: bool,
    /// The least that tuning makes of `gamma` (§5: 5).
    pub gamma_low: Packets,
    /// The most that tuning makes of `gamma` (§5: 30).
    pub gamma_high: Packets,
    /// Weight of the newest sample of `gamma`. The draft (§5) gives no value.
    pub lambda: Share,
    /// The window up to which there is no delay window (§2, §6: 38).
    pub low_window: Packets,
    /// What one ACK adds in slow start at most (`L` of RFC 3465 §2.3; RFC 5681 §3.1 equation 2 has 1).
    pub slow_start_limit: SlowStartLimit,
    /// How the loss window counts what is acknowledged in congestion avoidance. `"acks"` is §3's
    /// equation 2 to the letter, with which delayed acknowledgments halve its growth.
    pub avoidance: Avoidance,
    /// The round-trip time in `diff = (win / baseRTT - win / RTT) · baseRTT` (§3).
    pub rtt: RttEstimate,
    /// What a reduction is taken from: FlightSize (RFC 5681 §3.1 equation 4) or cwnd.
    pub reduce_from: OrStack<ReductionBase>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            alpha: Share::new(0.125),
            k: Share::new(0.75),
            beta: DecreaseFactor::new(0.5),
            zeta: Gain::new(1.0),
            gamma: Packets::new(30),
            gamma_tuning: true,
            gamma_low: Packets::new(5),
            gamma_high: Packets::new(30),
            lambda: Share::new(0.8),
            low_window: Packets::new(38),
            slow_start_limit: SlowStartLimit::default(),
            avoidance: Avoidance::Bytes,
            rtt: RttEstimate::Smoothed,
            reduce_from: OrStack::Stack,
        }
    }
}

in_order!(Params:
    gamma_low <= gamma_high,
    gamma_low <= gamma if gamma_tuning,
    gamma <= gamma_high if gamma_tuning,
);

impl ControlParams for Params {
    const FAMILY: Family = Family::DelayBased;

    fn decrease_factor(&self) -> Option<f64> {
        Some(self.beta.get())
    }
    fn hystart(&self) -> HyStartUse {
        HyStartUse::Rfc9406
    }
}

/// Compound TCP.
pub type Compound = Classic<CompoundLaw>;

/// The window law of Compound TCP. Windows are in segments, as the draft's equations have them. The frame's window is the
/// sum of both.
#[derive(Debug)]
pub struct CompoundLaw {
    params: Params,
    windows: Windows,
    path: Learned,
    round: u64,
    /// The round trip under way began in congestion avoidance, outside a recovery.
    whole_round: bool,
    samples: RttSamples,
}

/// What is known of the path.
#[derive(Debug, Clone, Copy)]
struct Learned {
    gamma: f64,
    /// The loss window's own backlog at the end of the last round trip; none where it would be old.
    diff_reno: Option<f64>,
    base_rtt: Option<Duration>,
}

/// The two windows.
#[derive(Debug, Clone, Copy)]
struct Windows {
    loss: f64,
    delay: f64,
    slow_start: bool,
}

/// All that a reduction changes.
#[derive(Debug, Clone, Copy)]
pub struct Before {
    windows: Windows,
    path: Learned,
}

impl Windows {
    fn sum(&self) -> f64 {
        self.loss + self.delay
    }

    /// The loss window alone makes up `window`; below ssthresh that is slow start.
    fn restart(&mut self, window: &Window<f64>) {
        self.loss = window.cwnd;
        self.delay = 0.0;
        self.slow_start = window.in_slow_start();
    }
}

/// Packets of a window in a queue (§3): `(wnd / base - wnd / rtt) · base`.
fn backlog(window: f64, base: Duration, rtt: Duration) -> f64 {
    window * (1.0 - base.as_secs_f64() / rtt.as_secs_f64()).max(0.0)
}

impl CompoundLaw {
    /// The end of a round trip of congestion avoidance (§3, equations 3 and 4).
    fn end_round(&mut self, rtt: Duration) {
        let Some(base) = self.path.base_rtt.filter(|_| !rtt.is_zero()) else {
            return;
        };
        let (params, windows) = (&self.params, &mut self.windows);
        self.path.diff_reno = Some(backlog(windows.loss, base, rtt));
        let sum = windows.sum();
        if sum <= params.low_window.as_f64() {
            return;
        }
        let diff = backlog(sum, base, rtt);
        let change = if diff < self.path.gamma {
            (params.alpha.get() * powf(sum, params.k.get()) - 1.0).max(0.0)
        } else {
            -params.zeta.get() * diff
        };
        windows.delay = (windows.delay + change).max(0.0);
    }

    /// §5, On-Packet-Loss.
    fn tune_gamma(&mut self) {
        let params = &self.params;
        if let Some(diff_reno) = self.path.diff_reno.take()
            && params.gamma_tuning
        {
            let (sample, weight) = (0.75 * diff_reno, params.lambda.get());
            self.path.gamma = (self.path.gamma * (1.0 - weight) + weight * sample)
                .min(params.gamma_high.as_f64())
                .max(params.gamma_low.as_f64());
        }
    }
}

impl Law for CompoundLaw {
    type Params = Params;
    type Count = f64;
    type Saved = Before;

    fn new(params: &Params, init: &Init) -> (Self, Setup) {
        let law = Self {
            windows: Windows {
                loss: f64::of(init.initial_cwnd, init.smss).max(1.0),
                delay: 0.0,
                slow_start: true,
            },
            path: Learned {
                gamma: params.gamma.as_f64(),
                diff_reno: None,
                base_rtt: None,
            },
            round: 0,
            whole_round: false,
            samples: RttSamples::default(),
            params: params.clone(),
        };
        let setup = Setup::new(params.slow_start_limit, params.reduce_from, true, init);
        (law, setup)
    }

    #[inline]
    fn measure(&mut self, ack: &Ack) {
        // §6: neither samples nor changes of the delay window in a recovery.
        if ack.in_recovery {
            self.whole_round = false;
            return;
        }
        if let Some(rtt) = ack.rtt {
            self.path.base_rtt = Some(self.path.base_rtt.map_or(rtt, |base| base.min(rtt)));
            self.samples.add(rtt);
        }
        if !ack.cwnd_limited {
            self.whole_round = false;
        }
    }

    /// A sum below ssthresh is no slow start where the delay window has given way.
    #[inline]
    fn slow_starts(&mut self, _window: &mut Window<f64>, ack: &Ack) -> bool {
        if self.windows.slow_start {
            self.whole_round = false;
            self.round = ack.round;
        }
        self.windows.slow_start
    }

    #[inline]
    fn on_slow_start(&mut self, window: &Window<f64>) {
        self.windows.restart(window);
    }

    #[inline]
    fn avoid_congestion(&mut self, window: &mut Window<f64>, ack: &Ack, acked: f64) {
        if ack.round != self.round {
            self.round = ack.round;
            let samples = std::mem::take(&mut self.samples);
            if self.whole_round {
                self.end_round(match self.params.rtt {
                    RttEstimate::Smoothed => ack.srtt,
                    RttEstimate::Mean => samples.mean().unwrap_or(ack.srtt),
                });
            }
            self.whole_round = true;
        }
        // §3, equation 2.
        let counted = match self.params.avoidance {
            Avoidance::Bytes => acked,
            Avoidance::Acks => 1.0,
        };
        self.windows.loss += counted / self.windows.sum();
        window.cwnd = self.windows.sum();
    }

    fn reduce(&mut self, _window: &Window<f64>, flight: f64, _signal: Signal) -> Window<f64> {
        self.tune_gamma();
        let sum = (flight * self.params.beta.get()).max(2.0);
        let loss = (self.windows.loss / 2.0).min(sum).max(1.0);
        self.windows = Windows {
            loss,
            delay: sum - loss,
            slow_start: false,
        };
        Window {
            cwnd: self.windows.sum(),
            ssthresh: sum,
        }
    }
    fn ssthresh_at_timeout(&mut self, _window: &Window<f64>, flight: f64) -> f64 {
        (flight * self.params.beta.get()).max(2.0)
    }
    fn on_timeout(&mut self) {
        // §3: the path may be another one.
        self.path.base_rtt = None;
        self.path.diff_reno = None;
    }
    fn end_stage(&mut self) {
        self.whole_round = false;
    }
    fn on_limited(&mut self, window: &Window<f64>) {
        if window.cwnd < self.windows.sum() {
            self.windows.restart(window);
        }
    }
    fn on_idle(&mut self, _event: &Idle) {
        self.end_stage();
    }

    fn saved(&self) -> Before {
        Before {
            windows: self.windows,
            path: self.path,
        }
    }
    fn restore(&mut self, saved: Before, restored: bool) {
        // No loss has measured the queue, and the path is the same.
        let since = self.path;
        let base_rtts = [saved.path.base_rtt, since.base_rtt];
        self.path = Learned {
            base_rtt: base_rtts.into_iter().flatten().min(),
            ..saved.path
        };
        if restored {
            self.windows = saved.windows;
            self.whole_round = false;
        } else {
            // The backlog of the window that stays.
            self.path.diff_reno = since.diff_reno;
        }
    }

    fn ssthresh(&self, window: &Window<f64>) -> f64 {
        let ssthresh = if self.windows.slow_start {
            window.ssthresh
        } else {
            // Where the delay window gives way, that is no slow start.
            window.ssthresh.min(window.cwnd)
        };
        ssthresh.max(2.0)
    }
    /// `loss_window`, `delay_window`, `gamma` in packets; `diff_reno` once it is known.
    fn state(&self) -> Vec<(&'static str, f64)> {
        let mut state = vec![
            ("loss_window", self.windows.loss),
            ("delay_window", self.windows.delay),
            ("gamma", self.path.gamma),
        ];
        state.extend(self.path.diff_reno.map(|diff| ("diff_reno", diff)));
        state
    }
}
