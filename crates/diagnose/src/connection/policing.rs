//! Tells a policer from other losses: between two losses it lets through what its rate permits, whatever the window, and no
//! queue builds up (Flach et al., "An Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016).

use crate::time::{MILLISECOND, Nanos, SECOND};

/// Losses that are looked at.
const MOST: usize = 256;
/// Intervals between losses, at least.
const LEAST: usize = 6;

/// Where losses began.
#[derive(Debug, Default)]
pub(crate) struct Policing {
    /// When, and up to which octet data had been acknowledged.
    losses: Vec<(Nanos, i64)>,
    queued: usize,
}

impl Policing {
    /// A recovery begins; `is_queued` tells whether the round trip was longer than the least one.
    pub(crate) fn lose(&mut self, time: Nanos, acknowledged: i64, is_queued: bool) {
        if self.losses.len() < MOST {
            self.losses.push((time, acknowledged));
            self.queued += usize::from(is_queued);
        }
    }

    /// The rate in octets per second, if the intervals agree on one.
    pub(crate) fn rate(&self, round_trip: Nanos) -> Option<f64> {
        if 4 * self.queued > self.losses.len() {
            return None;
        }
        let shortest = (4 * round_trip).max(100 * MILLISECOND);
        let mut rates = Vec::new();
        let mut from = *self.losses.first()?;
        for &(time, acknowledged) in &self.losses[1..] {
            if time - from.0 >= shortest {
                let octets = (acknowledged - from.1) as f64;
                rates.push(octets * SECOND as f64 / (time - from.0) as f64);
                from = (time, acknowledged);
            }
        }
        if rates.len() < LEAST {
            return None;
        }
        rates.sort_by(f64::total_cmp);
        let median = rates[rates.len() / 2];
        let near = rates
            .iter()
            .filter(|rate| (**rate - median).abs() <= median / 8.0);
        (5 * near.count() >= 4 * rates.len()).then_some(median)
    }
}
