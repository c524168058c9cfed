//! What both hosts' answers tell about the path, for one direction.

use super::rtt::Rtt;
use crate::time::{MICROSECOND, Nanos};

/// Least times, as the capture point sees them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Delays {
    /// From data to its acknowledgment, at least.
    pub(crate) to_receiver: Option<Nanos>,
    /// From an acknowledgment to the data that it releases, at least.
    pub(crate) to_sender: Option<Nanos>,
    /// By how much that varies.
    pub(crate) jitter: Nanos,
}

impl Delays {
    pub(crate) fn round_trip(self) -> Option<Nanos> {
        Some(self.to_receiver? + self.to_sender.unwrap_or(0))
    }

    pub(crate) fn back(self) -> Nanos {
        self.to_sender.unwrap_or(0)
    }

    /// The capture point is near the sender, as a part of the smoothed round trip.
    pub(crate) fn is_near(self, round_trip: Option<Nanos>) -> bool {
        round_trip.is_some_and(|round_trip| 10 * self.back() < round_trip)
    }

    /// How precisely an acknowledgment and what it releases are timed together.
    pub(crate) fn tolerance(self) -> Nanos {
        let back = self.back();
        200 * MICROSECOND + (2 * self.jitter).clamp(back / 50, back / 2)
    }
}

/// The other end's share in a wait for its message.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Peer {
    /// Time that it has held its messages back so far.
    pub(crate) held: Nanos,
    /// The time of its last data.
    pub(crate) last_data: Option<Nanos>,
    /// Delay of its last data in a queue.
    pub(crate) queue: Nanos,
}

/// The path when a segment leaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conditions {
    pub(crate) delays: Delays,
    /// The sender's smoothed round trip and its variation.
    pub(crate) rtt: Option<(Nanos, Nanos)>,
    /// The round trip is longer than the least one.
    pub(crate) is_queued: bool,
    /// Delay of the peer's last data in a queue before it reached the sender.
    pub(crate) queue: Nanos,
    /// The same of the sender's last data on its way to the peer.
    pub(crate) drain: Nanos,
}

impl Conditions {
    pub(crate) fn of(rtt: &Rtt, delays: Delays, queue: Nanos) -> Self {
        let back = delays.back();
        Self {
            delays,
            rtt: rtt.smoothed().map(|(srtt, var)| (srtt + back, var)),
            is_queued: rtt.is_queued(back),
            queue,
            drain: 0,
        }
    }

    pub(crate) fn round_trip(&self) -> Option<Nanos> {
        self.rtt.map(|(srtt, _)| srtt)
    }
}
