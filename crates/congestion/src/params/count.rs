//! Counts of segments and samples.

use std::{fmt, str::FromStr};

use anabranch_core::units::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

/// A count of full segments, written with its unit: `"16 packets"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
pub struct Packets(u32);

impl Packets {
    /// Largest count: a window of 1,500-byte packets at 100 Gbit/s and 120 ms.
    pub const MAX: u32 = 1_000_000;

    /// # Panics
    /// If `count` is 0 or above [`Self::MAX`]; in a `const` this is a compile error.
    #[must_use]
    pub const fn new(count: u32) -> Self {
        assert!(count >= 1 && count <= Self::MAX, "1..1000000 packets");
        Self(count)
    }
    /// The count.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
    /// The count as a real number, the unit of most window equations.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0)
    }
    /// Bytes of this number of segments of `smss`.
    #[must_use]
    pub fn bytes(self, smss: Bytes) -> Bytes {
        smss * u64::from(self.0)
    }
}

impl FromStr for Packets {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = text.trim().split_once(' ').unwrap_or((text, ""));
        match (number.parse(), unit.trim_start()) {
            (Ok(count @ 1..=Self::MAX), "packet" | "packets") => Ok(Self(count)),
            _ => Err(format!(
                "{text:?} is not a number of packets from 1 to {}",
                Self::MAX
            )),
        }
    }
}

impl<'de> Deserialize<'de> for Packets {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(Text {
            expected: "a number of packets, as in \"16 packets\"",
            read: |text| text.parse(),
        })
    }
}

/// Reads a value from a string; the error names the expected form.
struct Text<T> {
    expected: &'static str,
    read: fn(&str) -> Result<T, String>,
}

impl<T> de::Visitor<'_> for Text<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.read)(text).map_err(|wrong| E::custom(format!("{wrong}: expected {}", self.expected)))
    }
}

impl From<Packets> for String {
    fn from(packets: Packets) -> Self {
        format!(
            "{} packet{}",
            packets.0,
            if packets.0 == 1 { "" } else { "s" }
        )
    }
}

impl JsonSchema for Packets {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Packets".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[0-9]+ packets?$",
            "examples": ["16 packets"],
            "x-type": "packets",
            "x-units": "packet (packets)",
            "x-minimum": Self(1),
            "x-maximum": Self(Self::MAX),
        })
    }
}

/// A count of RTT samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Samples(u32);

impl Samples {
    /// Largest count.
    pub const MAX: u32 = 1_000;

    /// # Panics
    /// If `count` is 0 or above [`Self::MAX`]; in a `const` this is a compile error.
    #[must_use]
    pub const fn new(count: u32) -> Self {
        assert!(count >= 1 && count <= Self::MAX, "1..1000 samples");
        Self(count)
    }
    /// The count.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl TryFrom<u32> for Samples {
    type Error = String;
    fn try_from(count: u32) -> Result<Self, String> {
        if (1..=Self::MAX).contains(&count) {
            Ok(Self(count))
        } else {
            Err(format!("{count} is outside 1..{}: samples", Self::MAX))
        }
    }
}

impl From<Samples> for u32 {
    fn from(samples: Samples) -> Self {
        samples.0
    }
}

impl JsonSchema for Samples {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Samples".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": Self::MAX })
    }
}
