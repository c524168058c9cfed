//! Independent loss: every packet is lost with the same probability.
//!
//! # Differs from Linux
//! - `tc netem loss random` draws from one stream per qdisc in arrival order; here the n-th packet's
//!   fate is a function of (seed, element, n).
//!
//! # Not implemented
//! - Correlation (`netem loss random P C`), which does not do what it says; see `gilbert-elliott`.

use anabranch_core::{
    registry::{Meta, Source},
    rng::Draw,
    units::{Fraction, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ImpairParams, Impairment, Verdict, View};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "bernoulli-loss",
    title: "Bernoulli loss",
    summary: "Loses each packet independently with one probability.",
    sources: &[Source {
        id: "tc-netem(8)",
        items: &["loss random"],
    }],
};

/// Bernoulli loss has one parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Probability that a packet is lost, 0 to 1.
    pub rate: Fraction,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            rate: Fraction::ZERO,
        }
    }
}

impl ImpairParams for Params {}

/// Bernoulli loss at work.
#[derive(Debug)]
pub struct BernoulliLoss {
    rate: f64,
}

impl BernoulliLoss {
    /// With these parameters.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            rate: params.rate.get(),
        }
    }
}

impl Impairment for BernoulliLoss {
    fn judge(&mut self, _now: Instant, _packet: View, draw: &mut Draw) -> Verdict {
        if draw.chance(self.rate) {
            Verdict::Lose
        } else {
            Verdict::Pass
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::{packet::Ecn, rng::Stream};

    #[test]
    fn loses_its_share() {
        let mut loss = BernoulliLoss::new(&Params {
            rate: Fraction::new(0.01),
        });
        let stream = Stream::new(1, "link.a.forward.impair.bernoulli-loss.0");
        let n = 200_000_u32;
        let gone = (0..u64::from(n))
            .filter(|&index| {
                let view = View {
                    size: 1500,
                    ecn: Ecn::NotEct,
                    index,
                };
                loss.judge(Instant::START, view, &mut stream.at(index)) == Verdict::Lose
            })
            .count();
        // Four standard deviations of a binomial: 4 * sqrt(n p (1 - p)) = 178.
        assert!((gone as f64 - 2000.0).abs() < 178.0, "{gone}");
    }
}
