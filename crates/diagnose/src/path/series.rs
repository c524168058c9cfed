//! Octets over time, in bins that are merged when there are too many.

use serde::Serialize;

use super::estimate::square;
use crate::time::{Nanos, SECOND};

/// Maximum number of bins.
const MOST: usize = 128;
/// Log₂ of the initial bin length in nanoseconds: 8 ms.
const SHORTEST: u32 = 23;

/// Octets over time.
#[derive(Debug)]
pub(super) struct Octets {
    start: Option<Nanos>,
    shift: u32,
    bins: Vec<i64>,
}

impl Default for Octets {
    fn default() -> Self {
        Self {
            start: None,
            shift: SHORTEST,
            bins: Vec::new(),
        }
    }
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
        let since = (time - *self.start.get_or_insert(time)).max(0);
        let mut bin = usize::try_from(since >> self.shift).unwrap_or(usize::MAX);
        while bin >= MOST {
            let merged = self.bins.chunks(2).map(|pair| pair.iter().sum());
            self.bins = merged.collect();
            self.shift += 1;
            bin = usize::try_from(since >> self.shift).unwrap_or(usize::MAX);
        }
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += octets;
    }

    /// The standard deviation of the bins as a share of the mean, without the partial first and
    /// last bins.
    pub(super) fn spread(&self) -> f64 {
        let inner = self.bins.get(1..self.bins.len().saturating_sub(1));
        let inner = inner
            .unwrap_or_default()
            .iter()
            .map(|octets| *octets as f64);
        let count = inner.len().max(1) as f64;
        let mean = inner.clone().sum::<f64>() / count;
        let squares: f64 = inner.map(|octets| square(octets - mean)).sum();
        (squares / count).sqrt() / mean.max(1.0)
    }

    /// Rates, with times from `origin`.
    pub(super) fn series(&self, origin: Nanos) -> Series {
        let interval = (1_i64 << self.shift) as f64 / SECOND as f64;
        let rates = self
            .bins
            .iter()
            .map(|octets| *octets as f64 * 8e-6 / interval);
        Series {
            start_s: self.start.map_or(0, |start| start - origin) as f64 / SECOND as f64,
            interval_s: interval,
            mbit_s: rates.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MILLISECOND;

    #[test]
    fn merged_bins_keep_all_octets() {
        let mut octets = Octets::default();
        for k in 0..10_000 {
            octets.see(k * MILLISECOND, 1_000);
        }
        let series = octets.series(0);
        assert!(series.mbit_s.len() <= MOST);
        let sum: f64 = series.mbit_s.iter().sum();
        assert!((sum * series.interval_s - 80.0).abs() < 1e-9, "{sum}");
        assert!((series.mbit_s[3] - 8.0).abs() < 0.1);
        // A pause of years fits.
        octets.see(i64::MAX / 2, 1);
        assert!(octets.bins.len() <= MOST);
    }
}
