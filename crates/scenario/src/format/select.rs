//! Which packets of programs a flow carries.

use core::net::{IpAddr, Ipv4Addr};
use std::{borrow::Cow, fmt, marker::PhantomData, str::FromStr};

use ipnet::IpNet;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, IntoDeserializer},
};

/// Which packets of programs a flow carries: those that fit each key that is given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Match {
    /// Ports of either end, over TCP or UDP: `443`, `"5000-5010"`, or a list of these.
    #[serde(skip_serializing_if = "Many::is_empty")]
    pub port: Many<Ports>,
    /// Addresses of either end: `"192.0.2.0/24"`, or a list of these.
    #[serde(skip_serializing_if = "Many::is_empty")]
    pub prefix: Many<Prefix>,
}

impl Match {
    /// Whether no key is given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.port.is_empty() && self.prefix.is_empty()
    }
    /// Whether a packet between these addresses fits; it may have no ports.
    #[must_use]
    pub fn fits(&self, addresses: [IpAddr; 2], ports: Option<[u16; 2]>) -> bool {
        self.fits_ports(ports) && self.fits_addresses(addresses)
    }
    fn fits_ports(&self, ports: Option<[u16; 2]>) -> bool {
        let is_one = |port: u16| self.port.0.iter().any(|range| range.contains(port));
        self.port.is_empty() || ports.is_some_and(|ports| ports.into_iter().any(is_one))
    }
    /// Whether a packet between these addresses fits, whatever its ports are.
    #[must_use]
    pub fn fits_addresses(&self, addresses: [IpAddr; 2]) -> bool {
        let is_one = |address: IpAddr| self.prefix.0.iter().any(|net| net.0.contains(&address));
        self.prefix.is_empty() || addresses.into_iter().any(is_one)
    }
}

/// A list, or the one value by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Many<T>(pub Vec<T>);

impl<T> Many<T> {
    fn is_empty(&self) -> bool {
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

/// A range of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

impl Ports {
    fn contains(self, port: u16) -> bool {
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

/// An address and the length of its network's prefix.
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

/// An address that a host has besides those of its devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address(pub IpAddr);

impl FromStr for Address {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_one = |address: &IpAddr| {
            let is_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
            !(address.is_unspecified()
                || address.is_multicast()
                || address.is_loopback()
                || is_local)
                && *address != IpAddr::V4(Ipv4Addr::BROADCAST)
        };
        let address = text.parse().map_err(|_| "is no address")?;
        Some(Self(address))
            .filter(|one| is_one(&one.0))
            .ok_or("is no address of one host")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Reads a text, or a number where that is one, by `FromStr`; and writes it as a text.
macro_rules! as_text {
    ($type:ty, $types:tt, $expecting:literal) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl de::Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(|why| {
                            E::custom(format!("{text:?} {why}; expected {}", $expecting))
                        })
                    }
                    fn visit_i64<E: de::Error>(self, number: i64) -> Result<$type, E> {
                        number.to_string().parse().map_err(|why| {
                            E::custom(format!("{number} {why}; expected {}", $expecting))
                        })
                    }
                    fn visit_u64<E: de::Error>(self, number: u64) -> Result<$type, E> {
                        number.to_string().parse().map_err(|why| {
                            E::custom(format!("{number} {why}; expected {}", $expecting))
                        })
                    }
                }
                deserializer.deserialize_any(Text)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "description": $expecting, "type": $types })
            }
        }
    };
}

as_text!(
    Ports,
    ["string", "integer"],
    "a port from 1 to 65535, or a range, for example \"5000-5010\""
);
as_text!(
    Prefix,
    "string",
    "an address with a prefix length, for example \"192.0.2.0/24\""
);
as_text!(
    Address,
    "string",
    "an address of one host, for example \"192.0.2.1\""
);

#[cfg(test)]
mod tests {
    use super::*;

    fn of(port: &[&str], prefix: &[&str]) -> Match {
        Match {
            port: Many(
                port.iter()
                    .map(|text| text.parse().expect("ports"))
                    .collect(),
            ),
            prefix: Many(
                prefix
                    .iter()
                    .map(|text| text.parse().expect("a prefix"))
                    .collect(),
            ),
        }
    }

    #[test]
    fn every_key_that_is_given_must_fit() {
        let ends = ["10.0.0.1", "192.0.2.7"].map(|text| text.parse().expect("an address"));
        for (selector, ports, fits) in [
            (of(&["443"], &[]), Some([40_000, 443]), true),
            (of(&["443"], &[]), Some([443, 40_000]), true),
            (of(&["443"], &[]), Some([40_000, 80]), false),
            // A fragment, or ICMP.
            (of(&["1-65535"], &[]), None, false),
            (of(&["80", "5000-5010"], &[]), Some([9, 5010]), true),
            (of(&[], &["192.0.2.0/24"]), None, true),
            (of(&[], &["192.0.3.0/24", "2001:db8::/32"]), None, false),
            (of(&["443"], &["192.0.2.7"]), Some([9, 443]), true),
            (of(&["443"], &["192.0.2.8"]), Some([9, 443]), false),
            (of(&["443"], &["192.0.2.7"]), Some([9, 80]), false),
        ] {
            assert_eq!(selector.fits(ends, ports), fits, "{selector:?} {ports:?}");
        }
    }

    #[test]
    fn only_addresses_of_one_host_are_addresses() {
        for wrong in [
            "0.0.0.0",
            "224.0.0.1",
            "127.0.0.1",
            "::",
            "ff02::1",
            "fe80::1",
            "here",
            "1.2.3.4/8",
            "255.255.255.255",
        ] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
        for right in ["192.0.2.1", "2001:db8::1"] {
            assert!(right.parse::<Address>().is_ok(), "{right}");
        }
    }
}
