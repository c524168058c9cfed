//! Recent round-trip times, by the time at which their segment passed, and their distribution.

use std::collections::VecDeque;

use crate::time::{MILLISECOND, Nanos};

/// Recent samples that are stored.
const KEPT: usize = 512;
/// Samples stored per round trip.
const PER_ROUND_TRIP: Nanos = 128;
/// Maximum delay of an acknowledgment of data above a hole.
pub(super) const DELAY: Nanos = 3 * MILLISECOND;
/// Bins of equal width.
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

/// Histogram of segments by round-trip time, in bins whose width doubles when a sample does not
/// fit.
#[derive(Debug, Default)]
pub(super) struct Bins {
    counts: Vec<u32>,
    /// Log₂ of the bin width in nanoseconds.
    shift: u32,
}

impl Bins {
    pub(super) fn see(&mut self, sample: Nanos, segments: u32) {
        if self.counts.is_empty() {
            self.counts = vec![0; BINS];
            self.shift = 0;
        }
        let mut bin = self.bin(sample);
        while bin >= BINS {
            for at in 0..BINS {
                let pair = self.counts.get(2 * at..2 * at + 2);
                self.counts[at] = pair.map_or(0, |pair| pair.iter().sum());
            }
            self.shift += 1;
            bin = self.bin(sample);
        }
        let count = &mut self.counts[bin];
        *count = count.saturating_add(segments);
    }

    fn bin(&self, sample: Nanos) -> usize {
        usize::try_from(sample.max(0) >> self.shift).unwrap_or(usize::MAX)
    }

    /// Segments with at least this round-trip time, to within a bin's width.
    pub(super) fn from(&self, sample: Nanos) -> u64 {
        let above = self.counts.iter().skip(self.bin(sample));
        above.map(|count| u64::from(*count)).sum()
    }

    /// The round-trip time that one segment in five hundred exceeds, to within a bin's width.
    pub(super) fn high(&self) -> Nanos {
        let most = self.all() / 500;
        let mut above = 0;
        let bins = self.counts.iter().enumerate().rev();
        let found = bins
            .map(|(bin, count)| (bin, u64::from(*count)))
            .find(|(_, count)| {
                above += count;
                above > most
            });
        found.map_or(0, |(bin, _)| {
            Nanos::try_from(bin).unwrap_or_default() << self.shift
        })
    }

    pub(super) fn all(&self) -> u64 {
        self.from(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
