//! Single segments, or bursts that the host segments (TSO).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Unit that a sender hands to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Segmentation {
    /// Single segments. The last segment of the data written has PSH.
    None,
    /// TSO bursts from a send queue of chunks, as measured of Linux 6.18.
    ///
    /// - A burst is the data of 1/1024 s at the pacing rate: at least two segments
    ///   (`tcp_min_tso_segs`), more if the round-trip time is short (`tcp_tso_rtt_log`), at most 64
    ///   KiB. Its last segment has PSH.
    /// - Written data is queued in chunks of 64 KiB, the first of 83,200 octets, and no burst spans
    ///   two chunks. If the initial buffer (`send_autotuning_start`) exceeds half of the largest
    ///   window of a SYN, chunks have that half, and the application fills the buffer at once.
    /// - A burst is deferred if it is shorter than the maximum and than a third of the window, and
    ///   an acknowledgment is expected within a millisecond and half a round trip
    ///   (`tcp_tso_win_divisor`); not in a recovery.
    /// - An application that finds the buffer full waits until a third of it is free.
    /// - The acknowledgment that ends the handshake is sent separately.
    /// - If a paced burst is late, its time at the rate is shortened by the lateness, to at least
    ///   half.
    Tso,
}

impl Segmentation {
    /// Whether bursts are sent from a queue of chunks.
    #[must_use]
    #[inline]
    pub const fn is_tso(self) -> bool {
        matches!(self, Self::Tso)
    }
}
