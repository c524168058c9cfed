//! Maximum probability of Adaptive RED (Floyd, Gummadi and Shenker 2001, §4). It rises by a small
//! step while the average is above the target range between the thresholds, and falls by a factor
//! while the average is below it.
//!
//! The probability is adapted when a packet arrives, once for any number of elapsed intervals,
//! because nothing changes without arrivals.

use anabranch_core::units::{Duration, Fraction, Instant};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::{super::Contradiction, params::Probability};

/// Whether `max_probability` follows the average: `false`, `true`, or a table.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Adaptive {
    /// It is constant.
    #[default]
    Off,
    /// It follows the average.
    On(AdaptiveTable),
}

/// Adaptation of `max_probability` to the average.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdaptiveTable {
    /// Target range of the average, as two shares of the distance from `min_threshold` to
    /// `max_threshold`; 0.4 and 0.6 in the source.
    pub target: [Fraction; 2],
    /// Interval between adaptations; 0.5 s in the source.
    pub interval: Duration,
    /// Maximum increase, in addition limited to a quarter of `max_probability`; 0.01 in the source.
    pub alpha: Probability,
    /// Factor of a decrease; 0.9 in the source.
    pub beta: Probability,
    /// Minimum of `max_probability`; 0.01 in the source.
    pub floor: Probability,
    /// Maximum of `max_probability`; 0.5 in the source.
    pub ceiling: Probability,
}

impl Default for AdaptiveTable {
    fn default() -> Self {
        Self {
            target: [Fraction::new(0.4), Fraction::new(0.6)],
            interval: Duration::from_millis(500),
            alpha: Probability::new(0.01),
            beta: Probability::new(0.9),
            floor: Probability::new(0.01),
            ceiling: Probability::new(0.5),
        }
    }
}

impl Adaptive {
    /// Checks the table against the initial probability.
    pub(super) fn check(&self, max_probability: Probability) -> Result<(), Contradiction> {
        let Self::On(table) = self else {
            return Ok(());
        };
        let wrong = |key, message: String, expected: String| {
            Err(Contradiction {
                key,
                message,
                expected,
            })
        };
        let [lower, upper] = table.target.map(Fraction::get);
        let (floor, ceiling) = (table.floor.get(), table.ceiling.get());
        let start = max_probability.get();
        if lower >= upper {
            return wrong(
                &["adaptive", "target"],
                format!("the target from {lower} to {upper} is empty"),
                "the lower share first, as in [0.4, 0.6]".to_owned(),
            );
        }
        if table.interval == Duration::ZERO {
            return wrong(
                &["adaptive", "interval"],
                "an interval of nothing".to_owned(),
                "more than 0 s, as in \"500 ms\"".to_owned(),
            );
        }
        if floor > ceiling {
            return wrong(
                &["adaptive", "ceiling"],
                format!("`ceiling` ({ceiling}) is below `floor` ({floor})"),
                format!("{floor} at least"),
            );
        }
        if !(floor..=ceiling).contains(&start) {
            return wrong(
                &["max_probability"],
                format!("`max_probability` ({start}) is outside what `adaptive` allows"),
                format!("{floor}..{ceiling}, or another `floor` or `ceiling`"),
            );
        }
        Ok(())
    }
}

/// State of the adaptation.
#[derive(Debug)]
pub(super) struct Adapting {
    table: AdaptiveTable,
    /// Target range, in the unit of the average.
    target: [f64; 2],
    next: Instant,
}

impl Adapting {
    pub(super) fn new(table: AdaptiveTable, min: f64, max: f64) -> Self {
        Self {
            table,
            target: table.target.map(|share| min + share.get() * (max - min)),
            next: Instant::START + table.interval,
        }
    }
    pub(super) fn set_thresholds(&mut self, min: f64, max: f64) {
        let share = |share: Fraction| min + share.get() * (max - min);
        self.target = self.table.target.map(share);
    }
    /// Returns the probability from now on.
    pub(super) fn adapt(&mut self, now: Instant, average: f64, max_probability: f64) -> f64 {
        if now < self.next {
            return max_probability;
        }
        self.next = now.saturating_add(self.table.interval);
        let [lower, upper] = self.target;
        if average > upper {
            let alpha = self.table.alpha.get().min(max_probability / 4.0);
            (max_probability + alpha).min(self.table.ceiling.get())
        } else if average < lower {
            (max_probability * self.table.beta.get()).max(self.table.floor.get())
        } else {
            max_probability
        }
    }
}

impl Serialize for Adaptive {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_bool(false),
            Self::On(table) => table.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Adaptive {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SwitchOrTable;
        impl<'de> Visitor<'de> for SwitchOrTable {
            type Value = Adaptive;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("true, false or a table such as { interval = \"500 ms\" }")
            }
            fn visit_bool<E: Error>(self, on: bool) -> Result<Adaptive, E> {
                Ok(if on {
                    Adaptive::On(AdaptiveTable::default())
                } else {
                    Adaptive::Off
                })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Adaptive, A::Error> {
                AdaptiveTable::deserialize(MapAccessDeserializer::new(map)).map(Adaptive::On)
            }
        }
        deserializer.deserialize_any(SwitchOrTable)
    }
}

impl JsonSchema for Adaptive {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Adaptive".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = AdaptiveTable::json_schema(generator);
        json_schema!({ "anyOf": [{ "type": "boolean" }, table] })
    }
}
