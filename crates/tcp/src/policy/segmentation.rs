//! Whether segments leave one by one or as bursts that the host hands over for segmentation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a sender hands to the host below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Segmentation {
    /// Segments one by one. The last of what the application has written has PSH.
    None,
    /// TSO bursts from a send queue of chunks, as measured of Linux 6.18.
    ///
    /// - A burst is what leaves in a 1,024th of a second at the pacing rate: two segments at least (`tcp_min_tso_segs`), more if
    ///   the round-trip time is short (`tcp_tso_rtt_log`), 64 KiB at most. Its last segment has PSH.
    /// - The queue keeps what the application writes in chunks of 64 KiB, the first of 83,200 octets; no burst reaches from one
    ///   into the next. Where the buffer holds more at first (`send_autotuning_start`) than half of the window that a SYN can
    ///   offer, as much is written at once, in chunks of that half.
    /// - A burst is deferred that is shorter than it could be and less than a third of the window, if an acknowledgment is expected
    ///   within a millisecond and half a round trip (`tcp_tso_win_divisor`); not in a recovery.
    /// - An application that finds the buffer full waits until a third of it is free.
    /// - The acknowledgment that ends the handshake leaves alone.
    /// - A paced burst that leaves late takes as much less time at the rate, half of it at least.
    Tso,
}

impl Segmentation {
    /// Whether bursts leave from a queue of chunks.
    #[must_use]
    #[inline]
    pub const fn is_tso(self) -> bool {
        matches!(self, Self::Tso)
    }
}
