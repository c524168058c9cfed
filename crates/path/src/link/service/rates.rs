//! A rate that follows a table over time.
//!
//! A packet occupies the link until the rates from its start on have carried its bits. If the rate
//! changes during the transmission, the remaining bits continue at the new rate; at a rate of 0 the
//! packet waits. After the last round of a finite table nothing is sent.

use std::sync::Arc;

use anabranch_core::units::{Duration, Instant, Rate};

use super::{super::steps::Steps, Service};

/// Capacity is counted in bits × picoseconds per second, so that sums over steps are exact.
const PER_BIT: u128 = 1_000_000_000_000;

/// Rates of a table; at least one is above 0.
#[derive(Debug, PartialEq, Eq)]
pub struct Rates {
    steps: Steps,
    bits_per_s: Box<[u64]>,
    /// Capacity of a round up to the end of each step.
    carried: Box<[u128]>,
}

impl Rates {
    /// Creates a table of bits per second in each step.
    #[must_use]
    pub(super) fn new(steps: Steps, bits_per_s: Box<[u64]>) -> Self {
        let mut sum = 0;
        let carried = (0..steps.len()).map(|step| {
            sum += carries(bits_per_s[step], steps.length(step));
            sum
        });
        Self {
            carried: carried.collect(),
            steps,
            bits_per_s,
        }
    }

    /// Capacity of a round.
    fn total(&self) -> u128 {
        self.carried.last().copied().unwrap_or_default().max(1)
    }

    /// Mean rate in whole bits per second, at least 1.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        let rate = self.total() / u128::from(self.steps.round().as_picos());
        Rate::new(u64::try_from(rate.max(1)).unwrap_or(u64::MAX))
            .unwrap_or(Rate::from_mbit_per_s(1))
    }

    /// Capacity from the start to `now`.
    fn carried_by(&self, now: Instant) -> u128 {
        let place = self.steps.at(now);
        if place.is_over {
            return self.total() * u128::from(place.round);
        }
        let before = match place.step {
            0 => 0,
            step => self.carried[step - 1],
        };
        let whole = u128::from(place.round) * self.total();
        whole + before + carries(self.bits_per_s[place.step], place.since)
    }

    /// When the capacity since the start reaches `sum`, which is above 0.
    fn when(&self, sum: u128) -> Instant {
        let (round, rest) = ((sum - 1) / self.total(), (sum - 1) % self.total() + 1);
        let Ok(round) = u64::try_from(round) else {
            return Instant::NEVER;
        };
        let step = self.carried.partition_point(|carried| *carried < rest);
        let before = match step {
            0 => 0,
            step => self.carried[step - 1],
        };
        let since = (rest - before).div_ceil(u128::from(self.bits_per_s[step]));
        let since = Duration::from_picos(u64::try_from(since).unwrap_or(u64::MAX));
        self.steps.instant(round, step, since)
    }
}

fn carries(bits_per_s: u64, time: Duration) -> u128 {
    u128::from(bits_per_s) * u128::from(time.as_picos())
}

/// Service that follows a table of rates.
#[derive(Debug, Clone)]
pub struct Stepped(pub Arc<Rates>);

impl Service for Stepped {
    fn finish(&mut self, now: Instant, bits: u64) -> Instant {
        if bits == 0 {
            return now;
        }
        self.0
            .when(self.0.carried_by(now) + u128::from(bits) * PER_BIT)
    }

    fn capacity(&self, from: Instant, to: Instant) -> f64 {
        let carried = self
            .0
            .carried_by(to)
            .saturating_sub(self.0.carried_by(from));
        carried as f64 / PER_BIT as f64
    }
}
