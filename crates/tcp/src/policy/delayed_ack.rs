//! The switch for delayed acknowledgments: `"off"` or a table.

use anabranch_core::units::Duration;
use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

/// Limits on the delay of an acknowledgment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayedAckTable {
    /// Segments per acknowledgment; 2 in RFC 5681 §4.2.
    pub segments: u32,
    /// Longest delay; below 500 ms in RFC 5681 §4.2.
    pub timeout: Duration,
    /// Upper bound of a timeout that follows the time between segments; left out, the timeout is
    /// fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_timeout: Option<Duration>,
    /// Quickack mode: the number of segments acknowledged individually and at once, at the start
    /// and after a pause, unless the application replies to each. At most half of the window; 0
    /// disables it.
    #[serde(default)]
    pub quick_segments: u32,
    /// Quickack mode begins again (Linux): for `quick_segments` segments after a duplicate (its
    /// acknowledgment is the first) and after a pause longer than the retransmission timeout; for
    /// two after the first CE mark (RFC 3168, neither DCTCP nor AccECN), not after further marks;
    /// for one after CWR. The acknowledgment of a filled gap counts, too. Without `quick_again`
    /// only a pause of a second begins it again, and each mark is acknowledged at once. Needs
    /// `quick_segments`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quick_again: bool,
    /// A segment with PSH, or a short one, is acknowledged as soon as the application has read all
    /// data, unless the application replies: the sender may be waiting for the acknowledgment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub push: bool,
    /// The timeout is a tick of the host's clock, counted from the start of the run: each tick
    /// acknowledges all waiting segments, so the delay is at most one tick and usually less (Wright
    /// and Stevens, TCP/IP Illustrated, Volume 2, ch. 25). Excludes `max_timeout` and
    /// `quick_segments`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ticking: bool,
}

/// Delayed acknowledgments (RFC 5681 §4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum DelayedAck {
    /// Every segment is acknowledged: `"off"`.
    #[serde(serialize_with = "off")]
    #[schemars(with = "OffWord")]
    Off,
    /// One acknowledgment per `segments` segments, or after a timeout.
    On(DelayedAckTable),
}

/// The word for no delay.
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
