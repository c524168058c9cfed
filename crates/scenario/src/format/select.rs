//! The packets of programs that a flow carries.

use core::net::{IpAddr, Ipv4Addr};
use std::{fmt, str::FromStr};

use anabranch_document::{
    as_text,
    select::{Many, Ports, Prefix},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The packets of programs that a flow carries. A packet must fit every key that is given.
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
    /// Whether a packet between these addresses fits, regardless of its ports.
    #[must_use]
    pub fn fits_addresses(&self, addresses: [IpAddr; 2]) -> bool {
        let is_one = |address: IpAddr| self.prefix.0.iter().any(|net| net.0.contains(&address));
        self.prefix.is_empty() || addresses.into_iter().any(is_one)
    }
}

/// An additional address of a host, next to the addresses of its devices.
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
    fn an_address_is_a_unicast_address_of_one_host() {
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
