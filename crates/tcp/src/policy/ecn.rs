//! Explicit congestion notification.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Explicit congestion notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EcnMode {
    /// Not used.
    Off,
    /// One bit each way, one reaction per round trip (RFC 3168).
    Rfc3168,
    /// A counter of marks in every acknowledgment, and the AccECN option with counts of octets (RFC 9768; Linux:
    /// `tcp_ecn_option = 2`). Falls back to RFC 3168 with a peer that knows only that.
    Accecn,
    /// As `accecn`, without the option.
    #[serde(rename = "accecn-without-option")]
    AccecnWithoutOption,
    /// As `accecn`, and every packet of an established connection has ECT(1): for queues that tell L4S traffic by it
    /// (RFC 9331 §4.1). For scalable controls, as `prague`. With a peer that knows only RFC 3168, new data has ECT(0).
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

    /// Whether octets are counted beside packets, by the AccECN option (RFC 9768 §3.2.3).
    #[must_use]
    pub const fn counts_octets(self) -> bool {
        matches!(self, Self::Accecn | Self::L4s)
    }
}
