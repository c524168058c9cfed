//! The rate of a busy server: octets and time in batches, for a mean with an interval and for a
//! trace.

use super::estimate::{Estimate, square, student};
use crate::time::{MILLISECOND, Nanos, SECOND};

/// Maximum number of batches. Beyond it, neighbours are merged and batches last twice as long.
const MOST: usize = 128;
/// The shortest batch.
const SHORTEST: Nanos = 5 * MILLISECOND;
/// Minimum number of batches for an interval.
const FEWEST: usize = 4;

/// Octets served in a period.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Batch {
    /// Start by the capture's clock.
    start: Nanos,
    octets: i64,
    busy: Nanos,
}

impl Batch {
    fn rate(self) -> f64 {
        self.octets as f64 / self.busy.max(1) as f64
    }
}

/// Busy time in batches.
#[derive(Debug, Default)]
pub(super) struct Batches {
    parts: Vec<Batch>,
    /// How often the length of batches was doubled.
    doubled: u32,
    pub(super) pairs: u64,
    /// Octets and busy time of all batches.
    sum: (i64, Nanos),
    /// Sums over pairs of acknowledgments of time², time × octets and octets², in nanoseconds and
    /// octets, for the variation within a batch.
    squares: [f64; 3],
}

impl Batches {
    const fn length(&self) -> Nanos {
        SHORTEST << self.doubled
    }

    /// Records that the server was busy from `start` for `time` and served `octets`.
    pub(super) fn add(&mut self, start: Nanos, time: Nanos, octets: i64) {
        self.pairs += 1;
        self.sum = (self.sum.0 + octets, self.sum.1 + time);
        let (t, b) = (time as f64, octets as f64);
        for (sum, product) in self.squares.iter_mut().zip([t * t, t * b, b * b]) {
            *sum += product;
        }
        let length = self.length();
        if let Some(last) = self.parts.last_mut()
            && last.busy < length
        {
            last.octets += octets;
            last.busy += time;
            return;
        }
        if self.parts.len() >= MOST {
            self.merge();
        }
        self.parts.push(Batch {
            start,
            octets,
            busy: time,
        });
    }

    #[cold]
    fn merge(&mut self) {
        let merged = self.parts.chunks(2).map(|pair| Batch {
            start: pair.first().map_or(0, |batch| batch.start),
            octets: pair.iter().map(|batch| batch.octets).sum(),
            busy: pair.iter().map(|batch| batch.busy).sum(),
        });
        self.parts = merged.collect();
        self.doubled += 1;
    }

    pub(super) fn busy(&self) -> Nanos {
        self.sum.1
    }

    /// Octets per nanosecond.
    pub(super) fn rate(&self) -> Option<f64> {
        let (octets, busy) = self.sum;
        (busy > 0).then(|| octets as f64 / busy as f64)
    }

    /// The batches of full length: the last one may be shorter.
    fn complete(&self) -> &[Batch] {
        match self.parts.split_last() {
            Some((last, rest)) if last.busy < self.length() => rest,
            _ => &self.parts,
        }
    }

    /// The rate in octets per nanosecond. Both ends of the busy time are uncertain by `resolution`.
    pub(super) fn estimate(&self, resolution: f64) -> Estimate {
        let Some(rate) = self.rate() else {
            return Estimate::NOT_SEEN;
        };
        let busy = self.busy() as f64;
        let clock = 2.0 * resolution / busy;
        let batches = self.complete();
        let spread = if batches.len() >= FEWEST {
            let count = batches.len() as f64;
            let squares = batches
                .iter()
                .map(|one| square(one.octets as f64 - rate * one.busy as f64));
            let time: i64 = batches.iter().map(|batch| batch.busy).sum();
            let error = (squares.sum::<f64>() * count / (count - 1.0)).sqrt() / time as f64;
            student(count - 1.0) * error / rate
        } else {
            // Based on the pairs, whose neighbours may depend on each other.
            let pairs = self.pairs.max(1) as f64;
            2.0 * self.noise().unwrap_or(0.0) * pairs.sqrt() / busy + 1.0 / pairs
        };
        let half = rate * (clock + spread);
        Estimate::measured(rate, (rate - half).max(0.0), rate + half)
    }

    /// The standard deviation, in nanoseconds, of a pair's time from the time of its octets at the
    /// mean rate.
    pub(super) fn noise(&self) -> Option<f64> {
        let rate = self.rate().filter(|rate| *rate > 0.0)?;
        let [times, products, octets] = self.squares;
        let sum = times - 2.0 * products / rate + octets / (rate * rate);
        (self.pairs > 1).then(|| (sum.max(0.0) / self.pairs as f64).sqrt())
    }

    /// The standard deviation of the rates of batches of at least `length`, as a share of the mean.
    pub(super) fn deviation(&self, length: Nanos) -> Option<f64> {
        let rate = self.rate().filter(|rate| *rate > 0.0)?;
        let long = self.long(length);
        if long.len() < FEWEST {
            return None;
        }
        let squares = long.iter().map(|batch| square(batch.rate() / rate - 1.0));
        Some((squares.sum::<f64>() / long.len() as f64).sqrt())
    }

    /// The batches merged to at least this length.
    fn long(&self, length: Nanos) -> Vec<Batch> {
        let mut merged: Vec<Batch> = Vec::new();
        for batch in self.complete() {
            match merged.last_mut() {
                Some(last) if last.busy < length => {
                    last.octets += batch.octets;
                    last.busy += batch.busy;
                }
                _ => merged.push(*batch),
            }
        }
        if merged.last().is_some_and(|last| last.busy < length) {
            merged.pop();
        }
        merged
    }

    /// Times in seconds from `origin`, and rates in Mbit/s.
    pub(super) fn trace(&self, origin: Nanos, length: Nanos) -> Vec<[f64; 2]> {
        let batches = self.long(length).into_iter();
        let points = batches.map(|batch| {
            let seconds = (batch.start - origin).max(0) as f64 / SECOND as f64;
            [seconds, batch.rate() * 8e3]
        });
        points.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_bounded_and_lose_no_octets() {
        let mut batches = Batches::default();
        for k in 0..100_000 {
            batches.add(k * MILLISECOND, MILLISECOND, 1500);
        }
        assert!(batches.parts.len() <= MOST);
        assert_eq!(
            batches.parts.iter().map(|one| one.octets).sum::<i64>(),
            150_000_000
        );
        assert_eq!(batches.busy(), 100 * SECOND);
        let rate = batches.estimate(1.0).value;
        assert!(rate.is_some_and(|rate| (rate - 0.0015).abs() < 1e-9));
        assert_eq!(batches.deviation(SECOND), Some(0.0));
    }

    #[test]
    fn a_rate_that_changes_deviates_and_has_a_trace() {
        let mut batches = Batches::default();
        for k in 0..10_000 {
            let octets = if k < 5000 { 1000 } else { 3000 };
            batches.add(k * MILLISECOND, MILLISECOND, octets);
        }
        let deviation = batches.deviation(SECOND / 2);
        assert!(deviation.is_some_and(|share| share > 0.3));
        let trace = batches.trace(0, SECOND / 2);
        assert!((trace[0][1] - 8.0).abs() < 0.01);
        assert!((trace[trace.len() - 1][1] - 24.0).abs() < 0.01);
    }
}
