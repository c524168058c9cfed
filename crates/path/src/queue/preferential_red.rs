//! Preferential RED (Akiyama, Kozu and Yamaguchi, §4): RED with a drop probability multiplied by
//! `multiplier` for the flows with the highest rate.
//!
//! The heavy flows are either named (`select = { kind = "static", flows = [...] }`, §4.1) or
//! detected from the arrivals (`kind = "dynamic"`, §4.2, the study's history;
//! `kind = "space-saving"` in constant memory); see [`crate::heavy`]. A connection remains selected
//! until another is counted more often.
//!
//! The probability given by the average is multiplied, up to 1, and then spread over the packets as
//! in RED (`multiply = "plain"`). The study does not state whether its emulator multiplied before
//! or after the spreading; `multiply = "spaced"` multiplies after it. Below `min_threshold` and
//! above `max_threshold` all flows are treated alike.
//!
//! # Differs from the source
//! - The same as for RED, see [`super::red`].
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
    summary: "RED with a drop probability several times as high for the flows with the highest rates, which are named \
              or detected.",
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

/// Factor of a heavy flow's probability.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Multiplier(f64);

impl Multiplier {
    /// Maximum; any relevant probability becomes 1.
    pub const MAX: f64 = 1e6;

    /// # Panics
    /// If `value` is not above 0 and at most [`Self::MAX`]; in a `const` this is a compile error.
    #[must_use]
    pub const fn new(value: f64) -> Self {
        assert!(value > 0.0 && value <= Self::MAX, "above 0");
        Self(value)
    }
    /// Value.
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

/// Probability to which the multiplier applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Multiply {
    /// The probability given by the average, before spreading.
    #[default]
    Plain,
    /// The probability after spreading.
    Spaced,
}

red_params! {
    /// Parameters of preferential RED: the parameters of RED, and the following.
    pub struct Params {
        /// Factor of the probability of a heavy flow's packets (`n` in the study): above 0, at most
        /// 1,000,000.
        pub multiplier: Multiplier = Multiplier::new(10.0),
        /// Probability to which it applies; the study leaves this open.
        pub multiply: Multiply = Multiply::Plain,
        /// Selection of the heavy flows: `static` with `flows`, `dynamic` with `record_interval`,
        /// `statistics_interval` and `history_length`, or `space-saving` with `counters`,
        /// `half_life` and the two intervals.
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

/// Weighs the packets of heavy flows.
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
    /// Creates an empty queue.
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
