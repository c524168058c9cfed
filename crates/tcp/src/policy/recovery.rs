//! Loss recovery and its pacing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Loss recovery before the retransmission timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// Fast recovery ends at the first acknowledgment of new data (RFC 5681 §3.2).
    Reno,
    /// Partial acknowledgments repair one loss each (RFC 6582).
    NewReno,
    /// SACK guides the repair (RFC 6675). With a peer that does not permit SACK the endpoint falls
    /// back to `new-reno`.
    Rfc6675,
    /// As `rfc6675`, but segments are marked lost by their transmission times (RFC 8985). The same
    /// fallback.
    Rack,
}

impl Recovery {
    /// Whether it needs SACK.
    #[must_use]
    #[inline]
    pub const fn needs_sack(self) -> bool {
        matches!(self, Self::Rfc6675 | Self::Rack)
    }

    /// Whether it can use `pace`.
    #[must_use]
    pub const fn permits(self, pace: RecoveryPace) -> bool {
        match pace {
            RecoveryPace::Pipe => true,
            RecoveryPace::CountedPipe => matches!(self, Self::Rfc6675),
            RecoveryPace::RateHalving => self.needs_sack(),
            RecoveryPace::Prr => !matches!(self, Self::Reno),
        }
    }
}

/// Data that a recovery may send with each acknowledgment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryPace {
    /// The difference between cwnd and the pipe (RFC 6675 §5 (C)).
    Pipe,
    /// The pipe is counted by acknowledgments, and holes are repaired before new data is sent (Fall
    /// and Floyd 1996). Needs `recovery = "rfc6675"`.
    CountedPipe,
    /// One segment for every second acknowledgment; cwnd is at most one segment above the data in
    /// flight (RFC 6937 §1): Linux before 3.2.
    RateHalving,
    /// Proportional rate reduction (RFC 9937). Without SACK each duplicate acknowledgment counts as
    /// one delivered segment (RFC 6937 §3). Needs a recovery other than `reno`.
    Prr,
}
