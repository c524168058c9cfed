//! Round trips as the sender measures them, and their distribution.

use anabranch_core::histogram::Histogram;

use crate::time::{MICROSECOND, Nanos, millis};

/// RFC 6298's estimator over samples of Karn's rule, and a histogram in microseconds.
#[derive(Debug, Default)]
pub(crate) struct Rtt {
    smoothed: Option<(Nanos, Nanos)>,
    latest: Nanos,
    /// How much neighbours differ: a queue changes more slowly.
    step: Nanos,
    min: Option<Nanos>,
    all: Histogram,
}

impl Rtt {
    pub(crate) fn sample(&mut self, rtt: Nanos) {
        let rtt = rtt.max(0);
        if self.smoothed.is_some() {
            self.step += ((rtt - self.latest).abs() - self.step) / 16;
        }
        self.latest = rtt;
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        self.smoothed = Some(match self.smoothed {
            None => (rtt, rtt / 2),
            // RFC 6298 §2.3.
            Some((srtt, var)) => (
                srtt + (rtt - srtt) / 8,
                var + ((rtt - srtt).abs() - var) / 4,
            ),
        });
        self.all
            .record(u64::try_from(rtt / MICROSECOND).unwrap_or_default());
    }

    /// The smoothed round trip and its variation.
    pub(crate) fn smoothed(&self) -> Option<(Nanos, Nanos)> {
        self.smoothed
    }

    pub(crate) fn step(&self) -> Nanos {
        self.step
    }

    pub(crate) fn min(&self) -> Option<Nanos> {
        self.min
    }

    /// The latest sample is longer than the least one by a quarter.
    pub(crate) fn is_queued(&self) -> bool {
        self.min.is_some_and(|min| self.latest > min + min / 4)
    }

    /// A percentile, in milliseconds.
    pub(crate) fn percentile_ms(&self, p: f64) -> Option<f64> {
        let micros = self.all.percentile(p)?;
        let nanos = i64::try_from(micros).unwrap_or_default() * MICROSECOND;
        Some(millis(nanos))
    }
}
