//! Compound TCP (draft-sridharan-tcpm-ctcp-02): Reno, and in addition a delay window that grows
//! fast without a queue and shrinks with one.
//!
//! The congestion window is `cwnd + dwnd`. The loss window `cwnd` is Reno's. The delay window
//! `dwnd` is updated once per round trip, outside slow start. If fewer than `gamma` packets of this
//! flow are estimated to be queued it grows by `alpha · wnd^k - 1`, otherwise it shrinks by `zeta`
//! times the number of packets queued. A path with spare capacity is thus filled at the pace of
//! HighSpeed TCP, and on a full path Compound is Reno.
//!
//! `gamma` tunes itself (§5). The backlog of the loss window just before a loss estimates the
//! packets that a Reno flow has in that queue; three quarters of it are a sample.
//!
//! # Where the sources differ
//! - Equations 3 and 5 of the draft raise and reduce only `dwnd`, which would then never grow from
//!   zero. The draft's text, and Tan et al., INFOCOM 2006 §III, apply both to the whole window, as
//!   here. After a loss `beta` of the window remains; `cwnd` is halved and `dwnd` is the rest.
//! - INFOCOM 2006 has a fixed `gamma` of 30 packets and leaves windows up to 41 packets to Reno
//!   (`gamma_tuning = false`, `low_window = "41 packets"`); the draft has 38.
//! - The draft names `lambda` without a value; 0.8 is our choice.
//! - `beta` is the share that remains after a loss, as in all controls here; in the sources it is
//!   the share removed.
//! - The sources do not say whether "the current RTT" is the smoothed one or the mean of a round
//!   trip's samples: `rtt`. The smoothed round-trip time covers about the last eight
//!   acknowledgments. If the receiver's timer delays one of them, this looks like a queue of an
//!   eighth of the delay, so that the delay window shrinks and stays small without a queue.
//!
//! # Differs from Linux
//! - Linux has no Compound TCP; Windows had it since Vista. Deviations of Windows from the draft
//!   are not public.
//! - See [`super::reno`] for slow start.
//!
//! # Not implemented
//! - A limit on the round-trip time samples per window (§6): every ACK yields a sample.

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
    summary: "Reno, and a second window that grows fast while no queue is measured and shrinks when one is. In Windows \
              since Vista.",
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

/// The round-trip time that the delay window uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum RttEstimate {
    /// The smoothed round-trip time of RFC 6298, at the end of a round trip.
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
    /// The share of the window that remains after a loss (§3: half, the draft's `1 - beta`).
    pub beta: DecreaseFactor,
    /// Reduction of the delay window per queued packet (`eta` in §3: 1).
    pub zeta: Gain,
    /// Number of queued packets from which the delay window shrinks, before the first loss (§5:
    /// 30). With `gamma_tuning`, from `gamma_low` to `gamma_high`.
    pub gamma: Packets,
    /// Losses tune `gamma` (§5).
    pub gamma_tuning: bool,
    /// Lower bound of a tuned `gamma` (§5: 5).
    pub gamma_low: Packets,
    /// Upper bound of a tuned `gamma` (§5: 30).
    pub gamma_high: Packets,
    /// Weight of the newest sample of `gamma`. The draft (§5) gives no value.
    pub lambda: Share,
    /// The largest window without a delay window (§2, §6: 38).
    pub low_window: Packets,
    /// Largest growth by one ACK in slow start (`L` of RFC 3465 §2.3; RFC 5681 §3.1 equation 2 has
    /// 1).
    pub slow_start_limit: SlowStartLimit,
    /// How the loss window counts acknowledged data in congestion avoidance. `"acks"` is equation 2
    /// of §3 to the letter, so that delayed acknowledgments halve its growth.
    pub avoidance: Avoidance,
    /// The round-trip time in `diff = (win / baseRTT - win / RTT) · baseRTT` (§3).
    pub rtt: RttEstimate,
    /// The base of a reduction: FlightSize (RFC 5681 §3.1 equation 4) or cwnd.
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

/// The window law of Compound TCP. Windows are in segments, as in the draft's equations. The
/// frame's window is the sum of both windows.
#[derive(Debug)]
pub struct CompoundLaw {
    params: Params,
    windows: Windows,
    path: Learned,
    round: u64,
    /// The current round trip began in congestion avoidance, outside a recovery.
    whole_round: bool,
    samples: RttSamples,
}

/// Measured properties of the path.
#[derive(Debug, Clone, Copy)]
struct Learned {
    gamma: f64,
    /// Backlog of the loss window alone at the end of the last round trip; `None` if it would be
    /// outdated.
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

/// State that a reduction changes.
#[derive(Debug, Clone, Copy)]
pub struct Before {
    windows: Windows,
    path: Learned,
}

impl Windows {
    fn sum(&self) -> f64 {
        self.loss + self.delay
    }

    /// The loss window becomes the whole `window`, and the delay window zero. Below ssthresh this
    /// is slow start.
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
        // §6: no samples and no changes of the delay window in a recovery.
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

    /// A sum below ssthresh is not slow start if it results from a smaller delay window.
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
        // §3: the path may have changed.
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
            // The backlog belongs to the window that is kept.
            self.path.diff_reno = since.diff_reno;
        }
    }

    fn ssthresh(&self, window: &Window<f64>) -> f64 {
        let ssthresh = if self.windows.slow_start {
            window.ssthresh
        } else {
            // A smaller delay window does not start slow start.
            window.ssthresh.min(window.cwnd)
        };
        ssthresh.max(2.0)
    }
    /// `loss_window`, `delay_window`, `gamma` in packets; `diff_reno` if known.
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
