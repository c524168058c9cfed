//! Damage: a packet arrives with wrong bits, which the check of the link's far end finds, so that it goes no
//! further.
//!
//! To a transport that is a loss; in packet tables and captures it has a fate of its own. `lost_packets` of a link
//! counts it with the losses. With `bit_error_rate` bits are wrong independently of each other, so that long packets
//! suffer more: a packet of n bytes is damaged with probability 1 − (1 − `bit_error_rate`)^(8 n).
//!
//! # Differs from Linux
//! - `tc netem corrupt` turns one bit over and sends the packet on, as far as the host whose checksum finds it; here
//!   it ends where this link does, as on links with a frame check, and takes no capacity of those behind it.
//!
//! # Not implemented
//! - Damage that no check finds.

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
    summary: "Damages packets at random, by packet or by bit; the far end of the link finds it and lets them go no further.",
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

/// Parameters of damage: one of the two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Probability that a packet is damaged, whatever its size, 0 to 1.
    pub rate: Fraction,
    /// Probability that a bit is wrong, 0 to 1; instead of `rate`.
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

/// Damage at work.
#[derive(Debug)]
pub struct Corrupt {
    rate: f64,
    /// ln(1 − bit error rate).
    ln_right: f64,
}

impl Corrupt {
    /// With these parameters.
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
