//! Types of queue parameters. Values outside their bounds cannot be built, from a file or from
//! code.

use std::fmt;

use anabranch_core::{
    bounded, optional, quantity,
    units::{Bytes, Duration, Rate},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

quantity! {
    /// A time constant of a control loop.
    ControlTime, Duration, Duration::from_micros(1), Duration::from_secs(100)
}
quantity! {
    /// A time during which bursts pass; may be zero.
    BurstTime, Duration, Duration::ZERO, Duration::from_secs(100)
}
quantity! {
    /// A packet's size.
    PacketSize, Bytes, Bytes::new(64), Bytes::new(65_535)
}
quantity! {
    /// Bytes that a queue may send per round.
    Quantum, Bytes, Bytes::new(64), Bytes::new(1_000_000)
}

impl ControlTime {
    /// # Panics
    /// If `ms` is 0 or above 100,000; in a `const` this is a compile error.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        assert!(ms >= 1 && ms <= 100_000, "1..100000 ms");
        Self(Duration::from_millis(ms))
    }
}
impl ControlTime {
    /// # Panics
    /// If `us` is 0 or above 100,000,000; in a `const` this is a compile error.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        assert!(us >= 1 && us <= 100_000_000, "1..100000000 us");
        Self(Duration::from_micros(us))
    }
}
impl BurstTime {
    /// # Panics
    /// If `us` is above 100,000,000; in a `const` this is a compile error.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        assert!(us <= 100_000_000, "0..100000000 us");
        Self(Duration::from_micros(us))
    }
    /// # Panics
    /// If `ms` is above 100,000; in a `const` this is a compile error.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        assert!(ms <= 100_000, "0..100000 ms");
        Self(Duration::from_millis(ms))
    }
}
impl PacketSize {
    /// # Panics
    /// If `bytes` is outside 64..65535; in a `const` this is a compile error.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        assert!(bytes >= 64 && bytes <= 65_535, "64..65535 bytes");
        Self(Bytes::new(bytes))
    }
}
impl Quantum {
    /// # Panics
    /// If `bytes` is outside 64..1000000; in a `const` this is a compile error.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        assert!(bytes >= 64 && bytes <= 1_000_000, "64..1000000 bytes");
        Self(Bytes::new(bytes))
    }
}

bounded! {
    /// A controller gain, in hertz.
    Hertz, 0.0..=100.0, "a gain in hertz"
}

bounded! {
    /// Ratio of two probabilities.
    Coupling, 0.0..=16.0, "a factor between two probabilities"
}

bounded! {
    /// Steepness of a probability: the exponent of a share.
    Exponent, 0.0..=16.0, "the exponent of a share"
}

/// A whole number within bounds, including 0.
macro_rules! whole {
    ($(#[$meta:meta])* $Name:ident, $Of:ty, $min:literal ..= $max:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "i64", into = "i64")]
        pub struct $Name($Of);

        impl $Name {
            /// # Panics
            /// If `value` is out of bounds; in a `const` this is a compile error.
            #[must_use]
            pub const fn new(value: $Of) -> Self {
                #[allow(unused_comparisons, reason = "the least may be that of the type")]
                let fits = value >= $min && value <= $max;
                assert!(fits, "out of bounds");
                Self(value)
            }
            /// Value.
            #[must_use]
            pub const fn get(self) -> $Of {
                self.0
            }
        }
        impl TryFrom<i64> for $Name {
            type Error = String;
            fn try_from(value: i64) -> Result<Self, String> {
                match <$Of>::try_from(value) {
                    Ok(small) if ($min..=$max).contains(&value) => Ok(Self(small)),
                    _ => Err(format!(
                        "{value} is out of range; expected a whole number from {} to {}",
                        $min, $max
                    )),
                }
            }
        }
        impl From<$Name> for i64 {
            fn from(value: $Name) -> Self {
                Self::from(value.0)
            }
        }
        impl JsonSchema for $Name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($Name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "integer", "minimum": $min, "maximum": $max })
            }
        }
    };
}

whole! {
    /// Bytes that a link adds to each packet, or removes.
    Overhead, i32, -64..=256
}
whole! {
    /// Minimum size of a packet on a link, in bytes.
    MinimumPacket, u32, 0..=256
}

/// Number of queues among which flows are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct QueueCount(u32);

impl QueueCount {
    /// Maximum.
    pub const MAX: u32 = 65_536;

    /// # Panics
    /// If `count` is 0 or above [`Self::MAX`]; in a `const` this is a compile error.
    #[must_use]
    pub const fn new(count: u32) -> Self {
        assert!(count >= 1 && count <= Self::MAX, "1..65536 queues");
        Self(count)
    }
    /// Number of queues.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl TryFrom<u32> for QueueCount {
    type Error = String;
    fn try_from(count: u32) -> Result<Self, String> {
        if (1..=Self::MAX).contains(&count) {
            Ok(Self(count))
        } else {
            Err(format!(
                "{count} is out of range; expected a number of queues from 1 to {}",
                Self::MAX
            ))
        }
    }
}

impl From<QueueCount> for u32 {
    fn from(count: QueueCount) -> Self {
        count.0
    }
}

impl JsonSchema for QueueCount {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "QueueCount".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": Self::MAX })
    }
}

/// One queue for each connection (`"per-connection"`), or a number of queues to which connections
/// are hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Queues {
    /// One queue for each connection that has waiting packets.
    #[default]
    PerConnection,
    /// This number of queues; connections may share one.
    Hashed(QueueCount),
}

const PER_CONNECTION: &str = "per-connection";

impl Serialize for Queues {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::PerConnection => to.serialize_str(PER_CONNECTION),
            Self::Hashed(count) => count.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Queues {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct WordOrCount;
        impl de::Visitor<'_> for WordOrCount {
            type Value = Queues;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(
                    f,
                    "{PER_CONNECTION:?} or a number of queues from 1 to {}",
                    QueueCount::MAX
                )
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<Queues, E> {
                if word == PER_CONNECTION {
                    Ok(Queues::PerConnection)
                } else {
                    Err(E::invalid_value(de::Unexpected::Str(word), &self))
                }
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Queues, E> {
                u32::try_from(number)
                    .ok()
                    .and_then(|count| QueueCount::try_from(count).ok())
                    .map(Queues::Hashed)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Signed(number), &self))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Queues, E> {
                self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
            }
        }
        from.deserialize_any(WordOrCount)
    }
}

impl JsonSchema for Queues {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Queues".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let count = QueueCount::json_schema(generator);
        json_schema!({ "anyOf": [{ "const": PER_CONNECTION }, count] })
    }
}

optional! {
    /// A rate, or `"unlimited"`.
    Bandwidth, Rate, "unlimited", "a rate with its unit, for example \"20 Mbit/s\""
}
optional! {
    /// A sojourn time above which every packet is marked, or `"off"`.
    MarkAbove, Duration, "off", "a sojourn time with its unit, for example \"1 ms\""
}
optional! {
    /// A sum of packet sizes, or `"unlimited"`.
    MemoryLimit, Bytes, "unlimited", "a size with its unit, for example \"32 MiB\""
}
