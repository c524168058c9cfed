//! Explicit congestion notification.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Explicit congestion notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EcnMode {
    /// Not used.
    Off,
    /// One bit in each direction, one reaction per round trip (RFC 3168).
    Rfc3168,
    /// A counter of marks in every acknowledgment, and the AccECN option with counters of octets
    /// (RFC 9768; Linux: `tcp_ecn_option = 2`). Falls back to RFC 3168 with a peer that supports
    /// only that.
    Accecn,
    /// As `accecn`, without the option.
    #[serde(rename = "accecn-without-option")]
    AccecnWithoutOption,
    /// As `accecn`, and every packet of an established connection has ECT(1), by which queues
    /// identify L4S traffic (RFC 9331 §4.1). For scalable controls, such as `prague`. With a peer
    /// that supports only RFC 3168, new data has ECT(0).
    L4s,
    /// The handshake of RFC 3168, and an echo of exactly the marked segments (RFC
    /// 8257 §3.2). Both ends must have it.
    Dctcp,
}

impl EcnMode {
    /// Whether marks are counted in every acknowledgment (RFC 9768).
    #[must_use]
    pub const fn counts_marks(self) -> bool {
        matches!(self, Self::Accecn | Self::AccecnWithoutOption | Self::L4s)
    }

    /// Whether the AccECN option counts octets in addition to packets (RFC 9768 §3.2.3).
    #[must_use]
    pub const fn counts_octets(self) -> bool {
        matches!(self, Self::Accecn | Self::L4s)
    }
}
