//! Timers of flows, in order of time; one per flow.

use std::{cmp::Reverse, collections::BinaryHeap};

use anabranch_core::units::Instant;

/// An alarm may be early if the packet it was set for is gone; the flow then sets a later one.
#[derive(Debug)]
pub(super) struct Alarms {
    heap: BinaryHeap<Reverse<(Instant, u32)>>,
}

impl Alarms {
    pub(super) const fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
        }
    }
    /// Sets an alarm for `flow` at `at` or earlier. `armed` is the flow's copy of the time.
    pub(super) fn arm(&mut self, flow: u32, armed: &mut Option<Instant>, at: Instant) {
        if armed.is_none_or(|armed| at < armed) {
            *armed = Some(at);
            self.heap.push(Reverse((at, flow)));
        }
    }
    /// Time of the earliest alarm.
    pub(super) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }
    /// Removes the earliest alarm.
    pub(super) fn pop(&mut self) -> Option<(Instant, u32)> {
        self.heap.pop().map(|Reverse(alarm)| alarm)
    }
}
