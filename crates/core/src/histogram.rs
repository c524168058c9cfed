//! A compact log-linear histogram of `u64` values: delays, extents, sizes.
//!
//! Every octave `[2^k, 2^(k+1))` is divided into `2^BITS` buckets of equal width, so that the width
//! of a bucket is at most `1 / 2^BITS` of its values; values below `2^(BITS + 1)` have one bucket
//! each. A percentile is the middle of its bucket. Its error is at most `1 / 2^(BITS + 1)` of the
//! true sample: 1.6 % with the default of 5 bits, and none below 64.
//!
//! Memory: one pointer while empty, then the octaves from the smallest to the largest value
//! recorded, each of `2^BITS` bytes (32 by default), 16 bytes per bucket with more than 255 values,
//! plus a fixed part below 100 bytes.
//!
//! Source: the bucket layout of G. Tene's HdrHistogram; the nearest-rank percentile (RFC 2330
//! §11.3: the smallest value whose empirical distribution function reaches p).
//!
//! # Not implemented
//! Sums and means; store them separately, because a histogram would only approximate them.

/// Counts of values, with a relative error of at most `1 / 2^(BITS + 1)`; `BITS` is 1 to 16.
#[derive(Debug, Clone, Default)]
pub struct Histogram<const BITS: u32 = 5> {
    /// `None` before the first value.
    inner: Option<Box<Inner>>,
}

#[derive(Debug, Clone)]
struct Inner {
    count: u64,
    min: u64,
    max: u64,
    /// The number of the first bucket in `counts`; always at the start of an octave.
    offset: usize,
    counts: Vec<u8>,
    /// Counter overflows, as multiples of 2^8: (bucket, multiple), by bucket.
    carried: Vec<(usize, u64)>,
}

impl<const BITS: u32> Histogram<BITS> {
    const PER_OCTAVE: usize = {
        assert!(1 <= BITS && BITS <= 16, "BITS is 1 to 16");
        1 << BITS
    };

    /// An empty histogram; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { inner: None }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        if let Some(inner) = &mut self.inner {
            let slot = Self::bucket(value).wrapping_sub(inner.offset);
            if let Some(counter) = inner.counts.get_mut(slot)
                && *counter != u8::MAX
            {
                *counter += 1;
                inner.count += 1;
                inner.min = inner.min.min(value);
                inner.max = inner.max.max(value);
                return;
            }
        }
        self.record_many(value, 1);
    }

    /// Counts the same value `times` times.
    #[cold]
    pub fn record_many(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        let bucket = Self::bucket(value);
        let inner = self.cover(bucket, bucket);
        inner.count += times;
        inner.min = inner.min.min(value);
        inner.max = inner.max.max(value);
        inner.add(bucket, times);
    }

    /// Adds all counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        let Some(other) = &other.inner else {
            return;
        };
        let inner = self.cover(Self::bucket(other.min), Self::bucket(other.max));
        inner.count += other.count;
        inner.min = inner.min.min(other.min);
        inner.max = inner.max.max(other.max);
        for (slot, &counter) in other.counts.iter().enumerate() {
            if counter != 0 {
                inner.add(other.offset + slot, u64::from(counter));
            }
        }
        for &(bucket, multiple) in &other.carried {
            inner.add(bucket, multiple << 8);
        }
    }

    /// The number of values counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.inner.as_ref().map_or(0, |inner| inner.count)
    }

    /// Whether no value was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.is_none()
    }

    /// The smallest value, exactly.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        self.inner.as_ref().map(|inner| inner.min)
    }

    /// The largest value, exactly.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.inner.as_ref().map(|inner| inner.max)
    }

    /// The `p`-th percentile, with `p` in percent; values outside 0 to 100 are clamped. It is the
    /// smallest value that at least `p` percent of the values do not exceed, within the error of
    /// the buckets. `None` while empty.
    #[must_use]
    pub fn percentile(&self, p: f64) -> Option<u64> {
        let inner = self.inner.as_ref()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the conversion saturates, and the rank is clamped to what exists"
        )]
        let rank = ((p * inner.count as f64 / 100.0).ceil() as u64).clamp(1, inner.count);
        // The minimum and maximum are known exactly.
        if rank == inner.count {
            return Some(inner.max);
        }
        let mut seen = 0;
        for (slot, &counter) in inner.counts.iter().enumerate() {
            let bucket = inner.offset + slot;
            seen += u64::from(counter) + (inner.carried(bucket) << 8);
            if seen >= rank {
                return Some(Self::middle(bucket).clamp(inner.min, inner.max));
            }
        }
        Some(inner.max)
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.inner.as_ref().map_or(0, |inner| {
            size_of::<Inner>()
                + inner.counts.capacity()
                + inner.carried.capacity() * size_of::<(usize, u64)>()
        })
    }

    /// The bucket of a value: its octave above those with exact buckets, then its leading bits.
    #[inline]
    fn bucket(value: u64) -> usize {
        let shift = 63 - BITS - (value | 1 << BITS).leading_zeros();
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the shift leaves BITS + 1 bits of the value"
        )]
        let leading = (value >> shift) as usize;
        ((shift as usize) << BITS) + leading
    }

    /// The value in the middle of a bucket, rounded down.
    fn middle(bucket: usize) -> u64 {
        let shift = (bucket >> BITS).saturating_sub(1);
        let leading = (bucket - (shift << BITS)) as u64;
        (leading << shift) + ((1_u64 << shift) - 1) / 2
    }

    /// Extends the histogram to the octaves of these two buckets and all between them.
    fn cover(&mut self, low: usize, high: usize) -> &mut Inner {
        let start = low & !(Self::PER_OCTAVE - 1);
        let end = (high | (Self::PER_OCTAVE - 1)) + 1;
        let inner = self.inner.get_or_insert_with(|| {
            Box::new(Inner {
                count: 0,
                min: u64::MAX,
                max: 0,
                offset: start,
                counts: Vec::new(),
                carried: Vec::new(),
            })
        });
        if start < inner.offset || end > inner.offset + inner.counts.len() {
            let offset = inner.offset.min(start);
            let end = end.max(inner.offset + inner.counts.len());
            let mut counts = Vec::with_capacity(end - offset);
            counts.resize(inner.offset - offset, 0);
            counts.extend_from_slice(&inner.counts);
            counts.resize(end - offset, 0);
            inner.offset = offset;
            inner.counts = counts;
        }
        inner
    }
}

impl Inner {
    /// Adds to one bucket that is covered.
    fn add(&mut self, bucket: usize, times: u64) {
        let counter = &mut self.counts[bucket - self.offset];
        let total = u64::from(*counter) + (times & u64::from(u8::MAX));
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the lowest bits; the others are carried"
        )]
        {
            *counter = total as u8;
        }
        let multiple = (total >> 8) + (times >> 8);
        if multiple == 0 {
            return;
        }
        match self.find_carried(bucket) {
            Ok(place) => self.carried[place].1 += multiple,
            Err(place) => self.carried.insert(place, (bucket, multiple)),
        }
    }

    fn carried(&self, bucket: usize) -> u64 {
        self.find_carried(bucket)
            .map_or(0, |place| self.carried[place].1)
    }

    fn find_carried(&self, bucket: usize) -> Result<usize, usize> {
        self.carried
            .binary_search_by_key(&bucket, |&(which, _)| which)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    /// The nearest-rank percentile of a sorted sample.
    fn nearest_rank(sorted: &[u64], percent: usize) -> u64 {
        sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
    }

    /// A value of any magnitude; all magnitudes are equally likely.
    fn any_value(draw: &mut crate::rng::Draw) -> u64 {
        let wide = (u64::from(draw.bits()) << 32) | u64::from(draw.bits());
        wide >> (draw.bits() % 64)
    }

    #[test]
    fn percentiles_stay_within_the_error_of_the_sorted_sample() {
        let stream = Stream::new(3, "histogram");
        for case in 0..500 {
            let mut draw = stream.at(case);
            let length = 1 + draw.bits() % 300;
            let narrow = draw.bits().is_multiple_of(2);
            let (mut whole, mut halves) = (
                Histogram::<5>::new(),
                [Histogram::<5>::new(), Histogram::<5>::new()],
            );
            let mut sorted = Vec::new();
            for n in 0..length {
                let value = any_value(&mut draw) & if narrow { 0xFFF } else { u64::MAX };
                whole.record(value);
                halves[(n % 2) as usize].record(value);
                sorted.push(value);
            }
            sorted.sort_unstable();
            let [mut merged, odd] = halves;
            merged.merge(&odd);
            for percent in 0..=100 {
                let exact = nearest_rank(&sorted, percent);
                let found = whole.percentile(percent as f64).expect("not empty");
                assert!(
                    found.abs_diff(exact) <= exact / 64,
                    "case {case}, p{percent}: {found} for {exact}"
                );
                assert_eq!(merged.percentile(percent as f64), Some(found));
            }
            assert_eq!(whole.max(), sorted.last().copied());
            assert_eq!(whole.min(), sorted.first().copied());
            assert_eq!(whole.count(), u64::from(length));
            assert_eq!(merged.count(), u64::from(length));
            assert_eq!(merged.max(), whole.max());
        }
    }

    #[test]
    fn small_values_are_exact() {
        let mut histogram = Histogram::<5>::new();
        for value in 0..64 {
            histogram.record(value);
        }
        for value in 0..64 {
            let percent = (value as f64 + 1.0) * 100.0 / 64.0;
            assert_eq!(histogram.percentile(percent), Some(value));
        }
    }

    #[test]
    fn every_bucket_contains_its_middle_and_buckets_are_in_order() {
        let last = Histogram::<5>::bucket(u64::MAX);
        for bucket in 0..=last {
            assert_eq!(
                Histogram::<5>::bucket(Histogram::<5>::middle(bucket)),
                bucket
            );
        }
        assert_eq!(Histogram::<5>::bucket(u64::MAX >> 1), last - 32);
    }

    #[test]
    fn memory_follows_the_octaves() {
        let mut histogram = Histogram::<5>::new();
        assert!(size_of::<Histogram>() <= 32);
        assert_eq!(histogram.heap_bytes(), 0);
        assert_eq!(histogram.percentile(50.0), None);
        for value in 1024..2048 {
            histogram.record(value);
        }
        assert_eq!(histogram.heap_bytes(), size_of::<Inner>() + 32);
        histogram.record(600);
        assert_eq!(histogram.heap_bytes(), size_of::<Inner>() + 64);
        assert!(size_of::<Inner>() < 100);
    }

    #[test]
    fn a_count_of_any_size_is_exact() {
        let mut histogram = Histogram::<5>::new();
        // Three buckets; the first that exceeds a byte is not the lowest.
        for value in [20_u64, 10, 30] {
            (0..1_000 * value).for_each(|_| histogram.record(value));
        }
        assert_eq!(histogram.count(), 60_000);
        // The ranks 10,000 and 30,000 are the last of their values.
        for (percent, value) in [(16.6, 10), (16.7, 20), (49.9, 20), (50.1, 30)] {
            assert_eq!(histogram.percentile(percent), Some(value), "{percent}");
        }
    }

    #[test]
    fn counts_exceed_32_bits() {
        let mut histogram = Histogram::<5>::new();
        histogram.record_many(7, (1 << 33) - 1);
        histogram.record(7);
        histogram.record_many(9, (1 << 33) + 1);
        assert_eq!(histogram.count(), (1 << 34) + 1);
        assert_eq!(histogram.percentile(49.9), Some(7));
        assert_eq!(histogram.percentile(50.1), Some(9));
        let mut merged = Histogram::<5>::new();
        merged.record_many(7, u64::from(u32::MAX));
        merged.merge(&histogram);
        assert_eq!(merged.count(), histogram.count() + u64::from(u32::MAX));
        assert_eq!(merged.percentile(55.0), Some(7));
        assert_eq!(merged.percentile(70.0), Some(9));
    }

    #[test]
    fn percentiles_outside_the_range_are_clamped() {
        let mut histogram = Histogram::<5>::new();
        for value in [10, 20, 30] {
            histogram.record(value);
        }
        assert_eq!(histogram.percentile(-1.0), Some(10));
        assert_eq!(histogram.percentile(f64::NAN), Some(10));
        assert_eq!(histogram.percentile(1e9), Some(30));
    }
}
