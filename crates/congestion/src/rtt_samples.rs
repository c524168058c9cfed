//! The mean round-trip time of a round trip.

use anabranch_core::units::Duration;

/// The samples of the round-trip time that a round trip has brought so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RttSamples {
    sum: Duration,
    count: u32,
}

impl RttSamples {
    pub(super) fn add(&mut self, rtt: Duration) {
        self.sum += rtt;
        self.count += 1;
    }

    /// Their mean; none without a sample.
    pub(super) fn mean(self) -> Option<Duration> {
        (self.count > 0).then(|| self.sum / u64::from(self.count))
    }
}
