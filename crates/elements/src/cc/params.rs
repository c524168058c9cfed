//! Types of parameters: what is outside its bounds cannot be built, from a file or from code.

use std::{fmt, str::FromStr};

use super::{
    Init,
    hystart::{Kind, plus_plus},
};
use anabranch_core::units::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

macro_rules! bounded {
    ($(#[$meta:meta])* $Name:ident, $min:literal ..= $max:literal, $hint:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $Name(f64);

        impl $Name {
            /// # Panics
            /// If `value` is outside the bounds; in a `const` this is a compile error.
            #[must_use]
            pub const fn new(value: f64) -> Self {
                assert!(value >= $min && value <= $max, $hint);
                Self(value)
            }
            /// The number.
            #[must_use]
            pub const fn get(self) -> f64 {
                self.0
            }
        }
        impl TryFrom<f64> for $Name {
            type Error = String;
            fn try_from(value: f64) -> Result<Self, String> {
                if ($min..=$max).contains(&value) {
                    Ok(Self(value))
                } else {
                    Err(format!("{value} is outside {}..{}: {}", $min, $max, $hint))
                }
            }
        }
        impl From<$Name> for f64 {
            fn from(value: $Name) -> Self {
                value.0
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
                json_schema!({ "type": "number", "minimum": $min, "maximum": $max })
            }
        }
    };
}

bounded! {
    /// CUBIC's scaling constant `C`, in segments per second cubed (RFC 9438 §4.1).
    CubicScale, 0.001..=100.0, "segments per second cubed"
}

bounded! {
    /// The share of the window that a reduction leaves.
    DecreaseFactor, 0.5..=0.99,
    "the share of the window that is kept (where a paper takes 0.2 away, write 0.8)"
}

bounded! {
    /// A factor of a rate or a window.
    Gain, 0.1..=10.0, "a gain"
}

bounded! {
    /// `g` of DCTCP (RFC 8257 §3.3).
    DctcpGain, 0.001..=1.0, "the weight of the last window"
}

bounded! {
    /// A share of something, from none of it to all of it.
    Share, 0.0..=1.0, "a share lies in 0..1"
}

/// A count of full segments, written with its unit: `"16 packets"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
pub struct Packets(u32);

impl Packets {
    /// The most that can be written: a window of 1,500 bytes each at 100 Gbit/s and 120 ms.
    pub const MAX: u32 = 1_000_000;

    /// # Panics
    /// If `count` is 0 or above [`Self::MAX`]; in a `const` this is a compile error.
    #[must_use]
    pub const fn new(count: u32) -> Self {
        assert!(count >= 1 && count <= Self::MAX, "1..1000000 packets");
        Self(count)
    }
    /// How many.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
    /// How many, as the windows of most equations count.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0)
    }
    /// That many segments of `smss`.
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

/// Reads a value from a string, and says what was expected where there is none.
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

/// A parameter that is the stack's (`"stack"`) unless it is written; its own values are written as
/// text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OrStack<T> {
    /// As the stack has it.
    #[default]
    Stack,
    /// The control's own.
    Own(T),
}

impl<T: Copy> OrStack<T> {
    /// The value, with the stack's at hand.
    #[must_use]
    pub fn or(self, stack: T) -> T {
        match self {
            Self::Stack => stack,
            Self::Own(own) => own,
        }
    }
}

impl<T: Serialize> Serialize for OrStack<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Stack => to.serialize_str("stack"),
            Self::Own(own) => own.serialize(to),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OrStack<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Word<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> de::Visitor<'de> for Word<T> {
            type Value = OrStack<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"stack\" or a value of the control's own")
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<OrStack<T>, E> {
                if word == "stack" {
                    Ok(OrStack::Stack)
                } else {
                    T::deserialize(de::value::StrDeserializer::new(word)).map(OrStack::Own)
                }
            }
        }
        from.deserialize_str(Word(std::marker::PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for OrStack<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("{}OrStack", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let own = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [{ "const": "stack" }, own] })
    }
}

/// What one ACK adds in slow start at most: the stack's (`"stack"`), or the control's own, as in
/// `"2 packets"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SlowStartLimit(pub OrStack<Packets>);

impl SlowStartLimit {
    /// In segments, for a slow start with this variant of HyStart: RFC 9406 §4.2 brings a limit
    /// of its own, eight segments or none where the sender paces.
    #[must_use]
    pub fn segments(self, init: &Init, hystart: OrStack<Kind>) -> f64 {
        let stack = init.stack;
        match (self.0, hystart.or(stack.hystart)) {
            (OrStack::Own(own), _) => own.as_f64(),
            (OrStack::Stack, Kind::Rfc9406) if stack.paced => f64::INFINITY,
            (OrStack::Stack, Kind::Rfc9406) => stack.slow_start_limit.max(plus_plus::L),
            (OrStack::Stack, _) => stack.slow_start_limit,
        }
    }
}

impl JsonSchema for SlowStartLimit {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SlowStartLimit".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        OrStack::<Packets>::json_schema(generator)
    }
}

/// A share: the stack's (`"stack"`), or the control's own number.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(transparent)]
pub struct ShareOrStack(pub OrStack<Share>);

impl From<Share> for ShareOrStack {
    fn from(own: Share) -> Self {
        Self(OrStack::Own(own))
    }
}

impl<'de> Deserialize<'de> for ShareOrStack {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct WordOrNumber;
        impl de::Visitor<'_> for WordOrNumber {
            type Value = ShareOrStack;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"stack\" or a share from 0 to 1")
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<ShareOrStack, E> {
                if word == "stack" {
                    Ok(ShareOrStack::default())
                } else {
                    Err(E::invalid_value(de::Unexpected::Str(word), &self))
                }
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<ShareOrStack, E> {
                Share::try_from(number)
                    .map(ShareOrStack::from)
                    .map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<ShareOrStack, E> {
                self.visit_f64(number as f64)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<ShareOrStack, E> {
                self.visit_f64(number as f64)
            }
        }
        from.deserialize_any(WordOrNumber)
    }
}

impl JsonSchema for ShareOrStack {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ShareOrStack".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        OrStack::<Share>::json_schema(generator)
    }
}

/// A count of RTT samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Samples(u32);

impl Samples {
    /// The most that may be asked for.
    pub const MAX: u32 = 1_000;

    /// # Panics
    /// If `count` is 0 or above [`Self::MAX`]; in a `const` this is a compile error.
    #[must_use]
    pub const fn new(count: u32) -> Self {
        assert!(count >= 1 && count <= Self::MAX, "1..1000 samples");
        Self(count)
    }
    /// How many.
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

/// From what a reduction is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum ReductionBase {
    /// From what is in flight, FlightSize (RFC 5681 §3.1 equation 4, RFC 9438 §4.6).
    #[default]
    FlightSize,
    /// From the window, as Linux does, and ns-3 in CUBIC. It matters where the receive window or
    /// the application keeps less in flight.
    Cwnd,
}

impl ReductionBase {
    /// The bytes that a reduction by lost segments or marks starts from. Segments that limited
    /// transmit sent beyond the window do not count (RFC 5681 §3.2 step 1).
    #[must_use]
    pub fn on_congestion(self, in_flight: Bytes, cwnd: Bytes) -> Bytes {
        match self {
            Self::FlightSize => in_flight.min(cwnd),
            Self::Cwnd => cwnd,
        }
    }
    /// The bytes that a reduction by a timeout starts from. The window may be far below
    /// FlightSize there, in the middle of a recovery.
    #[must_use]
    pub fn on_rto(self, in_flight: Bytes, cwnd: Bytes) -> Bytes {
        match self {
            Self::FlightSize => in_flight,
            Self::Cwnd => cwnd,
        }
    }
}

/// How fast W_est grows in CUBIC's Reno-friendly region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum RenoFriendly {
    /// As Reno itself once the window from before the last reduction is reached (RFC 9438 §4.3).
    #[default]
    Rfc9438,
    /// By 3 (1 - β) ÷ (1 + β) segments per round trip throughout (RFC 8312 §4.2, as Linux and
    /// ns-3 do).
    Rfc8312,
}

/// In what a window is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum WindowCount {
    /// In bytes, as the equations of the RFCs have it: every ACK moves the window a little.
    #[default]
    Bytes,
    /// In whole segments, as Linux and ns-3 do: the window moves by one once enough are
    /// acknowledged.
    Segments,
}
