//! Distinguishes a policer from other losses: between two losses it lets through the octets that
//! its rate permits, whatever the window, and no queue builds up (Flach et al., "An Internet-Wide
//! Analysis of Traffic Policing", SIGCOMM 2016).

use super::{estimate::Line, model::Policed, summaries::keep_every_second};
use crate::time::{MILLISECOND, Nanos, SECOND};

/// Maximum number of losses that are considered.
const MOST: usize = 256;
/// Maximum number of segments before the first loss that are stored.
const MOST_EARLY: usize = 128;
/// Minimum number of intervals between losses, if nearly all of them have one rate.
const INTERVALS: usize = 6;
/// Minimum number of losses on one line, if only half of the intervals have one rate.
const POINTS: usize = 5;
/// Minimum number of intervals, if all of them have one rate.
const FEW: usize = 4;
/// Maximum deviation of eight or more losses from their line, as a share of the octets that pass
/// between two of them. Fewer losses must be closer, unless all intervals have one rate.
const CLOSE: f64 = 0.08;
/// Minimum number of losses on a line that shows a policer although bursts wait in a queue. With a
/// full queue, the round-trip time is long at each loss.
const MANY: usize = 12;

/// The beginnings of losses, when the bucket was empty.
#[derive(Debug, Default)]
pub(crate) struct Policing {
    /// When the first lost segment was sent, and the octets that had passed by then.
    losses: Vec<(Nanos, i64)>,
    queued: usize,
    /// Times and octets sent until the first loss, of one in `every` segments.
    early: Vec<(Nanos, i64)>,
    every: u32,
    seen: u32,
}

impl Policing {
    /// Records new data, before which `octets` were sent.
    pub(crate) fn send(&mut self, time: Nanos, octets: i64) {
        if !self.losses.is_empty() {
            return;
        }
        self.seen += 1;
        if self.seen < self.every {
            return;
        }
        self.seen = 0;
        if self.early.len() >= MOST_EARLY {
            keep_every_second(&mut self.early);
            self.every = self.every.max(1).saturating_mul(2);
        }
        self.early.push((time, octets));
    }

    /// Records the beginning of a recovery. `is_queued`: the round-trip time was longer than the
    /// minimum.
    pub(crate) fn lose(&mut self, sent: Nanos, passed: i64, is_queued: bool) {
        if self.losses.len() < MOST {
            self.losses.push((sent, passed));
            self.queued += usize::from(is_queued);
        }
    }

    /// The policer, if there is one. A bucket that was full between two losses has lost tokens, so that its rate
    /// is the upper quartile of the rates near their median.
    pub(crate) fn found(&self, round_trip: Nanos) -> Option<Policed> {
        let mut rates = self.rates((4 * round_trip).max(100 * MILLISECOND))?;
        rates.sort_by(f64::total_cmp);
        let median = *rates.get(rates.len() / 2)?;
        let is_near = |rate: &&f64| (**rate - median).abs() <= median / 8.0;
        let likely: Vec<f64> = rates.iter().filter(is_near).copied().collect();
        let near = likely.len();
        let (&low, &high) = likely.first().zip(likely.last())?;
        let agree = rates.len() >= INTERVALS && 5 * near >= 4 * rates.len();
        let closeness = if near == rates.len() && near >= FEW {
            Some(CLOSE)
        } else {
            None
        };
        let is_line = 2 * near >= rates.len() && self.is_line(round_trip, closeness);
        let losses = self.losses.len();
        let is_policer = if 4 * self.queued <= losses {
            agree || is_line
        } else {
            agree && is_line && losses >= MANY && 3 * self.queued <= 2 * losses
        };
        let rate = likely[3 * near / 4];
        is_policer.then_some(Policed {
            rate,
            low,
            high,
            burst: self.burst(rate),
        })
    }

    /// The most octets that passed above the rate until the first loss: the bucket was full when it began to
    /// drain.
    fn burst(&self, rate: f64) -> f64 {
        let Some(&(end, passed)) = self.losses.first() else {
            return 0.0;
        };
        let before = self.early.iter().filter(|(time, _)| *time <= end);
        let above = before.map(|(time, octets)| {
            (passed - octets) as f64 - rate * (end - time) as f64 / SECOND as f64
        });
        above.fold(0.0, f64::max)
    }

    /// The rates between losses.
    fn rates(&self, shortest: Nanos) -> Option<Vec<f64>> {
        let mut rates = Vec::new();
        let mut from = *self.losses.first()?;
        for &(time, passed) in &self.losses[1..] {
            if time - from.0 >= shortest {
                let octets = (passed - from.1) as f64;
                rates.push(octets * SECOND as f64 / (time - from.0) as f64);
                from = (time, passed);
            }
        }
        Some(rates)
    }

    /// Whether the losses are on a line: the octets that a bucket has let through when it is empty
    /// are its size plus rate × time, although the sender's rate changes in between.
    fn is_line(&self, round_trip: Nanos, closeness: Option<f64>) -> bool {
        let mut points: Vec<(f64, f64)> = Vec::new();
        let first = self.losses.first().map_or(0, |first| first.0);
        for &(time, passed) in &self.losses {
            let time = (time - first) as f64;
            if points
                .last()
                .is_none_or(|last| time - last.0 > round_trip as f64)
            {
                points.push((time, passed as f64));
            }
        }
        let Some(line) = Line::through(&points).filter(|_| points.len() >= POINTS) else {
            return false;
        };
        let count = points.len() as f64;
        let between = line.rate * (points[points.len() - 1].0 - points[0].0) / (count - 1.0);
        let close = closeness.unwrap_or(CLOSE * ((count - 4.0) / 4.0).min(1.0));
        line.deviation <= close * between
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    /// The rate in kB/s for losses at these times in milliseconds, after these kilobytes.
    fn rate(losses: &[(i64, i64)], is_queued: bool) -> Option<f64> {
        let mut policing = Policing::default();
        for (ms, kilobytes) in losses {
            policing.lose(ms * MILLISECOND, kilobytes * 1000, is_queued);
        }
        policing
            .found(40 * MILLISECOND)
            .map(|found| found.rate / 1e3)
    }

    #[test]
    fn six_losses_on_a_line_show_a_policer() {
        let losses = [
            (200, 150),
            (1200, 651),
            (2600, 1349),
            (3400, 1751),
            (5000, 2549),
            (5600, 2850),
        ];
        assert!(rate(&losses, false).is_some_and(|rate| (490.0..510.0).contains(&rate)));
    }

    #[test]
    fn losses_at_random_or_of_a_queue_show_no_policer() {
        let random = [
            (200, 150),
            (1200, 500),
            (1600, 900),
            (3400, 1300),
            (4000, 2200),
            (5600, 2850),
            (6000, 2900),
            (8000, 4500),
        ];
        assert_eq!(rate(&random, false), None);
        let even: Vec<_> = (0..20).map(|step| (step * 500, step * 250)).collect();
        assert_eq!(rate(&even, true), None);
    }
}
