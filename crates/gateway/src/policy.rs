//! What an operator decides of traffic and of paths: classes of packets, and when a path is used.

use core::{net::IpAddr, ops::RangeInclusive};

pub use crate::wire::Role;
use crate::{
    inner::{Prefix, Summary},
    wire::PathId,
};

/// How packets are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Class {
    /// For throughput, over all paths.
    #[default]
    Bulk,
    /// For low delay: on the path with the lowest, before bulk, and twice while a second path is cheap.
    Interactive,
    /// On this path while it delivers, and otherwise as bulk.
    Pinned(PathId),
}

/// Which packets. A packet fits if it fits each list that is not empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Match {
    /// Code points (RFC 2474).
    pub dscp: Vec<u8>,
    /// Ports of either end. A fragment has none.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Addresses of either end.
    pub prefixes: Vec<Prefix>,
}

impl Match {
    /// Of lists, any of which may be empty. A network has no bits beyond the length of its prefix.
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
    /// Whether a packet fits.
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

/// A rule of the policy. The first that fits a packet holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Which packets.
    pub matches: Match,
    /// How they are treated.
    pub class: Class,
}
