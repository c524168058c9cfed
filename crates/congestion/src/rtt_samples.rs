//! The round-trip times of a round trip: their mean and their least.

use anabranch_core::units::Duration;

/// The samples of the round-trip time that a round trip has brought so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RttSamples {
    sum: Duration,
    least: Duration,
    count: u32,
}

impl RttSamples {
    pub(super) fn add(&mut self, rtt: Duration) {
        self.sum += rtt;
        self.least = if self.count == 0 {
            rtt
        } else {
            self.least.min(rtt)
        };
        self.count += 1;
    }

    /// Their mean; none without a sample.
    pub(super) fn mean(self) -> Option<Duration> {
        (self.count > 0).then(|| self.sum / u64::from(self.count))
    }

    /// The smallest; none without a sample.
    pub(super) fn least(self) -> Option<Duration> {
        (self.count > 0).then_some(self.least)
    }

    /// Number of samples.
    pub(super) const fn count(self) -> u32 {
        self.count
    }
}
