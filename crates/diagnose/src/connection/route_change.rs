//! Distinguishes a change of the route from a queue: the minimum round-trip time steps while the
//! amount in flight does not.

use std::collections::VecDeque;

use crate::time::{MILLISECOND, Nanos};

/// Samples per block, at least.
const BLOCK: u32 = 8;
/// Blocks required on each side of the step.
const STAYS: usize = 8;
/// Maximum number of stored changes.
const MOST: usize = 16;

/// A change of the route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) time: Nanos,
    pub(crate) before: Nanos,
    pub(crate) after: Nanos,
}

/// The minimum of some samples, and the amount in flight.
#[derive(Debug, Clone, Copy)]
struct Block {
    time: Nanos,
    least: Nanos,
    flight: i64,
    /// Octets that had passed at its start.
    passed: i64,
}

/// A round-trip sample of a part of the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) time: Nanos,
    pub(crate) took: Nanos,
    pub(crate) flight: i64,
    /// Octets that have passed.
    pub(crate) passed: i64,
}

/// Minimum round-trip times of one part of the path.
#[derive(Debug, Default)]
pub(crate) struct Route {
    /// The least time of the blocks before the examined ones.
    least: Option<Nanos>,
    samples: u32,
    open: Option<Block>,
    /// The blocks before and after the step that is examined.
    blocks: VecDeque<Block>,
    pub(crate) changes: Vec<Change>,
}

impl Route {
    /// Records a sample, and returns the change that it completes. `least` is a round-trip time of the whole
    /// path.
    pub(crate) fn see(&mut self, sample: Sample, least: Nanos) -> Option<Change> {
        let block = self.open.get_or_insert(Block {
            time: sample.time,
            least: sample.took,
            flight: sample.flight,
            passed: sample.passed,
        });
        block.least = block.least.min(sample.took);
        block.flight = block.flight.max(sample.flight);
        self.samples += 1;
        // At least a round trip, so that the block contains its amount in flight.
        if self.samples < BLOCK || sample.time - block.time < least {
            return None;
        }
        self.samples = 0;
        self.blocks.push_back(self.open.take()?);
        self.look()
    }

    /// Whether the rate changed accordingly: with a constant window, a longer round trip lowers the
    /// rate and a shorter one raises it. A queue leaves the rate unchanged.
    fn has_other_rate(&self, before: &Stretch, after: &Stretch) -> bool {
        let was = rate(self.blocks.range(..STAYS));
        let is = rate(self.blocks.range(STAYS + 1..));
        let (slower, faster) = if after.least.0 > before.least.0 {
            (is, was)
        } else {
            (was, is)
        };
        4.0 * faster > 5.0 * slower
    }

    /// Whether packets waited in a queue: then a bottleneck that becomes slower makes the round trip longer at
    /// the same amount in flight, as another route does, but the rate falls as well.
    fn has_queued(&self, before: &Stretch) -> bool {
        let least = self.least.unwrap_or(before.least.0);
        before.least.0 > least + least / 8 + MILLISECOND
    }

    /// Checks whether the block in the middle is a step: the blocks before it agree, and the blocks
    /// after it do.
    fn look(&mut self) -> Option<Change> {
        if self.blocks.len() < 2 * STAYS + 1 {
            return None;
        }
        let before = Stretch::of(self.blocks.range(..STAYS));
        let after = Stretch::of(self.blocks.range(STAYS + 1..));
        let change = before
            .zip(after)
            .filter(|(before, after)| after.is_step_from(before))
            .filter(|(before, after)| {
                let (is_held, is_other) = (
                    after.has_flight_of(before),
                    self.has_other_rate(before, after),
                );
                if self.has_queued(before) {
                    is_held && !is_other
                } else {
                    is_held || is_other
                }
            })
            .map(|(before, after)| Change {
                time: after.time,
                before: before.least.0,
                after: after.least.0,
            });
        let change = change.filter(|_| self.changes.len() < MOST);
        if let Some(change) = change {
            self.changes.push(change);
            self.least = None;
            self.blocks.drain(..=STAYS);
        } else if let Some(block) = self.blocks.pop_front() {
            let least = self.least.unwrap_or(block.least);
            self.least = Some(least.min(block.least));
        }
        change
    }
}

/// Octets per nanosecond of the median block: a recovery interrupts the acknowledgments.
fn rate<'a>(blocks: impl Iterator<Item = &'a Block> + Clone) -> f64 {
    let pairs = blocks.clone().zip(blocks.skip(1));
    let mut rates: Vec<f64> = pairs
        .map(|(one, next)| (next.passed - one.passed) as f64 / (next.time - one.time).max(1) as f64)
        .collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or_default()
}

/// Consecutive blocks: their start, and the ranges of their minima and of their amounts in flight.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    time: Nanos,
    least: (Nanos, Nanos),
    flight: (i64, i64),
}

impl Stretch {
    fn of<'a>(mut blocks: impl Iterator<Item = &'a Block>) -> Option<Self> {
        let first = blocks.next()?;
        let mut all = Self {
            time: first.time,
            least: (first.least, first.least),
            flight: (first.flight, first.flight),
        };
        for block in blocks {
            all.least = (all.least.0.min(block.least), all.least.1.max(block.least));
            all.flight = (
                all.flight.0.min(block.flight),
                all.flight.1.max(block.flight),
            );
        }
        Some(all)
    }

    fn is_flat(&self) -> bool {
        let (low, high) = self.least;
        high - low <= low / 16 + MILLISECOND
    }

    fn is_step_from(&self, before: &Self) -> bool {
        let (was, is) = (before.least.0, self.least.0);
        let is_step = (is - was).abs() > was.min(is) / 8 + 2 * MILLISECOND;
        is_step && before.is_flat() && self.is_flat()
    }

    /// Whether the amount in flight is the same: a queue grows and drains with it.
    fn has_flight_of(&self, before: &Self) -> bool {
        let (was_least, was_most) = before.flight;
        let (is_least, is_most) = self.flight;
        is_most <= was_most + was_most / 8 && was_least <= is_least + is_least / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sixteen blocks before a step and sixteen after it: round-trip time in milliseconds, amount
    /// in flight, and octets per millisecond.
    fn changes(before: (i64, i64, i64), after: (i64, i64, i64)) -> usize {
        changes_of(&[before, after])
    }

    fn changes_of(parts: &[(i64, i64, i64)]) -> usize {
        let mut route = Route::default();
        let (mut time, mut passed) = (0, 0);
        for &(round_trip, flight, rate) in parts {
            let took = round_trip * MILLISECOND;
            for _ in 0..16 * BLOCK {
                time += 10 * MILLISECOND;
                passed += 10 * rate;
                let sample = Sample {
                    time,
                    took,
                    flight,
                    passed,
                };
                route.see(sample, took);
            }
        }
        route.changes.len()
    }

    #[test]
    fn a_step_without_a_queue_is_another_route() {
        assert_eq!(changes((20, 10_000, 500), (60, 10_000, 166)), 1);
        // A shorter route holds less and is faster.
        assert_eq!(changes((34, 10_000, 300), (11, 7_000, 600)), 1);
        // A queue has filled, and then the bottleneck becomes slower.
        let filled = [(10, 1_000, 100), (20, 10_000, 500), (60, 10_000, 166)];
        assert_eq!(changes_of(&filled), 0);
        // A queue drains.
        assert_eq!(changes((34, 100_000, 3_000), (21, 62_000, 3_000)), 0);
    }
}
