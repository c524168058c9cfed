//! How a sender finds the path MTU.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What lowers and raises the size of segments on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MtuDiscovery {
    /// Nothing. A path that does not carry full segments carries none.
    Off,
    /// ICMP: a router says that a packet was too big, and the next-hop MTU (RFC 1191, RFC 8201).
    Icmp,
    /// ICMP, and where nobody says so, timeouts: the third in a row takes the MSS to 1024 octets (Linux: `tcp_mtu_probing` = 1,
    /// `tcp_base_mss`), and probes search upward (RFC 4821).
    BlackHole,
    /// ICMP, and probes from the start, where the MSS is 1024 octets (Linux: `tcp_mtu_probing` = 2).
    Probing,
}

impl MtuDiscovery {
    /// Whether reports of routers count.
    #[must_use]
    pub const fn hears(self) -> bool {
        !matches!(self, Self::Off)
    }
    /// Whether timeouts are taken for a black hole.
    #[must_use]
    pub const fn suspects(self) -> bool {
        matches!(self, Self::BlackHole | Self::Probing)
    }
}
