//! Bound on all packets that a link holds: waiting, in transmission and propagating.
//!
//! `tc-netem(8)` has such a bound: its single queue holds delayed packets and packets that wait for
//! its rate or for a qdisc below it, and `limit` counts all of them. A link with a delay of 100 ms
//! and a bound of 1000 packets passes at most 1000 packets each 100 ms, whatever its rate.
//!
//! The link drops a packet that finds no room, before the queue discipline sees it. A packet that
//! an impairment loses counts until it has been sent; a duplicated packet counts twice.

use std::{cmp::Reverse, collections::BinaryHeap};

use anabranch_core::units::{Instant, text::Limit};

use super::ServedLink;
use crate::{group::members::Load, queue::Item};

/// The bound, and the propagating packets.
#[derive(Debug)]
pub(super) struct Held {
    limit: Limit,
    /// Arrival times at the far end and sizes, earliest first.
    propagating: BinaryHeap<Reverse<(Instant, u32)>>,
    bytes: u64,
}

impl Held {
    /// `None` without a limit.
    pub(super) fn new(limit: Limit) -> Option<Box<Self>> {
        (limit != Limit::Unlimited).then(|| {
            Box::new(Self {
                limit,
                propagating: BinaryHeap::new(),
                bytes: 0,
            })
        })
    }

    /// Adds a sent packet that arrives at `at`, `copies` times.
    pub(super) fn add(&mut self, at: Instant, size: u32, copies: u8) {
        for _ in 0..copies {
            self.propagating.push(Reverse((at, size)));
            self.bytes += u64::from(size);
        }
    }

    /// Removes packets that have arrived. A packet that arrives at the far end at `now` makes room
    /// for a new packet at `now`.
    fn release(&mut self, now: Instant) {
        while let Some(Reverse((at, size))) = self.propagating.peek()
            && *at <= now
        {
            self.bytes -= u64::from(*size);
            self.propagating.pop();
        }
    }
}

impl ServedLink {
    /// Whether the link has room for a packet that arrives now.
    #[inline(never)]
    pub(super) fn has_room(&mut self, now: Instant, item: &Item) -> bool {
        let (packets, bytes) = self.near_end();
        let Some(held) = &mut self.held else {
            return true;
        };
        held.release(now);
        let packets = packets + held.propagating.len() as u64;
        held.limit
            .admits(packets, bytes + held.bytes + u64::from(item.size))
    }

    /// Packets and bytes that wait or are in transmission. With `ahead`, a packet propagates from
    /// the start of its transmission.
    fn near_end(&self) -> (u64, u64) {
        let mut sending = self
            .in_service
            .map_or(0, |served| u64::from(served.item.size));
        if let Some(group) = &self.group {
            let loads = (0..group.len()).filter_map(|member| group.load(member));
            let packets = loads.filter(|load| matches!(load, Load::Packet(_)));
            sending += packets.map(|load| u64::from(load.size())).sum::<u64>();
        }
        let packets = self.queue_packets() + self.packets_in_service();
        (packets as u64, self.queue_bytes() + sending)
    }
}
