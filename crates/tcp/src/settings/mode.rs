//! Switches that are a choice among mechanisms.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How losses are repaired without waiting for the timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// Fast recovery ends at the first acknowledgment of new data (RFC 5681 §3.2).
    Reno,
    /// Partial acknowledgments repair one loss each (RFC 6582).
    NewReno,
    /// Selective acknowledgments tell what to repair (RFC 6675). Needs SACK; with a peer that does
    /// not permit it the endpoint falls back to NewReno.
    Rfc6675,
    /// As `rfc6675`, but losses are found by the time that segments left (RFC 8985). Needs SACK,
    /// with the same fallback.
    Rack,
}

impl Recovery {
    /// Whether selective acknowledgments guide it.
    #[must_use]
    #[inline]
    pub const fn needs_sack(self) -> bool {
        matches!(self, Self::Rfc6675 | Self::Rack)
    }
}

/// The window with which NewReno leaves fast recovery (RFC 6582 §3.2 step 3, full acknowledgments).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FullAck {
    /// ssthresh, the second option. Much may leave at once where little is in flight.
    Ssthresh,
    /// What is in flight and one segment more, ssthresh at most, the first option: no burst, and
    /// slow start back to ssthresh.
    FlightSize,
}

/// Explicit congestion notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EcnMode {
    /// Not used.
    Off,
    /// One bit each way, one reaction per round trip (RFC 3168).
    Rfc3168,
    /// A counter of marks in every acknowledgment (RFC 9768); falls back to RFC 3168 with a peer
    /// that knows only that.
    Accecn,
    /// The handshake of RFC 3168, and an echo that tells exactly which segments were marked (RFC
    /// 8257 §3.2). Both ends must have it.
    Dctcp,
}
