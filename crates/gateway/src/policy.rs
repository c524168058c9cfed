//! Policies of an operator: classes of packets, and roles of paths.

use core::{net::IpAddr, ops::RangeInclusive};

pub use crate::wire::Role;
use crate::{
    inner::{Prefix, Summary},
    wire::PathId,
};

/// The treatment of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Class {
    /// For throughput, over all paths.
    #[default]
    Bulk,
    /// For low delay: on the path with the lowest delay, before bulk, and in duplicate while a
    /// second path is cheap.
    Interactive,
    /// On this path while it delivers, otherwise as bulk.
    Pinned(PathId),
}

/// A selection of packets. A packet matches if it matches each list that is not empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Match {
    /// Code points (RFC 2474).
    pub dscp: Vec<u8>,
    /// Ports of either end. A fragment has no ports.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Addresses of either end.
    pub prefixes: Vec<Prefix>,
}

impl Match {
    /// Creates a selection from lists, any of which may be empty. A network must have no bits
    /// beyond its prefix length.
    #[must_use]
    pub fn of(
        dscp: impl IntoIterator<Item = u8>,
        ports: impl IntoIterator<Item = RangeInclusive<u16>>,
        networks: impl IntoIterator<Item = (IpAddr, u8)>,
    ) -> Self {
        let prefix = |(address, length)| Prefix::new(address, length);
        Self {
            dscp: dscp.into_iter().collect(),
            ports: ports.into_iter().collect(),
            prefixes: networks.into_iter().filter_map(prefix).collect(),
        }
    }
    /// Whether a packet matches.
    #[must_use]
    pub fn fits(&self, packet: &Summary) -> bool {
        let is_port = |port: u16| -> bool { self.ports.iter().any(|ports| ports.contains(&port)) };
        let is_address =
            |address: IpAddr| self.prefixes.iter().any(|prefix| prefix.contains(address));
        (self.dscp.is_empty() || self.dscp.contains(&packet.dscp))
            && (self.ports.is_empty()
                || packet
                    .ports
                    .is_some_and(|ports| ports.into_iter().any(is_port)))
            && (self.prefixes.is_empty()
                || is_address(packet.source)
                || is_address(packet.destination))
    }
}

/// A rule of the policy. The first rule that matches a packet applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The selection of packets.
    pub matches: Match,
    /// The treatment of the packets.
    pub class: Class,
}
