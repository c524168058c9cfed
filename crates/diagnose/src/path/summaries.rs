//! Bounded summaries of many samples: the least ones, the recent ones, and bins over time.

use std::collections::VecDeque;

use serde::Serialize;

use crate::time::{MILLISECOND, Nanos, SECOND};

/// Halves a bounded store: the first, the third and so on remain.
pub(super) fn keep_every_second<T>(of: &mut Vec<T>) {
    let mut keep = false;
    of.retain(|_| {
        keep = !keep;
        keep
    });
}

/// Samples that are stored.
const KEPT_LEAST: usize = 8;
/// The distance of the true minimum below the smallest sample at 95 % probability, as a multiple of
/// the distance from the smallest to the largest stored sample: 0.05^(-1 / (KEPT_LEAST - 1)) - 1, if
/// samples are spread evenly near their minimum.
const BELOW: f64 = 0.534;

/// The smallest samples, in ascending order.
#[derive(Debug, Default, Clone)]
pub(crate) struct Least {
    kept: [Nanos; KEPT_LEAST],
    count: usize,
}

impl Least {
    pub(crate) fn see(&mut self, sample: Nanos) {
        if self.count == KEPT_LEAST && sample >= self.kept[KEPT_LEAST - 1] {
            return;
        }
        let end = self.count.min(KEPT_LEAST - 1);
        let mut at = end;
        while at > 0 && self.kept[at - 1] > sample {
            self.kept[at] = self.kept[at - 1];
            at -= 1;
        }
        self.kept[at] = sample;
        self.count = end + 1;
    }

    pub(super) fn min(&self) -> Option<Nanos> {
        (self.count > 0).then_some(self.kept[0])
    }

    /// The distance by which the true minimum may lie below the smallest sample; a quarter of that
    /// sample if there are few.
    pub(super) fn below(&self) -> f64 {
        let (least, most) = (self.kept[0], self.kept[KEPT_LEAST - 1]);
        if self.count < KEPT_LEAST {
            return least as f64 / 4.0;
        }
        (most - least) as f64 * BELOW
    }
}

/// Recent samples that are stored.
const KEPT: usize = 512;
/// Samples stored per round trip.
const PER_ROUND_TRIP: Nanos = 128;
/// Maximum delay of an acknowledgment of data above a hole.
pub(super) const DELAY: Nanos = 3 * MILLISECOND;
/// Maximum number of bins.
const BINS: usize = 128;

/// A stored sample.
#[derive(Debug, Clone, Copy)]
struct Kept {
    /// When the segment passed.
    sent: Nanos,
    sample: Nanos,
    /// No data was missing when it was acknowledged: receivers delay acknowledgments of data above
    /// holes.
    is_clean: bool,
}

/// The latest samples.
#[derive(Debug, Default)]
pub(super) struct Recent {
    samples: VecDeque<Kept>,
}

impl Recent {
    pub(super) fn see(&mut self, sent: Nanos, sample: Nanos, is_clean: bool) {
        let kept = Kept {
            sent,
            sample,
            is_clean,
        };
        if let Some(last) = self.samples.back_mut()
            && sent - last.sent < sample / PER_ROUND_TRIP
        {
            if sent >= last.sent && (is_clean || !last.is_clean) {
                *last = Kept {
                    sent: last.sent,
                    ..kept
                };
            }
            return;
        }
        if self.samples.len() >= KEPT {
            self.samples.pop_front();
        }
        self.samples.push_back(kept);
    }

    /// The largest time that a packet can have waited that passed at `time` and was lost after the capture
    /// point: a queue drains by the time that passes until the next packet, which waited as its sample
    /// shows. A sample includes the time without a queue.
    pub(super) fn most_after(&self, time: Nanos) -> Option<Nanos> {
        let next = self.samples.partition_point(|kept| kept.sent <= time);
        let next = self.samples.get(next)?;
        Some(next.sample + (next.sent - time))
    }

    /// The last clean sample of the round trip before this time, unless the nearest sample is much
    /// longer.
    pub(super) fn around(&self, time: Nanos) -> Option<Nanos> {
        let behind = self.samples.partition_point(|kept| kept.sent <= time);
        let near = self.samples.get(behind.saturating_sub(1))?;
        let before = self.samples.range(..behind).rev();
        let mut round = before.take_while(|kept| time - kept.sent <= kept.sample);
        let clean = round.find(|kept| kept.is_clean);
        let clean = clean.map_or(near.sample, |clean| clean.sample);
        Some(clean.max(near.sample - DELAY))
    }
}

/// Sums in bins whose width doubles when a value does not fit.
#[derive(Debug, Default)]
pub(super) struct Bins {
    sums: Vec<i64>,
    /// Log₂ of the bin width.
    shift: u32,
}

impl Bins {
    pub(super) fn see(&mut self, value: Nanos, amount: i64) {
        while self.bin(value) >= BINS {
            let merged = self.sums.chunks(2).map(|pair| pair.iter().sum());
            self.sums = merged.collect();
            self.shift += 1;
        }
        let bin = self.bin(value);
        if bin >= self.sums.len() {
            self.sums.resize(bin + 1, 0);
        }
        self.sums[bin] += amount;
    }

    fn bin(&self, value: Nanos) -> usize {
        usize::try_from(value.max(0) >> self.shift).unwrap_or(usize::MAX)
    }

    /// Segments with at least this round-trip time, to within a bin's width.
    pub(super) fn from(&self, sample: Nanos) -> u64 {
        let above: i64 = self.sums.iter().skip(self.bin(sample)).sum();
        above.unsigned_abs()
    }

    /// The round-trip time that one segment in five hundred exceeds, to within a bin's width.
    pub(super) fn high(&self) -> Nanos {
        let most = self.all() / 500;
        let count = Nanos::try_from(self.sums.len()).unwrap_or_default();
        let mut bins = (0..count).rev().map(|bin| bin << self.shift);
        bins.find(|from| self.from(*from) > most).unwrap_or(0)
    }

    pub(super) fn all(&self) -> u64 {
        self.from(0)
    }
}

/// Log₂ of the initial bin length in nanoseconds: 8 ms.
const SHORTEST: u32 = 23;

/// Octets over time.
#[derive(Debug, Default)]
pub(super) struct Octets {
    start: Option<Nanos>,
    bins: Bins,
}

/// Rates over time, in bins of equal length.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Start of the first bin, from the connection's first packet.
    pub start_s: f64,
    /// Length of a bin.
    pub interval_s: f64,
    /// The rate in each bin.
    pub mbit_s: Vec<f64>,
}

impl Octets {
    pub(super) fn see(&mut self, time: Nanos, octets: i64) {
        let since = time - *self.start.get_or_insert(time);
        self.bins.see(since >> SHORTEST, octets);
    }

    /// Rates, with times from `origin`.
    pub(super) fn series(&self, origin: Nanos) -> Series {
        let interval = (1_i64 << (SHORTEST + self.bins.shift)) as f64 / SECOND as f64;
        let rates = self.bins.sums.iter();
        let rates = rates.map(|octets| *octets as f64 * 8e-6 / interval);
        Series {
            start_s: self.start.map_or(0, |start| start - origin) as f64 / SECOND as f64,
            interval_s: interval,
            mbit_s: rates.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_least_samples_are_kept_in_order(samples in prop::collection::vec(0_i64..1000, 1..50)) {
            let mut least = Least::default();
            for sample in &samples {
                least.see(*sample);
            }
            let mut sorted = samples;
            sorted.sort_unstable();
            sorted.truncate(KEPT_LEAST);
            prop_assert_eq!(&least.kept[..least.count], &sorted[..]);
        }
    }

    #[test]
    fn widened_bins_keep_every_count() {
        let mut bins = Bins::default();
        for sample in 0..10_000 {
            bins.see(sample, 1);
        }
        assert_eq!(bins.all(), 10_000);
        assert!(bins.from(5_000).abs_diff(5_000) <= 160);
    }

    #[test]
    fn the_samples_around_a_packet_are_found() {
        let mut recent = Recent::default();
        for (sent, sample) in [(0, 1_000), (1_000, 3_000), (2_000, 2_000)] {
            recent.see(sent, sample, true);
        }
        for (time, before) in [(500, 1_000), (1_500, 3_000), (5_000, 2_000), (-1, 1_000)] {
            assert_eq!(recent.around(time), Some(before));
        }
        // The next packet passed 500 later and waited for 2,000: a queue drains by the time that passes.
        assert_eq!(recent.most_after(1_500), Some(2_500));
        assert_eq!(recent.most_after(2_000), None);
    }

    #[test]
    fn merged_bins_keep_all_octets() {
        let mut octets = Octets::default();
        for k in 0..10_000 {
            octets.see(k * MILLISECOND, 1_000);
        }
        let series = octets.series(0);
        assert!(series.mbit_s.len() <= BINS);
        let sum: f64 = series.mbit_s.iter().sum();
        assert!((sum * series.interval_s - 80.0).abs() < 1e-9, "{sum}");
        assert!((series.mbit_s[3] - 8.0).abs() < 0.1);
        // A pause of years fits.
        octets.see(i64::MAX / 2, 1);
        assert!(octets.bins.sums.len() <= BINS);
    }
}
