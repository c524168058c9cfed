//! Tells a change of the route from a queue: the least round trip steps, and what is in flight does not.

use std::collections::VecDeque;

use crate::time::{MILLISECOND, Nanos};

/// Samples of which the least counts, at least.
const BLOCK: u32 = 8;
/// Blocks that must lie on the other side of the step.
const STAYS: usize = 4;
/// Changes that are kept.
const MOST: usize = 16;

/// A change of the route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) time: Nanos,
    pub(crate) before: Nanos,
    pub(crate) after: Nanos,
}

/// The least of some samples, and what was in flight.
#[derive(Debug, Clone, Copy)]
struct Block {
    time: Nanos,
    least: Nanos,
    flight: i64,
}

/// The least round trips of one part of the path.
#[derive(Debug, Default)]
pub(crate) struct Route {
    samples: u32,
    open: Option<Block>,
    /// The blocks before the step that is asked for, and behind it.
    blocks: VecDeque<Block>,
    pub(crate) changes: Vec<Change>,
}

impl Route {
    pub(crate) fn see(&mut self, time: Nanos, sample: Nanos, flight: i64, least: Nanos) {
        let block = self.open.get_or_insert(Block {
            time,
            least: sample,
            flight,
        });
        block.least = block.least.min(sample);
        block.flight = block.flight.max(flight);
        self.samples += 1;
        // A round trip at least, so that what is in flight then shows.
        if self.samples < BLOCK || time - block.time < least {
            return;
        }
        self.samples = 0;
        if let Some(block) = self.open.take() {
            self.blocks.push_back(block);
            self.look();
        }
    }

    /// Whether the blocks in the middle are a step: all before it lie together, and all behind it.
    fn look(&mut self) {
        if self.blocks.len() < 2 * STAYS + 1 {
            return;
        }
        let before = self.blocks.range(..STAYS).copied();
        let after = self.blocks.range(STAYS + 1..).copied();
        if let Some(change) = step(before, after)
            && self.changes.len() < MOST
        {
            self.changes.push(change);
            self.blocks.drain(..=STAYS);
        } else {
            self.blocks.pop_front();
        }
    }
}

fn step(
    before: impl Iterator<Item = Block> + Clone,
    after: impl Iterator<Item = Block> + Clone,
) -> Option<Change> {
    let least = |blocks: &mut dyn Iterator<Item = Block>| blocks.map(|block| block.least).min();
    let most = |blocks: &mut dyn Iterator<Item = Block>| blocks.map(|block| block.least).max();
    let (low, high) = (least(&mut before.clone())?, most(&mut before.clone())?);
    let (next_low, next_high) = (least(&mut after.clone())?, most(&mut after.clone())?);
    let is_flat = |low: Nanos, high: Nanos| high - low <= low / 16 + MILLISECOND;
    let step = (next_low - low).abs();
    let is_step = step > low.min(next_low) / 8 + 2 * MILLISECOND;
    // A queue grows by what more is in flight, and falls with it.
    let flights = |blocks: &mut dyn Iterator<Item = Block>| {
        blocks
            .map(|block| block.flight)
            .fold((i64::MAX, 0), |(low, high), flight| {
                (low.min(flight), high.max(flight))
            })
    };
    let (was_least, was_most) = flights(&mut before.clone());
    let (is_least, is_most) = flights(&mut after.clone());
    let is_same = is_most <= was_most + was_most / 8 && was_least <= is_least + is_least / 8;
    let time = after.clone().next()?.time;
    (is_flat(low, high) && is_flat(next_low, next_high) && is_step && is_same).then_some(Change {
        time,
        before: low,
        after: next_low,
    })
}
