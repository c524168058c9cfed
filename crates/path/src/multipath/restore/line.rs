//! Held packets of one flow in order, and the next expected number.

use std::collections::VecDeque;

use anabranch_core::{
    packet::PacketId,
    units::{Instant, text::Limit},
};

use super::alarms::Alarms;

/// A packet that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    /// Its position in the order.
    pub(super) at: u64,
    /// One past its end.
    pub(super) end: u64,
    /// `None` if it has been forwarded already and only its position is held.
    pub(super) packet: Option<PacketId>,
    pub(super) size: u32,
    /// The route it arrived on, and its departure in microseconds of the sender's clock, if known.
    pub(super) route: u8,
    pub(super) departed: u64,
    /// Latest time of its release.
    pub(super) due: Instant,
}

/// Packets of one flow that wait for earlier ones.
#[derive(Debug)]
pub(super) struct Line {
    /// The next expected position.
    pub(super) next: u64,
    /// Sorted by position; of equal positions, the earlier arrival is first.
    waiting: VecDeque<Waiting>,
    /// Time of this flow's alarm, if set.
    pub(super) armed: Option<Instant>,
}

/// Position of number 0. The offset leaves room for numbers just before it.
pub(super) const FIRST: u64 = 1 << 32;

impl Default for Line {
    fn default() -> Self {
        Self {
            next: FIRST,
            waiting: VecDeque::new(),
            armed: None,
        }
    }
}

/// Memory used by all flows together, and its limit.
#[derive(Debug)]
pub(super) struct Held {
    limit: Limit,
    packets: u64,
    bytes: u64,
}

impl Held {
    pub(super) const fn new(limit: Limit) -> Self {
        Self {
            limit,
            packets: 0,
            bytes: 0,
        }
    }
    /// Whether the memory exceeds its limit.
    pub(super) fn is_over(&self) -> bool {
        match self.limit {
            Limit::Packets(limit) => self.packets > limit,
            Limit::Bytes(limit) => self.bytes > limit.get(),
            Limit::Unlimited | Limit::Bdp(_) => false,
        }
    }
}

impl Line {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
    /// Sets an alarm for the earliest deadline.
    pub(super) fn arm(&mut self, flow: u32, alarms: &mut Alarms) {
        if self.armed.is_none()
            && let Some(hastiest) = self.hastiest()
        {
            alarms.arm(flow, &mut self.armed, hastiest.due);
        }
    }
    /// The first waiting packet.
    pub(super) fn first(&self) -> Option<&Waiting> {
        self.waiting.front()
    }
    /// Whether another packet may pass the gap: at most `most` may, and none may overtake a waiting
    /// packet.
    pub(super) fn lets_pass(&self, most: usize) -> bool {
        self.waiting.len() < most && self.waiting.iter().all(|gone| gone.packet.is_none())
    }
    /// Returns the packet with the earliest deadline; of several, the last in order.
    pub(super) fn hastiest(&self) -> Option<Waiting> {
        let hastiest = self.waiting.iter().rev();
        hastiest.min_by_key(|waiting| waiting.due).copied()
    }

    /// Inserts a packet.
    pub(super) fn hold(&mut self, held: &mut Held, waiting: Waiting) {
        held.packets += 1;
        held.bytes += u64::from(waiting.size);
        let place = match self.waiting.back() {
            Some(last) if last.at > waiting.at => {
                self.waiting.partition_point(|other| other.at <= waiting.at)
            }
            _ => self.waiting.len(),
        };
        self.waiting.insert(place, waiting);
    }

    /// Releases packets up to the next gap.
    pub(super) fn release(&mut self, held: &mut Held, released: &mut Vec<PacketId>) {
        while let Some(first) = self.waiting.front()
            && first.at <= self.next
        {
            self.next = self.next.max(first.end);
            held.packets -= 1;
            held.bytes -= u64::from(first.size);
            released.extend(first.packet);
            self.waiting.pop_front();
        }
    }

    /// Releases packets whose deadline is at most `now`, with all packets before them. Returns the
    /// number of gaps given up.
    pub(super) fn sound(
        &mut self,
        now: Instant,
        held: &mut Held,
        released: &mut Vec<PacketId>,
    ) -> u64 {
        let mut gaps = 0;
        while let Some(hastiest) = self.hastiest().filter(|hastiest| hastiest.due <= now) {
            gaps += self.give_up(hastiest.at, held, released);
        }
        gaps
    }

    /// Releases packets up to position `at` in spite of gaps, and the contiguous packets after
    /// them. Returns the number of gaps given up.
    pub(super) fn give_up(
        &mut self,
        at: u64,
        held: &mut Held,
        released: &mut Vec<PacketId>,
    ) -> u64 {
        let mut gaps = 0;
        while let Some(first) = self.waiting.front()
            && first.at <= at
        {
            gaps += u64::from(first.at > self.next);
            self.next = self.next.max(first.at);
            self.release(held, released);
        }
        gaps
    }
}
