//! Damage: a packet arrives with bit errors; the far end of the link detects them and drops it.
//!
//! To a transport this is a loss; packet tables and captures report it as a separate outcome.
//! `lost_packets` of a link includes it. With `bit_error_rate` bit errors are independent. Long
//! packets are therefore damaged more often: a packet of n bytes is damaged with probability 1 − (1
//! − `bit_error_rate`)^(8 n).
//!
//! # Differs from Linux
//! - `tc netem corrupt` inverts one bit and forwards the packet up to the host whose checksum
//!   detects it. Here the packet ends at this link, as on links with a frame check, and consumes no
//!   capacity of the following links.
//!
//! # Not implemented
//! - Undetected damage.

use anabranch_core::{
    math,
    registry::{Meta, Source},
    rng::Draw,
    units::{Fraction, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Contradiction, ImpairParams, Impairment, Verdict, View};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "corrupt",
    title: "Damage",
    summary: "Damages packets at random, by packet or by bit; the far end of the link detects the damage and drops the \
              packet.",
    sources: &[
        Source {
            id: "RFC 3819",
            items: &["§8.3 (error detection on links)"],
        },
        Source {
            id: "tc-netem(8)",
            items: &["corrupt"],
        },
    ],
};

/// Parameters of damage; at most one may be set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Probability that a packet is damaged, whatever its size, 0 to 1.
    pub rate: Fraction,
    /// Probability of a bit error, 0 to 1; instead of `rate`.
    pub bit_error_rate: Fraction,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            rate: Fraction::ZERO,
            bit_error_rate: Fraction::ZERO,
        }
    }
}

impl ImpairParams for Params {
    fn check(&self) -> Result<(), Contradiction> {
        if self.rate == Fraction::ZERO || self.bit_error_rate == Fraction::ZERO {
            return Ok(());
        }
        Err(Contradiction {
            key: &["bit_error_rate"],
            message: "the damage is given twice".to_owned(),
            expected: "`rate` or `bit_error_rate`".to_owned(),
        })
    }
}

/// State of a damage impairment.
#[derive(Debug)]
pub struct Corrupt {
    rate: f64,
    /// ln(1 − bit error rate).
    ln_right: f64,
}

impl Corrupt {
    /// Creates the impairment with these parameters.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            rate: params.rate.get(),
            ln_right: math::log1p(-params.bit_error_rate.get()),
        }
    }
}

impl Impairment for Corrupt {
    fn judge(&mut self, _now: Instant, packet: View, draw: &mut Draw) -> Verdict {
        let by_bits = -math::expm1(8.0 * f64::from(packet.size) * self.ln_right);
        if draw.chance(self.rate.max(by_bits)) {
            Verdict::Corrupt
        } else {
            Verdict::Pass
        }
    }
}
