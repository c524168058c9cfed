//! Values of one text each.

use std::{
    fmt,
    marker::PhantomData,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use ipnet::IpNet;
use serde::{
    Deserialize, Deserializer,
    de::{self, IntoDeserializer},
};

/// Reads a text or a number by `FromStr`; its error is `message; help`.
macro_rules! from_text {
    ($type:ty, $expecting:literal) => {
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
                }
                deserializer.deserialize_any(Text)
            }
        }
    };
}

/// A list, or the one value by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Many<T>(pub Vec<T>);

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
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Many<T>, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = list.next_element()? {
                    values.push(value);
                }
                Ok(Many(values))
            }
        }
        deserializer.deserialize_any(OneOrMore(PhantomData))
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

from_text!(
    Prefix,
    "an address with a prefix length, for example \"10.9.0.1/24\""
);

/// A host and a UDP port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// By address.
    Address(SocketAddr),
    /// By name, looked up when the tunnel comes up.
    Name(String, u16),
}

impl FromStr for Endpoint {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return match address.port() {
                0 => Err("has port 0"),
                _ => Ok(Self::Address(address)),
            };
        }
        let (host, port) = text.rsplit_once(':').ok_or("has no port")?;
        let port = port
            .parse()
            .ok()
            .filter(|port| *port != 0)
            .ok_or("has no port from 1 to 65535")?;
        let is_label = |label: &str| {
            !label.is_empty()
                && label.len() <= 63
                && label
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
                && !label.starts_with('-')
        };
        let named = host.trim_end_matches('.');
        // What ends in a number is a mistyped address (RFC 1123 §2.1).
        let is_number = |label: &str| label.bytes().all(|b| b.is_ascii_digit());
        let last_is_name = named
            .rsplit('.')
            .next()
            .is_some_and(|label| !is_number(label));
        if named.len() > 253 || !named.split('.').all(is_label) || !last_is_name {
            return Err("has neither an address nor a host's name");
        }
        Ok(Self::Name(host.to_owned(), port))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

from_text!(
    Endpoint,
    "host and port, for example \"gw.example.net:51900\", \"192.0.2.1:51900\" or \"[2001:db8::1]:51900\""
);

/// An address of this machine and a UDP port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen(pub SocketAddr);

impl FromStr for Listen {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse::<SocketAddr>() {
            Ok(address) if address.port() == 0 => Err("has port 0"),
            Ok(address) => Ok(Self(address)),
            Err(_) => Err("is no address with a port"),
        }
    }
}

from_text!(
    Listen,
    "an address and a port, for example \"0.0.0.0:51900\" or \"[::]:51900\""
);

/// An address of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source(pub IpAddr);

impl FromStr for Source {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse::<IpAddr>() {
            Ok(address) if address.is_unspecified() => Err("is no one address"),
            Ok(address) => Ok(Self(address)),
            Err(_) => Err("is no address"),
        }
    }
}

from_text!(
    Source,
    "an address of this machine, for example \"192.0.2.10\""
);

/// A network interface's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface(pub String);

impl Default for Interface {
    fn default() -> Self {
        Self("anabranch0".to_owned())
    }
}

impl FromStr for Interface {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() || text.len() > 15 {
            return Err("is no interface's name");
        }
        if text == "."
            || text == ".."
            || text.contains(['/', ':'])
            || !text.bytes().all(|b| b.is_ascii_graphic())
        {
            return Err("is no interface's name");
        }
        Ok(Self(text.to_owned()))
    }
}

from_text!(
    Interface,
    "1 to 15 characters without blanks, `/` and `:`, for example \"eth0\""
);

/// A differentiated services code point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dscp(pub u8);

impl FromStr for Dscp {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digit = |text: &str, most: u8| text.parse::<u8>().ok().filter(|n| *n <= most);
        let lower = text.to_ascii_lowercase();
        let value = if let Some(class) = lower.strip_prefix("cs") {
            digit(class, 7).map(|class| 8 * class)
        } else if let Some(af) = lower.strip_prefix("af") {
            // RFC 2597 §6: class and drop precedence.
            let class = af.get(..1).and_then(|c| digit(c, 4)).filter(|c| *c > 0);
            let drop = af.get(1..).and_then(|d| digit(d, 3)).filter(|d| *d > 0);
            class.zip(drop).map(|(class, drop)| 8 * class + 2 * drop)
        } else {
            match lower.as_str() {
                "ef" => Some(46),
                "va" | "voice-admit" => Some(44),
                "le" => Some(1),
                "be" | "df" | "default" => Some(0),
                _ => digit(&lower, 63),
            }
        };
        value.map(Self).ok_or("is no code point")
    }
}

from_text!(
    Dscp,
    "`ef`, `le`, `cs0` to `cs7`, `af11` to `af43`, or a number from 0 to 63"
);

/// A range of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    pub first: u16,
    pub last: u16,
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

from_text!(
    Ports,
    "a port from 1 to 65535, or a range, for example \"5000-5010\""
);
