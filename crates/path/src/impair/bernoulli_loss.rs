//! Independent loss: every packet is lost with the same probability, with an optional limit on
//! consecutive losses.
//!
//! # Differs from Linux
//! - `tc netem loss random` draws from one stream per qdisc in arrival order; here the n-th
//!   packet's outcome is a function of (seed, element, n).
//!
//! # Not implemented
//! - Correlation (`netem loss random P C`), which does not work as documented; see
//!   `gilbert-elliott`.

use std::num::NonZeroU32;

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
    summary: "Loses each packet independently with one probability, optionally with a limit on consecutive losses.",
    sources: &[Source {
        id: "tc-netem(8)",
        items: &["loss random"],
    }],
};

/// Parameters of Bernoulli loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Probability that a packet is lost, 0 to 1.
    pub rate: Fraction,
    /// Maximum number of consecutive losses: the next packet gets through whatever is drawn, so the
    /// share of losses is below `rate`. None: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NonZeroU32")]
    pub max_burst: Option<NonZeroU32>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            rate: Fraction::ZERO,
            max_burst: None,
        }
    }
}

impl ImpairParams for Params {}

/// State of a Bernoulli loss.
#[derive(Debug)]
pub struct BernoulliLoss {
    rate: f64,
    max_burst: u32,
    /// Packets lost since the last that got through.
    burst: u32,
}

impl BernoulliLoss {
    /// Creates the impairment with these parameters.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            rate: params.rate.get(),
            max_burst: params.max_burst.map_or(u32::MAX, NonZeroU32::get),
            burst: 0,
        }
    }
    /// Continues from the state of `before`.
    pub(super) fn follow(&mut self, before: &Self) {
        self.burst = before.burst;
    }
}

impl Impairment for BernoulliLoss {
    fn judge(&mut self, _now: Instant, _packet: View, draw: &mut Draw) -> Verdict {
        if draw.chance(self.rate) && self.burst < self.max_burst {
            self.burst = self.burst.saturating_add(1);
            Verdict::Lose
        } else {
            self.burst = 0;
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
            max_burst: None,
        });
        let stream = Stream::new(1, "link.a.forward.impair.bernoulli-loss.0");
        let n = 200_000_u32;
        let gone = (0..u64::from(n))
            .filter(|&index| {
                let view = View {
                    size: 1500,
                    ecn: Ecn::NotEct,
                    index,
                    has_data: true,
                };
                loss.judge(Instant::START, view, &mut stream.at(index)) == Verdict::Lose
            })
            .count();
        // Four standard deviations of a binomial: 4 * sqrt(n p (1 - p)) = 178.
        assert!((gone as f64 - 2000.0).abs() < 178.0, "{gone}");
    }

    #[test]
    fn consecutive_losses_respect_the_cap() {
        for cap in [1, 2, 7] {
            let mut loss = BernoulliLoss::new(&Params {
                rate: Fraction::new(0.9),
                max_burst: NonZeroU32::new(cap),
            });
            let stream = Stream::new(2, "link.a.forward.impair.bernoulli-loss.0");
            let (mut longest, mut row) = (0, 0);
            for index in 0..10_000 {
                let view = View {
                    size: 1500,
                    ecn: Ecn::NotEct,
                    index,
                    has_data: true,
                };
                let verdict = loss.judge(Instant::START, view, &mut stream.at(index));
                row = if verdict == Verdict::Lose { row + 1 } else { 0 };
                longest = longest.max(row);
            }
            assert_eq!(longest, cap);
        }
    }
}
