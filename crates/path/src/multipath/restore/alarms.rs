//! Times at which flows want to be looked at: one for each flow, in order.

use std::{cmp::Reverse, collections::BinaryHeap};

use anabranch_core::units::Instant;

/// An alarm may come too early, where what it was for has gone on; whoever hears it asks for a later one.
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
    /// Wants `flow` to be looked at no later than at `at`. `armed` is what the flow remembers of it.
    pub(super) fn arm(&mut self, flow: u32, armed: &mut Option<Instant>, at: Instant) {
        if armed.is_none_or(|armed| at < armed) {
            *armed = Some(at);
            self.heap.push(Reverse((at, flow)));
        }
    }
    /// The earliest.
    pub(super) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }
    /// Takes the earliest.
    pub(super) fn pop(&mut self) -> Option<(Instant, u32)> {
        self.heap.pop().map(|Reverse(alarm)| alarm)
    }
}
