//! A policer: a token bucket without a queue (RFC 2697).
//!
//! Tokens arrive at `rate` and fill first `burst`, then `excess`. A packet passes if one of the two
//! holds enough tokens, and takes them; otherwise it is lost at once. A sender can send a burst of
//! the accumulated tokens, and loses many packets in a row when they are used up (Flach et al.
//! 2016).
//!
//! # Differs from the source
//! - RFC 2697 marks packets green, yellow or red and leaves their treatment open. Here green and
//!   yellow packets pass and red packets are lost, in its colour-blind mode.
//!
//! # Differs from Linux
//! - `tc-police(8)` with `rate` and `burst` corresponds to `excess = "0 bytes"`. Not compared with
//!   its figures.
//!
//! # Not implemented
//! - The colour-aware mode; a peak rate (RFC 2698); marks instead of losses.

use anabranch_core::{
    quantity,
    registry::{Meta, Source},
    rng::Draw,
    units::{Bytes, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ImpairParams, Impairment, Verdict, View};
use crate::queue::bounded::Bandwidth;

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "policer",
    title: "Policer",
    summary: "A token bucket without a queue: packets that exceed `rate` and the tokens saved in the bucket are lost.",
    sources: &[
        Source {
            id: "RFC 2697",
            items: &["§1", "§3"],
        },
        Source {
            id: "Flach et al., An Internet-Wide Analysis of Traffic Policing (SIGCOMM 2016)",
            items: &["§2"],
        },
    ],
};

quantity! {
    /// Capacity of a bucket.
    BucketSize, Bytes, Bytes::ZERO, Bytes::new(1_000_000_000)
}

impl BucketSize {
    /// # Panics
    /// If `bytes` is above a billion; in a `const` this is a compile error.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        assert!(bytes <= 1_000_000_000, "0..1000000000 bytes");
        Self(Bytes::new(bytes))
    }
}

/// Parameters of a policer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Committed information rate (CIR of RFC 2697 §1), or `"unlimited"`: then every packet passes.
    pub rate: Bandwidth,
    /// Committed burst size (CBS of RFC 2697 §1). A packet larger than both buckets never passes.
    pub burst: BucketSize,
    /// Excess burst size (EBS of RFC 2697 §1).
    pub excess: BucketSize,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            rate: Bandwidth(None),
            burst: BucketSize::new(65_536),
            excess: BucketSize::new(0),
        }
    }
}

impl ImpairParams for Params {}

/// State of a policer. Tokens are bytes.
#[derive(Debug)]
pub struct Policer {
    /// Bytes per second.
    rate: Option<f64>,
    burst: f64,
    excess: f64,
    /// `Tc` and `Te` of RFC 2697 §3.
    committed: f64,
    beyond: f64,
    filled: Instant,
}

impl Policer {
    /// Creates a policer whose buckets are full.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        let burst = params.burst.get().get() as f64;
        let excess = params.excess.get().get() as f64;
        Self {
            rate: params.rate.0.map(|rate| rate.bits_per_s() as f64 / 8.0),
            burst,
            excess,
            committed: burst,
            beyond: excess,
            filled: Instant::START,
        }
    }

    /// Adds the tokens since the last packet to the first bucket, and its overflow to the second.
    fn fill(&mut self, now: Instant, rate: f64) {
        let tokens = self.committed + rate * now.saturating_since(self.filled).as_secs_f64();
        self.committed = tokens.min(self.burst);
        self.beyond = (self.beyond + tokens - self.committed).min(self.excess);
        self.filled = self.filled.max(now);
    }
}

impl Impairment for Policer {
    fn judge(&mut self, now: Instant, packet: View, _draw: &mut Draw) -> Verdict {
        let Some(rate) = self.rate else {
            return Verdict::Pass;
        };
        self.fill(now, rate);
        let size = f64::from(packet.size);
        if size <= self.committed {
            self.committed -= size;
        } else if size <= self.beyond {
            self.beyond -= size;
        } else {
            return Verdict::Lose;
        }
        Verdict::Pass
    }
}
