//! A differentiated services code point: a number, or the name that the RFCs give it.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The DSCP of a flow's packets (RFC 2474).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dscp(u8);

/// The names of RFC 2474, RFC 2597, RFC 3246, RFC 5865 and RFC 8622, in the order of their numbers.
const NAMES: &[(&str, u8)] = &[
    ("cs0", 0),
    ("le", 1),
    ("cs1", 8),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("cs2", 16),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("cs3", 24),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("cs4", 32),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("cs5", 40),
    ("va", 44),
    ("ef", 46),
    ("cs6", 48),
    ("cs7", 56),
];

impl Dscp {
    /// The six bits.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
    /// Whether it is the default.
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    pub(crate) fn is_default(&self) -> bool {
        self.0 == 0
    }
}

impl Serialize for Dscp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.0)
    }
}

impl<'de> Deserialize<'de> for Dscp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CodePoint;
        impl de::Visitor<'_> for CodePoint {
            type Value = Dscp;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "`ef`, `va`, `le`, `cs0` to `cs7`, `af11` to `af43`, or a number from 0 to 63",
                )
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Dscp, E> {
                u8::try_from(number)
                    .ok()
                    .filter(|number| *number < 64)
                    .map(Dscp)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Signed(number), &self))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Dscp, E> {
                self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<Dscp, E> {
                let known = NAMES.iter().find(|(known, _)| *known == name);
                known
                    .map(|(_, number)| Dscp(*number))
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Str(name), &self))
            }
        }
        deserializer.deserialize_any(CodePoint)
    }
}

impl JsonSchema for Dscp {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Dscp".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        json_schema!({
            "anyOf": [
                { "type": "integer", "minimum": 0, "maximum": 63 },
                { "enum": names },
            ],
        })
    }
}
