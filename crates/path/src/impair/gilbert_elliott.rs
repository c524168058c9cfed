//! Gilbert-Elliott loss: a channel that moves between a good and a bad state from packet to packet.
//!
//! From one packet to the next the channel becomes bad with probability `p` and good with
//! probability `r`. A packet gets through with probability `k` in the good state and `h` in the bad
//! state. With `k` = 1 and `h` = 0, Gilbert's simplest channel, the bad state is a burst of losses:
//! burst lengths are geometric with mean 1 ÷ `r`, and the share of packets lost is `p` ÷ (`p` +
//! `r`). `loss_rate` and `mean_burst` are alternative parameters for these two figures.
//!
//! The state at the first packet is drawn from the stationary distribution, so the figures hold
//! from the start.
//!
//! # Differs from Linux
//! - `tc netem loss gemodel` takes 1-h and 1-k, in percent, and starts in the good state.
//!
//! # Not implemented
//! - Transitions by time instead of packets: while a flow is silent the channel does not change.

use anabranch_core::{
    bounded,
    registry::{Meta, Source},
    rng::Draw,
    units::{Fraction, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Contradiction, ImpairParams, Impairment, Verdict, View};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "gilbert-elliott",
    title: "Gilbert-Elliott loss",
    summary: "Loses packets in bursts: a channel that moves between a good and a bad state, from packet to packet.",
    sources: &[
        Source {
            id: "Gilbert, Capacity of a Burst-Noise Channel (BSTJ 39-5, 1960)",
            items: &["the model"],
        },
        Source {
            id: "Elliott, Estimates of Error Rates for Codes on Burst-Noise Channels (BSTJ 42-5, 1963)",
            items: &["errors in the good state"],
        },
        Source {
            id: "tc-netem(8)",
            items: &["loss gemodel"],
        },
    ],
};

bounded! {
    /// Mean number of packets in a burst of losses.
    MeanBurst, 1.0..=1_000_000.0, "a number of packets"
}

/// Parameters of the channel: `loss_rate` and `mean_burst`, or `p` and `r`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Share of packets lost in the long run; with `mean_burst`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Fraction")]
    pub loss_rate: Option<Fraction>,
    /// Mean number of packets in a burst of losses: `r` is 1 ÷ `mean_burst`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "MeanBurst")]
    pub mean_burst: Option<MeanBurst>,
    /// Probability that the channel becomes bad from one packet to the next (tc-netem(8): p); with
    /// `r`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Fraction")]
    pub p: Option<Fraction>,
    /// Probability that it becomes good again (tc-netem(8): r).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Fraction")]
    pub r: Option<Fraction>,
    /// Probability that a packet gets through in the bad state (tc-netem(8) takes 1-h); other than
    /// 0 only with `p` and `r`.
    pub h: Fraction,
    /// Probability that a packet gets through in the good state (tc-netem(8) takes 1-k); other than
    /// 1 only with `p` and `r`.
    pub k: Fraction,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            loss_rate: None,
            mean_burst: None,
            p: None,
            r: None,
            h: Fraction::ZERO,
            k: Fraction::ONE,
        }
    }
}

impl Params {
    /// `p` and `r`, if the parameters determine them.
    fn transitions(&self) -> Option<(f64, f64)> {
        match (self.loss_rate, self.mean_burst, self.p, self.r) {
            (Some(loss_rate), Some(mean_burst), None, None) => {
                let r = 1.0 / mean_burst.get();
                // p / (p + r) = loss_rate.
                Some((r * loss_rate.get() / (1.0 - loss_rate.get()), r))
            }
            (None, None, Some(p), Some(r)) => Some((p.get(), r.get())),
            _ => None,
        }
    }
}

impl ImpairParams for Params {
    fn check(&self) -> Result<(), Contradiction> {
        const BOTH: &str = "`loss_rate` and `mean_burst`, or `p` and `r`";
        let wrong = |key, message: &str, expected: &str| {
            Err(Contradiction {
                key,
                message: message.to_owned(),
                expected: expected.to_owned(),
            })
        };
        let (figures, chain) = (
            [self.loss_rate.is_some(), self.mean_burst.is_some()],
            [self.p.is_some(), self.r.is_some()],
        );
        match (figures, chain) {
            ([false, false], [false, false]) => {
                wrong(&[], "`gilbert-elliott` does not say how much is lost", BOTH)
            }
            ([true, true], [false, false]) => {
                if self.h != Fraction::ZERO || self.k != Fraction::ONE {
                    let key: &[&str] = if self.h == Fraction::ZERO {
                        &["k"]
                    } else {
                        &["h"]
                    };
                    return wrong(
                        key,
                        "`loss_rate` and `mean_burst` describe a channel that loses all in the bad state and nothing in the good one",
                        "`p` and `r` in their place, with `h` and `k`",
                    );
                }
                match self.transitions() {
                    Some((p, r)) if p > 1.0 => wrong(
                        &["loss_rate"],
                        "bursts of this length cannot lose so much: at least one packet gets through after each",
                        &format!(
                            "a `loss_rate` of at most {:.4}, or a longer `mean_burst`",
                            // Rounded down, so that the value is accepted.
                            (1e4 / (1.0 + r)).floor() / 1e4
                        ),
                    ),
                    _ => Ok(()),
                }
            }
            ([false, false], [true, true]) => {
                if self.transitions() == Some((0.0, 0.0)) {
                    return wrong(
                        &["r"],
                        "`p` and `r` are both 0: the channel has no long-run state to start in",
                        "one of them above 0",
                    );
                }
                Ok(())
            }
            ([true, false], [false, false]) => {
                wrong(&["loss_rate"], "`loss_rate` needs `mean_burst`", BOTH)
            }
            ([false, true], [false, false]) => {
                wrong(&["mean_burst"], "`mean_burst` needs `loss_rate`", BOTH)
            }
            ([false, false], [true, false]) => wrong(&["p"], "`p` needs `r`", BOTH),
            ([false, false], [false, true]) => wrong(&["r"], "`r` needs `p`", BOTH),
            ([_, _], [p, _]) => wrong(
                if p { &["p"] } else { &["r"] },
                "the losses are given twice",
                "`loss_rate` and `mean_burst`, or `p` and `r`, not both",
            ),
        }
    }
}

/// State of a Gilbert-Elliott channel.
#[derive(Debug)]
pub struct GilbertElliott {
    p: f64,
    r: f64,
    /// Probabilities of a loss in the good and in the bad state.
    loss: [f64; 2],
    /// Whether the state at the last packet was bad; `None` before the first.
    bad: Option<bool>,
}

impl GilbertElliott {
    /// Creates the channel with these parameters.
    ///
    /// # Panics
    /// If they are not consistent ([`ImpairParams::check`]).
    #[must_use]
    pub fn new(params: &Params) -> Self {
        let (p, r) = params
            .transitions()
            .expect("parameters are checked before they are used");
        Self {
            p,
            r,
            loss: [1.0 - params.k.get(), 1.0 - params.h.get()],
            bad: None,
        }
    }
    /// Continues from the state of `before`.
    pub(super) fn follow(&mut self, before: &Self) {
        self.bad = before.bad;
    }
}

impl Impairment for GilbertElliott {
    fn judge(&mut self, _now: Instant, _packet: View, draw: &mut Draw) -> Verdict {
        let bad = draw.chance(match self.bad {
            None => self.p / (self.p + self.r),
            Some(false) => self.p,
            Some(true) => 1.0 - self.r,
        });
        self.bad = Some(bad);
        if draw.chance(self.loss[usize::from(bad)]) {
            Verdict::Lose
        } else {
            Verdict::Pass
        }
    }
}
