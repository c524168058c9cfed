//! Loss by a Markov chain of four states: loss bursts in which some packets get through, and single
//! losses between them.
//!
//! From packet to packet the chain moves between (1) gaps, in which packets get through, (2)
//! packets that get through within a burst, (3) losses within a burst, and (4) single losses within
//! a gap. The transitions are 1 → 3 (`p13`), 3 → 1 (`p31`), 3 → 2 (`p32`), 2 → 3 (`p23`) and 1 → 4
//! (`p14`), which is always followed by 4 → 1. The rest of each row is the probability to stay.
//!
//! The state at the first packet is drawn from the stationary distribution.
//!
//! # Differs from Linux
//! - `tc netem loss state` takes percentages and starts in state 1.
//!
//! # Not implemented
//! - The paper's other parameters (loss probability, burst length and density, single losses), from
//!   which these five can be derived.

use anabranch_core::{
    registry::{Meta, Source},
    rng::Draw,
    units::{Fraction, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Contradiction, ImpairParams, Impairment, Verdict, View};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "four-state-loss",
    title: "Four-state loss",
    summary: "Loses packets by a Markov chain of four states: bursts in which some get through, and single losses between \
              them.",
    sources: &[
        Source {
            id: "Salsano et al., Definition of a general and intuitive loss model for packet networks (2012)",
            items: &["the 4-state Markov model"],
        },
        Source {
            id: "tc-netem(8)",
            items: &["loss state"],
        },
    ],
};

/// Parameters of the chain: transition probabilities from one packet to the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// From a gap to a loss that begins a burst.
    pub p13: Fraction,
    /// From a loss within a burst to a gap. The default is 1 − `p13` (tc-netem(8)), which gives
    /// independent loss if nothing else is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Fraction")]
    pub p31: Option<Fraction>,
    /// From a loss within a burst to packets that get through within the burst.
    pub p32: Fraction,
    /// From packets that get through within a burst back to a loss of the same burst.
    pub p23: Fraction,
    /// From a gap to a single loss.
    pub p14: Fraction,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            p13: Fraction::ZERO,
            p31: None,
            p32: Fraction::ZERO,
            p23: Fraction::ONE,
            p14: Fraction::ZERO,
        }
    }
}

impl Params {
    fn p31(&self) -> f64 {
        self.p31.map_or(1.0 - self.p13.get(), Fraction::get)
    }
}

/// Tolerance for rounding in a sum of decimal probabilities.
const ROUNDING: f64 = 1e-9;

impl ImpairParams for Params {
    fn check(&self) -> Result<(), Contradiction> {
        let wrong = |key, message: String, expected: &str| {
            Err(Contradiction {
                key,
                message,
                expected: expected.to_owned(),
            })
        };
        let (p13, p31, p32) = (self.p13.get(), self.p31(), self.p32.get());
        if p13 + self.p14.get() > 1.0 + ROUNDING {
            return wrong(
                &["p14"],
                format!("`p13` and `p14` add up to {}", p13 + self.p14.get()),
                "1 at most: both leave the gap",
            );
        }
        if p31 + p32 > 1.0 + ROUNDING {
            return wrong(
                &["p32"],
                format!("`p31`, {p31}, and `p32` add up to {}", p31 + p32),
                "1 at most: both leave a burst's loss",
            );
        }
        if p13 > 0.0 && p31 == 0.0 {
            return wrong(
                if self.p31.is_some() {
                    &["p31"]
                } else {
                    &["p13"]
                },
                "no burst ever ends: `p31` is 0".to_owned(),
                "a `p31` above 0",
            );
        }
        if p32 > 0.0 && self.p23 == Fraction::ZERO {
            return wrong(
                &["p23"],
                "no packet leads back from within a burst: `p23` is 0".to_owned(),
                "a `p23` above 0",
            );
        }
        Ok(())
    }
}

/// State of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Gap,
    BurstPass,
    BurstLoss,
    SingleLoss,
}

/// State of a four-state loss.
#[derive(Debug)]
pub struct FourStateLoss {
    p13: f64,
    p31: f64,
    p32: f64,
    p23: f64,
    p14: f64,
    /// The state at the last packet; `None` before the first.
    state: Option<State>,
}

impl FourStateLoss {
    /// Creates the chain with these parameters.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            p13: params.p13.get(),
            p31: params.p31(),
            p32: params.p32.get(),
            p23: params.p23.get(),
            p14: params.p14.get(),
            state: None,
        }
    }

    /// Continues from the state of `before`.
    pub(super) fn follow(&mut self, before: &Self) {
        self.state = before.state;
    }

    /// Draws a state from the stationary distribution, in which each state is left as often as it
    /// is entered.
    fn stationary(&self, u: f64) -> State {
        // Relative to the probability of the gap.
        let burst_loss = if self.p13 > 0.0 {
            self.p13 / self.p31
        } else {
            0.0
        };
        let burst_pass = if self.p32 > 0.0 {
            burst_loss * self.p32 / self.p23
        } else {
            0.0
        };
        let at = u * (1.0 + burst_loss + burst_pass + self.p14);
        pick(
            at,
            [
                (burst_loss, State::BurstLoss),
                (burst_pass, State::BurstPass),
                (self.p14, State::SingleLoss),
            ],
            State::Gap,
        )
    }
}

/// Returns the state in whose share `at` lies, or `rest`.
fn pick<const N: usize>(mut at: f64, shares: [(f64, State); N], rest: State) -> State {
    for (share, state) in shares {
        if at < share {
            return state;
        }
        at -= share;
    }
    rest
}

impl Impairment for FourStateLoss {
    fn judge(&mut self, _now: Instant, _packet: View, draw: &mut Draw) -> Verdict {
        let u = draw.uniform();
        let state = match self.state {
            None => self.stationary(u),
            Some(State::Gap) => pick(
                u,
                [(self.p13, State::BurstLoss), (self.p14, State::SingleLoss)],
                State::Gap,
            ),
            Some(State::BurstLoss) => pick(
                u,
                [(self.p31, State::Gap), (self.p32, State::BurstPass)],
                State::BurstLoss,
            ),
            Some(State::BurstPass) => pick(u, [(self.p23, State::BurstLoss)], State::BurstPass),
            Some(State::SingleLoss) => State::Gap,
        };
        self.state = Some(state);
        match state {
            State::Gap | State::BurstPass => Verdict::Pass,
            State::BurstLoss | State::SingleLoss => Verdict::Lose,
        }
    }
}
