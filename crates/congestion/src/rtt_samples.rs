//! Round-trip time samples of one round trip: mean and minimum.

use anabranch_core::units::Duration;

/// The round-trip time samples of the current round trip.
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

    /// Mean of the samples; `None` without a sample.
    pub(super) fn mean(self) -> Option<Duration> {
        (self.count > 0).then(|| self.sum / u64::from(self.count))
    }

    /// Smallest sample; `None` without a sample.
    pub(super) fn least(self) -> Option<Duration> {
        (self.count > 0).then_some(self.least)
    }

    /// Number of samples.
    pub(super) const fn count(self) -> u32 {
        self.count
    }
}
