//! The keys of a replay that select packets of its capture.

use std::{borrow::Cow, fmt};

use anabranch_capture::{Endpoint, selection::NotAnEndpoint};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A sender or receiver in a capture, as the scenario writes it.
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

/// A protocol above IP in a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Captured {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP and `ICMPv6`.
    Icmp,
    /// SCTP.
    Sctp,
    /// ESP of IPsec.
    Esp,
}

impl Captured {
    /// Its numbers in IP headers (IANA, Protocol Numbers).
    #[must_use]
    pub const fn numbers(self) -> &'static [u8] {
        match self {
            Self::Tcp => &[6],
            Self::Udp => &[17],
            Self::Icmp => &[1, 58],
            Self::Sctp => &[132],
            Self::Esp => &[50],
        }
    }
}
