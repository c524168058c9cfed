//! The switch of delayed acknowledgments: `"off"` or a table.

use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::super::ack::DelayedAckTable;

/// When the receiver may hold an acknowledgment back (RFC 5681 §4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum DelayedAck {
    /// Every segment is acknowledged: `"off"`.
    #[serde(serialize_with = "off")]
    #[schemars(with = "OffWord")]
    Off,
    /// An acknowledgment for every so many segments, or after some time.
    On(DelayedAckTable),
}

/// The word that stands for no delay.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "stands for the word in the schema")]
enum OffWord {
    Off,
}

fn off<S: serde::Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("off")
}

impl<'de> Deserialize<'de> for DelayedAck {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrTable;
        impl<'de> Visitor<'de> for WordOrTable {
            type Value = DelayedAck;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("\"off\" or a table such as { segments = 2, timeout = \"200 ms\" }")
            }
            fn visit_str<E: Error>(self, word: &str) -> Result<DelayedAck, E> {
                if word == "off" {
                    Ok(DelayedAck::Off)
                } else {
                    Err(E::invalid_value(serde::de::Unexpected::Str(word), &self))
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DelayedAck, A::Error> {
                DelayedAckTable::deserialize(MapAccessDeserializer::new(map)).map(DelayedAck::On)
            }
        }
        deserializer.deserialize_any(WordOrTable)
    }
}
