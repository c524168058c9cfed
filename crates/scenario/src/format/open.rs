//! Values of an open form.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de::IgnoredAny};

/// A value of any form.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Anything(pub serde_json::Value);

/// The table `[sweep]`, which a single run ignores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SweepTable;

impl<'de> Deserialize<'de> for SweepTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

impl JsonSchema for SweepTable {
    fn schema_name() -> Cow<'static, str> {
        "sweep".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "A grid of runs.",
            "properties": {
                "repeat": {
                    "type": "integer", "minimum": 1,
                    "description": "Number of seeds, from `seed` on.",
                },
            },
            "additionalProperties": {
                "type": "array", "minItems": 1,
                "description": "The values that the key's dotted path takes.",
            },
        })
    }
}
