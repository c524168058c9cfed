//! Duplication: a packet arrives twice, the copy right behind it.
//!
//! # Differs from Linux
//! - `tc netem duplicate` puts the copy in again before the rate, so that it takes capacity; here it is made on the
//!   way, behind the link's rate, and takes that of the links that follow.
//!
//! # Not implemented
//! - Correlation between one packet's fate and the next; more than one copy per link.

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
    name: "duplicate",
    title: "Duplication",
    summary: "Doubles each packet independently with one probability; the copy arrives right behind.",
    sources: &[
        Source {
            id: "RFC 5560",
            items: &["what a duplicate is"],
        },
        Source {
            id: "tc-netem(8)",
            items: &["duplicate"],
        },
    ],
};

/// Duplication has one parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Probability that a packet is doubled, 0 to 1.
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

/// Duplication at work.
#[derive(Debug)]
pub struct Duplicate {
    rate: f64,
}

impl Duplicate {
    /// With these parameters.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            rate: params.rate.get(),
        }
    }
}

impl Impairment for Duplicate {
    fn judge(&mut self, _now: Instant, _packet: View, draw: &mut Draw) -> Verdict {
        if draw.chance(self.rate) {
            Verdict::Duplicate
        } else {
            Verdict::Pass
        }
    }
}
