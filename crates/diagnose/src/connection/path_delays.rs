//! The delays of the path of one direction, from the responses of both hosts.

use super::rtt::Rtt;
use crate::time::{MICROSECOND, Nanos};

/// Minimum times at the capture point.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Delays {
    /// From data to its acknowledgment.
    pub(crate) to_receiver: Option<Nanos>,
    /// From an acknowledgment to the data that it releases.
    pub(crate) to_sender: Option<Nanos>,
    /// The variation of `to_sender`.
    pub(crate) jitter: Nanos,
}

impl Delays {
    pub(crate) fn round_trip(self) -> Option<Nanos> {
        Some(self.to_receiver? + self.to_sender.unwrap_or(0))
    }

    pub(crate) fn back(self) -> Nanos {
        self.to_sender.unwrap_or(0)
    }

    /// Whether the capture point is near the sender, compared with the smoothed round-trip time.
    pub(crate) fn is_near(self, round_trip: Option<Nanos>) -> bool {
        round_trip.is_some_and(|round_trip| 10 * self.back() < round_trip)
    }

    /// The precision with which an acknowledgment and the data that it releases are timed.
    pub(crate) fn tolerance(self) -> Nanos {
        let back = self.back();
        200 * MICROSECOND + (2 * self.jitter).clamp(back / 50, back / 2)
    }
}

/// The other end's part in a wait for its message.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Peer {
    /// Total time for which it has held its messages back.
    pub(crate) held: Nanos,
    /// The time of its last data.
    pub(crate) last_data: Option<Nanos>,
    /// Delay of its last data in a queue.
    pub(crate) queue: Nanos,
}

/// The state of the path when a segment is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conditions {
    pub(crate) delays: Delays,
    /// The sender's smoothed round-trip time and its variation.
    pub(crate) rtt: Option<(Nanos, Nanos)>,
    /// The round-trip time is longer than the minimum.
    pub(crate) is_queued: bool,
    /// Queueing delay of the peer's last data before it reached the sender.
    pub(crate) queue: Nanos,
    /// Queueing delay of the sender's last data on the way to the peer.
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
