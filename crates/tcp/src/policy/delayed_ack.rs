//! The switch of delayed acknowledgments: `"off"` or a table.

use anabranch_core::units::Duration;
use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

/// How long an acknowledgment may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayedAckTable {
    /// For at most so many segments; 2 in RFC 5681 §4.2.
    pub segments: u32,
    /// For at most so long; below 500 ms in RFC 5681 §4.2.
    pub timeout: Duration,
    /// The timeout follows the time between segments, up to this; left out, it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_timeout: Option<Duration>,
    /// So many segments at the start, and after a pause, are acknowledged at once each, unless the
    /// application answers each (at most half of what the window holds; 0 for none).
    #[serde(default)]
    pub quick_segments: u32,
    /// Quickack mode begins again (Linux): as many segments are acknowledged at once each after a duplicate, whose
    /// acknowledgment is one of them, and after a pause longer than the retransmission timeout; two where a mark begins to
    /// be echoed (RFC 3168, neither DCTCP nor AccECN), further marks having none; one where the sender says that it has
    /// reacted. The acknowledgment of what fills a gap is one of them. Without it a pause of a second begins again, nothing
    /// else does, and each mark is acknowledged at once. Needs `quick_segments`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quick_again: bool,
    /// A segment with PSH, or one that is not full, is acknowledged as soon as the application has read all there
    /// is, unless the application answers: its sender may have nothing else to send until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub push: bool,
    /// The timeout is a tick of the host's clock, counted from the start of the run: what waits when it comes is
    /// acknowledged, so that nothing waits longer and most less (Wright and Stevens, TCP/IP Illustrated, Volume 2,
    /// ch. 25). Excludes `max_timeout` and `quick_segments`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ticking: bool,
}

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
