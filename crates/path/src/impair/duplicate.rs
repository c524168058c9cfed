//! Duplication: a packet arrives twice, the copy directly after the original.
//!
//! # Differs from Linux
//! - `tc netem duplicate` inserts the copy before the rate, so that it consumes capacity. Here the
//!   copy is made after the link's rate, and consumes the capacity of the following links.
//!
//! # Not implemented
//! - Correlation between consecutive packets; more than one copy per link.

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
    summary: "Duplicates each packet independently with one probability; the copy arrives directly after it.",
    sources: &[
        Source {
            id: "RFC 5560",
            items: &["definition of a duplicate"],
        },
        Source {
            id: "tc-netem(8)",
            items: &["duplicate"],
        },
    ],
};

/// Parameter of duplication.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Probability that a packet is duplicated, 0 to 1.
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

/// State of a duplication.
#[derive(Debug)]
pub struct Duplicate {
    rate: f64,
}

impl Duplicate {
    /// Creates the impairment with these parameters.
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
