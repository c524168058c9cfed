//! Path MTU discovery.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Mechanisms that lower and raise the size of segments on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MtuDiscovery {
    /// No discovery. A path that does not carry full segments carries none.
    Off,
    /// ICMP: a router reports that a packet was too big, and the next-hop MTU (RFC 1191, RFC 8201).
    Icmp,
    /// ICMP, and timeouts on a path without ICMP: the third in a row lowers the MSS to 1024 octets
    /// (Linux: `tcp_mtu_probing` = 1, `tcp_base_mss`), and probes search upward (RFC 4821).
    BlackHole,
    /// ICMP, and probes from the start, at an MSS of 1024 octets (Linux: `tcp_mtu_probing` = 2).
    Probing,
}

impl MtuDiscovery {
    /// Whether reports of routers are used.
    #[must_use]
    pub const fn hears(self) -> bool {
        !matches!(self, Self::Off)
    }
    /// Whether repeated timeouts indicate a black hole.
    #[must_use]
    pub const fn suspects(self) -> bool {
        matches!(self, Self::BlackHole | Self::Probing)
    }
}
