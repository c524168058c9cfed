//! Preferential RED (Akiyama, Kozu and Yamaguchi, §4): RED in which the flows that use most drop `multiplier` times as
//! many of their packets.
//!
//! Who they are is either known (`select = { kind = "static", flows = [...] }`, §4.1) or found out from what
//! arrives (`kind = "dynamic"`, §4.2, the study's history; `kind = "space-saving"` in constant
//! memory): see [`crate::heavy`]. A connection that is chosen is so until others are counted
//! more often.
//!
//! The probability that the average gives is multiplied, at most to 1, and then spread over the packets as in RED
//! (`multiply = "plain"`). Whether the study's emulator did that or multiplied after the spreading it
//! does not say; `multiply = "spaced"` is the other reading. Below `min_threshold` and above
//! `max_threshold` all flows are alike.
//!
//! # Differs from the source
//! - As RED does, see [`super::red`].
//!
//! # Differs from Linux
//! - Linux has no such queue.
//!
//! # Not implemented
//! - Nothing.

use anabranch_core::{
    registry::{Meta, Source},
    units::Instant,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

mod select;

use self::select::Selector;
pub use self::select::{Select, Static};
use super::{
    Contradiction, Init, Item,
    red::{Factor, RedParams, Weigh, Weighed, red_params},
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "preferential-red",
    title: "Preferential RED",
    summary: "RED that drops several times as many packets of the flows that use most, named or found out.",
    sources: &[
        Source {
            id: "Akiyama, Kozu and Yamaguchi, Fairness Improvement among Modern TCPs with Packet Dropping",
            items: &["§4.1", "§4.2"],
        },
        Source {
            id: "Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993",
            items: &["§4", "§7"],
        },
    ],
};

/// By what a heavy flow's probability is multiplied.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Multiplier(f64);

impl Multiplier {
    /// The largest that can be written: whatever probability matters is 1 then.
    pub const MAX: f64 = 1e6;

    /// # Panics
    /// If `value` is not above 0 and at most [`Self::MAX`]; in a `const` this is a compile error.
    #[must_use]
    pub const fn new(value: f64) -> Self {
        assert!(value > 0.0 && value <= Self::MAX, "above 0");
        Self(value)
    }
    /// The number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Multiplier {
    type Error = String;
    fn try_from(value: f64) -> Result<Self, String> {
        if value > 0.0 && value <= Self::MAX {
            Ok(Self(value))
        } else {
            Err(format!(
                "{value} is out of range; expected a bare number above 0, and {} at most",
                Self::MAX
            ))
        }
    }
}

impl From<Multiplier> for f64 {
    fn from(value: Multiplier) -> Self {
        value.0
    }
}

impl JsonSchema for Multiplier {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Multiplier".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "exclusiveMinimum": 0, "maximum": Self::MAX })
    }
}

/// Which probability is multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Multiply {
    /// The one that the average gives, before it is spread.
    #[default]
    Plain,
    /// The one after spreading.
    Spaced,
}

red_params! {
    /// Parameters of preferential RED: those of RED, and its own.
    pub struct Params {
        /// By what the probability of a heavy flow's packets is multiplied (`n` of the study): above 0,
        /// and 1,000,000 at most.
        pub multiplier: Multiplier = Multiplier::new(10.0),
        /// Which probability is multiplied; open in the study.
        pub multiply: Multiply = Multiply::Plain,
        /// Whose: `static` with `flows`, `dynamic` with `record_interval`, `statistics_interval` and
        /// `history_length`, or `space-saving` with `counters`, `half_life` and the two intervals.
        pub select: Select = Select::default(),
    }
}

impl RedParams for Params {
    fn named(&self) -> Option<(&'static [&'static str], &[String])> {
        match &self.select {
            Select::Static(named) => Some((&["select", "flows"], &named.flows)),
            Select::Found(_) => None,
        }
    }
    fn check_own(&self) -> Result<(), Contradiction> {
        self.select.check()
    }
}

/// Weighs those that are heavy.
#[derive(Debug)]
pub struct Preferring {
    selector: Selector,
    heavy: Factor,
}

impl Weigh for Preferring {
    #[inline]
    fn factor(&mut self, item: &Item, _plain: f64, _now: Instant) -> Factor {
        if self.selector.selects(item) {
            self.heavy
        } else {
            Factor::NONE
        }
    }
}

/// A preferential RED queue.
pub type PreferentialRed = Weighed<Preferring>;

impl PreferentialRed {
    /// An empty queue.
    #[must_use]
    pub fn new(params: &Params, init: &Init<'_>) -> Self {
        let multiplier = params.multiplier.get();
        let weigh = Preferring {
            selector: Selector::new(&params.select, init),
            heavy: match params.multiply {
                Multiply::Plain => Factor {
                    plain: multiplier,
                    ..Factor::NONE
                },
                Multiply::Spaced => Factor {
                    spaced: multiplier,
                    ..Factor::NONE
                },
            },
        };
        Self::with(&params.common(), weigh, init)
    }
}
