//! When the congestion window grows, and which events reduce it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When the congestion window grows, and which events reduce it. The amounts are the congestion control's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WindowRules {
    /// The window grows by what is acknowledged (RFC 5681 §3.1). The acknowledgment that ends a recovery grows nothing. The
    /// next recovery begins with the next loss. A timeout during a recovery reduces once more (RFC 5681 §4.3).
    #[serde(rename = "rfc5681")]
    Rfc5681,
    /// The window grows by what is delivered: segments that SACK or duplicates have reported before count no more, unless the
    /// path is known to reorder.
    #[serde(rename = "linux-2.6")]
    Linux26,
    /// As `linux-2.6`; besides, as measured of Linux 6.18:
    ///
    /// - In slow start cwnd grows up to twice of what has been outstanding at once in this round trip.
    /// - The acknowledgment that ends a recovery grows the window by what it delivers, from ssthresh on.
    /// - A recovery that ends while retransmissions of it are in flight begins anew with another reduction.
    /// - A timeout during a recovery leaves ssthresh.
    /// - With `recovery_pace = "prr"` a reduction at a mark is paced as a recovery is (RFC 3168 §6.1.2 leaves it open).
    #[serde(rename = "linux")]
    Linux,
}

impl WindowRules {
    const fn is_linux(self) -> bool {
        matches!(self, Self::Linux)
    }

    /// Growth counts what is delivered, not what is acknowledged.
    #[must_use]
    #[inline]
    pub const fn grow_by_delivered(self) -> bool {
        matches!(self, Self::Linux26 | Self::Linux)
    }

    /// In slow start a window that is more than half full grows.
    #[must_use]
    #[inline]
    pub const fn grow_half_full(self) -> bool {
        self.is_linux()
    }

    /// The acknowledgment that ends a recovery grows the window.
    #[must_use]
    #[inline]
    pub const fn grow_at_recovery_end(self) -> bool {
        self.is_linux()
    }

    /// A recovery that ends while retransmissions of it are in flight begins anew.
    #[must_use]
    #[inline]
    pub const fn recover_again(self) -> bool {
        self.is_linux()
    }

    /// A timeout during a recovery reduces once more.
    #[must_use]
    #[inline]
    pub const fn timeout_reduces_again(self) -> bool {
        !self.is_linux()
    }

    /// A reduction at a mark is paced as a recovery is.
    #[must_use]
    #[inline]
    pub const fn pace_at_marks(self) -> bool {
        self.is_linux()
    }
}
