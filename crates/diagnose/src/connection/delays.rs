//! What both hosts' answers tell about the path, for one direction.

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

    /// How precisely an acknowledgment and what it releases are timed together.
    pub(crate) fn tolerance(self) -> Nanos {
        let back = self.back();
        200 * MICROSECOND + (2 * self.jitter).clamp(back / 50, back / 2)
    }
}
