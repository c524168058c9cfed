//! Values that select packets: addresses, ports and code points, common to scenarios and gateway
//! configurations.

use core::net::IpAddr;
use std::{borrow::Cow, fmt, marker::PhantomData, str::FromStr};

use ipnet::IpNet;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, IntoDeserializer},
};

/// Reads a text, or a number, with `FromStr`, whose error describes the problem.
#[macro_export]
macro_rules! from_text {
    ($type:ty, $expecting:literal) => {
        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                struct Text;
                impl ::serde::de::Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: ::serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(|why| {
                            E::custom(format!("{text:?} {why}; expected {}", $expecting))
                        })
                    }
                    fn visit_i64<E: ::serde::de::Error>(self, number: i64) -> Result<$type, E> {
                        number.to_string().parse().map_err(|why| {
                            E::custom(format!("{number} {why}; expected {}", $expecting))
                        })
                    }
                    fn visit_u64<E: ::serde::de::Error>(self, number: u64) -> Result<$type, E> {
                        number.to_string().parse().map_err(|why| {
                            E::custom(format!("{number} {why}; expected {}", $expecting))
                        })
                    }
                }
                deserializer.deserialize_any(Text)
            }
        }
    };
}

/// [`from_text`], and writing as text.
#[macro_export]
macro_rules! as_text {
    ($type:ty, $types:tt, $expecting:literal) => {
        $crate::from_text!($type, $expecting);

        impl ::serde::Serialize for $type {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl ::schemars::JsonSchema for $type {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                ::schemars::json_schema!({ "description": $expecting, "type": $types })
            }
        }
    };
}

/// A list, or a single value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Many<T>(pub Vec<T>);

impl<T> Many<T> {
    /// Whether it contains no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for Many<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Many<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMore<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> de::Visitor<'de> for OneOrMore<T> {
            type Value = Many<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value or a list of values")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Many<T>, E> {
                T::deserialize(text.into_deserializer()).map(|one| Many(vec![one]))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Many<T>, E> {
                T::deserialize(number.into_deserializer()).map(|one| Many(vec![one]))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Many<T>, E> {
                T::deserialize(number.into_deserializer()).map(|one| Many(vec![one]))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Many<T>, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = list.next_element()? {
                    values.push(value);
                }
                if values.is_empty() {
                    return Err(de::Error::custom(
                        "an empty list fits no packet; expected a value or a list of values",
                    ));
                }
                Ok(Many(values))
            }
        }
        deserializer.deserialize_any(OneOrMore(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Many<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Many{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({
            "description": "A value, or a list of values.",
            "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }],
        })
    }
}

/// A port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port(u16);

impl Port {
    /// The port number, from 1.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl FromStr for Port {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.parse().ok().filter(|port| *port > 0);
        number.map(Self).ok_or("is no port")
    }
}

from_text!(Port, "a port from 1 to 65535");

impl Serialize for Port {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u16(self.0)
    }
}

impl JsonSchema for Port {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Port".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": 65535 })
    }
}

/// A range of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// The first port.
    pub first: u16,
    /// The last port.
    pub last: u16,
}

impl Ports {
    /// Whether the range contains this port.
    #[must_use]
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl FromStr for Ports {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (port(first), port(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self { first, last }),
            (Some(_), Some(_)) => Err("is a range whose first port is above its last"),
            _ => Err("is no port"),
        }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            return self.first.fmt(f);
        }
        write!(f, "{}-{}", self.first, self.last)
    }
}

as_text!(
    Ports,
    ["string", "integer"],
    "a port from 1 to 65535, or a range, for example \"5000-5010\""
);

/// An address and the prefix length of its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix(pub IpNet);

impl FromStr for Prefix {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self(address.into()));
        }
        text.parse().map(Self).map_err(|_| "is no prefix")
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

as_text!(
    Prefix,
    "string",
    "an address with a prefix length, for example \"192.0.2.0/24\""
);

/// A differentiated services code point (RFC 2474).
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

/// Synonyms, which are read but not written.
const SYNONYMS: &[(&str, u8)] = &[("be", 0), ("df", 0), ("default", 0), ("voice-admit", 44)];

impl Dscp {
    /// The six bits.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
    /// Whether it is the default.
    #[must_use]
    pub const fn is_default(&self) -> bool {
        self.0 == 0
    }
}

impl FromStr for Dscp {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut known = NAMES.iter().chain(SYNONYMS);
        let named = known.find(|(name, _)| name.eq_ignore_ascii_case(text));
        let number = || text.parse().ok().filter(|number| *number < 64);
        let number = named.map(|(_, number)| *number).or_else(number);
        number.map(Self).ok_or("is no code point")
    }
}

from_text!(
    Dscp,
    "`ef`, `va`, `le`, `cs0` to `cs7`, `af11` to `af43`, or a number from 0 to 63"
);

impl Serialize for Dscp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.0)
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
