//! Selects packets of a capture by sender, receiver and protocol.

use std::{fmt, net::IpAddr, str::FromStr};

use crate::Ip;

/// An address, a network or any address, with or without a port: `10.0.0.1`, `10.0.0.1:443`,
/// `10.0.0.0/8`, `*:443`, `2001:db8::1`, `[2001:db8::1]:443`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// The network and the bits of its prefix; `None` for any address.
    network: Option<(IpAddr, u8)>,
    port: Option<u16>,
}

/// The text is no endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an address, with or without a port, for example \"10.0.0.1\", \"10.0.0.1:443\", \"[2001:db8::1]:443\", \"10.0.0.0/8\" or \"*:443\""
)]
pub struct NotAnEndpoint;

impl FromStr for Endpoint {
    type Err = NotAnEndpoint;

    fn from_str(text: &str) -> Result<Self, NotAnEndpoint> {
        let (host, port) = split_port(text)?;
        let port = match port {
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits.parse().map_err(|_| NotAnEndpoint)?)
            }
            Some(_) => return Err(NotAnEndpoint),
            None => None,
        };
        let network = match host {
            "*" if port.is_some() => None,
            host => Some(network(host)?),
        };
        Ok(Self { network, port })
    }
}

/// The part before the port, without brackets, and the port.
fn split_port(text: &str) -> Result<(&str, Option<&str>), NotAnEndpoint> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, behind) = rest.split_once(']').ok_or(NotAnEndpoint)?;
        return match behind.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if behind.is_empty() => Ok((host, None)),
            None => Err(NotAnEndpoint),
        };
    }
    // Two colons indicate an IPv6 address without a port.
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => Ok((host, Some(port))),
        _ => Ok((text, None)),
    }
}

fn network(text: &str) -> Result<(IpAddr, u8), NotAnEndpoint> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| NotAnEndpoint)?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        Some(digits) => digits.parse().ok().filter(|prefix| *prefix <= bits),
        None => Some(bits),
    };
    Ok((address, prefix.ok_or(NotAnEndpoint)?))
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = match self.network {
            None => "*".to_owned(),
            Some((address, prefix)) => {
                let whole = if address.is_ipv4() { 32 } else { 128 };
                if prefix == whole {
                    address.to_string()
                } else {
                    format!("{address}/{prefix}")
                }
            }
        };
        match (self.network, self.port) {
            (Some((IpAddr::V6(_), _)), Some(port)) => write!(f, "[{host}]:{port}"),
            (_, Some(port)) => write!(f, "{host}:{port}"),
            (_, None) => f.write_str(&host),
        }
    }
}

impl Endpoint {
    /// Exactly this address and port.
    #[must_use]
    pub fn exactly(address: IpAddr, port: Option<u16>) -> Self {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        Self {
            network: Some((address, bits)),
            port,
        }
    }

    fn has(&self, address: IpAddr, port: Option<u16>) -> bool {
        let in_network = match self.network {
            None => true,
            Some((network, prefix)) => same_prefix(network, address, prefix),
        };
        in_network && (self.port.is_none() || self.port == port)
    }
}

fn same_prefix(network: IpAddr, address: IpAddr, prefix: u8) -> bool {
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let differ = network.to_bits() ^ address.to_bits();
            differ.checked_shr(32 - u32::from(prefix)).unwrap_or(0) == 0
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let differ = network.to_bits() ^ address.to_bits();
            differ.checked_shr(128 - u32::from(prefix)).unwrap_or(0) == 0
        }
        _ => false,
    }
}

/// A protocol above IP, by its name or its number in IP headers (IANA, Protocol Numbers).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
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
    /// Any, by its number.
    Number(u8),
}

impl Protocol {
    /// All protocols with a name.
    pub const NAMED: [Self; 5] = [Self::Tcp, Self::Udp, Self::Icmp, Self::Sctp, Self::Esp];

    /// The protocol of this number, by name if it has one.
    #[must_use]
    pub fn of(number: u8) -> Self {
        let mut named = Self::NAMED.into_iter();
        named
            .find(|protocol| protocol.has(number))
            .unwrap_or(Self::Number(number))
    }

    /// Its name in scenarios.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Tcp => Some("tcp"),
            Self::Udp => Some("udp"),
            Self::Icmp => Some("icmp"),
            Self::Sctp => Some("sctp"),
            Self::Esp => Some("esp"),
            Self::Number(_) => None,
        }
    }

    /// Whether packets with this number belong to it.
    #[must_use]
    pub const fn has(self, number: u8) -> bool {
        match self {
            Self::Tcp => number == 6,
            Self::Udp => number == 17,
            Self::Icmp => matches!(number, 1 | 58),
            Self::Sctp => number == 132,
            Self::Esp => number == 50,
            Self::Number(own) => number == own,
        }
    }
}

/// The value of a scenario key: a name in quotation marks, or a number.
impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            named => write!(f, "\"{}\"", named.name().unwrap_or_default()),
        }
    }
}

/// A selection of packets; all by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Selection {
    /// Their sender.
    pub from: Option<Endpoint>,
    /// Their receiver.
    pub to: Option<Endpoint>,
    /// Their protocol.
    pub protocol: Option<Protocol>,
}

impl Selection {
    /// Whether a packet is selected. `ports` are the ports of its first fragment.
    #[must_use]
    pub fn has(&self, ip: &Ip, ports: Option<(u16, u16)>) -> bool {
        let (source, target) = (ports.map(|ports| ports.0), ports.map(|ports| ports.1));
        self.protocol
            .is_none_or(|protocol| protocol.has(ip.protocol))
            && self.from.is_none_or(|from| from.has(ip.source, source))
            && self.to.is_none_or(|to| to.has(ip.target, target))
    }
}

/// The keys of a scenario.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = self.from.map(|from| format!("from = \"{from}\""));
        let to = self.to.map(|to| format!("to = \"{to}\""));
        let protocol = self
            .protocol
            .map(|protocol| format!("protocol = {protocol}"));
        let keys: Vec<_> = [from, to, protocol].into_iter().flatten().collect();
        f.write_str(&keys.join(", "))
    }
}
