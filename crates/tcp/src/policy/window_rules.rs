//! Rules for growth and reduction of the congestion window.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rules for growth and reduction of the congestion window. The congestion control computes the
/// amounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WindowRules {
    /// The window grows by the data acknowledged (RFC 5681 §3.1). The acknowledgment that ends a
    /// recovery does not grow it. The next recovery begins with the next loss. A timeout during a
    /// recovery reduces once more (RFC 5681 §4.3).
    #[serde(rename = "rfc5681")]
    Rfc5681,
    /// The window grows by the data delivered: data that SACK or duplicate acknowledgments have
    /// reported before does not count again, unless the path is known to reorder.
    #[serde(rename = "linux-2.6")]
    Linux26,
    /// As `linux-2.6`, and as measured of Linux 6.18:
    ///
    /// - In slow start cwnd grows up to twice the largest flight of this round trip.
    /// - The acknowledgment that ends a recovery grows the window from ssthresh by the data it
    ///   delivers.
    /// - A recovery that ends while its retransmissions are in flight begins again with another
    ///   reduction.
    /// - A timeout during a recovery does not change ssthresh.
    /// - With SACK and F-RTO, the arrival of data that was not retransmitted proves a timeout spurious
    ///   at once. RFC 5682 §3 waits until new data was sent.
    /// - A FIN without data waits until the window has room.
    /// - With `recovery_pace = "prr"` a reduction at a mark is paced as a recovery is (RFC 3168
    ///   §6.1.2 leaves it open).
    #[serde(rename = "linux")]
    Linux,
}

impl WindowRules {
    const fn is_linux(self) -> bool {
        matches!(self, Self::Linux)
    }

    /// Whether growth counts data delivered instead of data acknowledged.
    #[must_use]
    #[inline]
    pub const fn grow_by_delivered(self) -> bool {
        matches!(self, Self::Linux26 | Self::Linux)
    }

    /// Whether a window that is more than half full grows in slow start.
    #[must_use]
    #[inline]
    pub const fn grow_half_full(self) -> bool {
        self.is_linux()
    }

    /// Whether the acknowledgment that ends a recovery grows the window.
    #[must_use]
    #[inline]
    pub const fn grow_at_recovery_end(self) -> bool {
        self.is_linux()
    }

    /// Whether a recovery that ends while its retransmissions are in flight begins again.
    #[must_use]
    #[inline]
    pub const fn recover_again(self) -> bool {
        self.is_linux()
    }

    /// Whether a timeout during a recovery reduces once more.
    #[must_use]
    #[inline]
    pub const fn timeout_reduces_again(self) -> bool {
        !self.is_linux()
    }

    /// Whether data that was not retransmitted proves a timeout spurious before new data was sent.
    #[must_use]
    #[inline]
    pub const fn undo_at_once(self) -> bool {
        self.is_linux()
    }

    /// Whether a FIN without data waits until the window has room, as data does.
    #[must_use]
    #[inline]
    pub const fn fin_waits(self) -> bool {
        self.is_linux()
    }

    /// Whether a reduction at a mark is paced as a recovery is.
    #[must_use]
    #[inline]
    pub const fn pace_at_marks(self) -> bool {
        self.is_linux()
    }
}
