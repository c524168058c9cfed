//! Values that consist of one text.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use anabranch_document::from_text;

/// A host and a UDP port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// An address.
    Address(SocketAddr),
    /// A host name, which is resolved when the tunnel starts.
    Name(String, u16),
}

/// Whether a text is a host's name.
pub fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && !label.starts_with('-')
    };
    let named = text.trim_end_matches('.');
    // A name that ends in a number is a mistyped address (RFC 1123 §2.1).
    let is_number = |label: &str| label.bytes().all(|b| b.is_ascii_digit());
    let last_is_name = named
        .rsplit('.')
        .next()
        .is_some_and(|label| !is_number(label));
    named.len() <= 253 && named.split('.').all(is_label) && last_is_name
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
        if !is_host(host) {
            return Err("has neither an address nor a host's name");
        }
        Ok(Self::Name(host.to_owned(), port))
    }
}

impl Endpoint {
    /// The UDP port.
    pub fn port(&self) -> u16 {
        match self {
            Self::Address(address) => address.port(),
            Self::Name(_, port) => *port,
        }
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
