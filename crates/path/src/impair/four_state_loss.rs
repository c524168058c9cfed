//! Loss by a Markov chain of four states: bursts in which some packets get through, and single losses between
//! them.
//!
//! From packet to packet the chain moves between (1) gaps, where packets get through, (2) packets that get through
//! within a burst, (3) losses within a burst, and (4) single losses within a gap. Allowed are 1 → 3 (`p13`), 3 → 1
//! (`p31`), 3 → 2 (`p32`), 2 → 3 (`p23`) and 1 → 4 (`p14`), after which 4 → 1 follows always. What is left of each
//! row is the chance to stay.
//!
//! The state at the first packet is drawn from the stationary distribution.
//!
//! # Differs from Linux
//! - `tc netem loss state` takes percentages and starts in state 1.
//!
//! # Not implemented
//! - The paper's other parameters (loss probability, burst length and density, single losses), from which the five
//!   can be worked out.

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

/// Parameters of the chain: probabilities to move from one packet to the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// From a gap to a loss that begins a burst.
    pub p13: Fraction,
    /// From a loss within a burst to a gap; without one 1 − `p13` (tc-netem(8)), which, with nothing else, is
    /// independent loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Fraction")]
    pub p31: Option<Fraction>,
    /// From a loss within a burst to packets that get through there.
    pub p32: Fraction,
    /// From those back to a loss of the same burst.
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

/// What rounding may add to a sum of decimal probabilities.
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

/// Where the chain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Gap,
    BurstPass,
    BurstLoss,
    SingleLoss,
}

/// Four-state loss at work.
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
    /// With these parameters.
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

    /// Goes on where `before` ends.
    pub(super) fn follow(&mut self, before: &Self) {
        self.state = before.state;
    }

    /// A state drawn from the stationary distribution: where the chain leaves each state as often as it enters it.
    fn stationary(&self, u: f64) -> State {
        // Times that of the gap.
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

/// The state in whose share `at` lies, or the one that has the rest.
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
