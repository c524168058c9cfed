//! The keys of a replay that select packets of its capture.

use std::{borrow::Cow, fmt};

use anabranch_capture::{Endpoint, Protocol, selection::NotAnEndpoint};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A sender or receiver in a capture, as written in the scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host(pub Endpoint);

impl Serialize for Host {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Host {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl de::Visitor<'_> for Text {
            type Value = Host;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{NotAnEndpoint}")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Host, E> {
                text.parse()
                    .map(Host)
                    .map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

impl JsonSchema for Host {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "CapturedHost".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "x-type": "host",
            "examples": ["10.0.0.1", "10.0.0.1:443", "[2001:db8::1]:443", "10.0.0.0/8", "*:443"],
        })
    }
}

/// A protocol above IP in a capture, as written in the scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Captured(pub Protocol);

/// The names of protocols.
const NAMES: &[&str] = &["tcp", "udp", "icmp", "sctp", "esp"];

impl Serialize for Captured {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Protocol::Number(number) => serializer.serialize_u8(number),
            named => serializer.serialize_str(named.name().unwrap_or_default()),
        }
    }
}

impl<'de> Deserialize<'de> for Captured {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrNumber;

        impl de::Visitor<'_> for NameOrNumber {
            type Value = Captured;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(
                    f,
                    "a protocol, for example \"tcp\", or its number in IP headers, 0 to 255"
                )
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Captured, E> {
                let mut named = Protocol::NAMED.into_iter();
                named
                    .find(|protocol| protocol.name() == Some(text))
                    .map(Captured)
                    .ok_or_else(|| E::unknown_variant(text, NAMES))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Captured, E> {
                u8::try_from(number)
                    .map(|number| Captured(Protocol::Number(number)))
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Captured, E> {
                u8::try_from(number)
                    .map(|number| Captured(Protocol::Number(number)))
                    .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
            }
        }

        deserializer.deserialize_any(NameOrNumber)
    }
}

impl JsonSchema for Captured {
    fn schema_name() -> Cow<'static, str> {
        "Captured".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A protocol above IP in a capture.",
            "anyOf": [
                { "type": "string", "const": "tcp", "description": "TCP." },
                { "type": "string", "const": "udp", "description": "UDP." },
                { "type": "string", "const": "icmp", "description": "ICMP and `ICMPv6`." },
                { "type": "string", "const": "sctp", "description": "SCTP." },
                { "type": "string", "const": "esp", "description": "ESP of IPsec." },
                {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": 255,
                    "description": "Another, by its number in IP headers (IANA, Protocol Numbers).",
                },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocol_names_equal_those_of_the_capture_reader() {
        let names = Protocol::NAMED.map(Protocol::name);
        assert!(names.iter().copied().flatten().eq(NAMES.iter().copied()));
    }
}
