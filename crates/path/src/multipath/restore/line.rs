//! What is held back of one flow, in order, and what came before it.

use std::collections::VecDeque;

use anabranch_core::{
    packet::PacketId,
    units::{Instant, text::Limit},
};

use super::alarms::Alarms;

/// A packet that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    /// Its place in the order.
    pub(super) at: u64,
    /// The place behind it.
    pub(super) end: u64,
    /// `None`: it has gone on already, and only its place is held.
    pub(super) packet: Option<PacketId>,
    pub(super) size: u32,
    /// The route that it came by, and when it left, in microseconds by the sender's clock, where that is known.
    pub(super) route: u8,
    pub(super) departed: u64,
    /// How long it waits at most.
    pub(super) due: Instant,
}

/// The packets of one flow that wait for one before them.
#[derive(Debug)]
pub(super) struct Line {
    /// The place that is due.
    pub(super) next: u64,
    /// By place; of equal ones the earlier arrival first.
    waiting: VecDeque<Waiting>,
    /// The time that stands among the alarms for this flow.
    pub(super) armed: Option<Instant>,
}

/// The place of number 0: those just before it have a place too.
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

/// What all flows together hold, and may hold.
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
    /// Whether more is held than may be.
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
    /// Wants to be looked at when the first must go.
    pub(super) fn arm(&mut self, flow: u32, alarms: &mut Alarms) {
        if self.armed.is_none()
            && let Some(hastiest) = self.hastiest()
        {
            alarms.arm(flow, &mut self.armed, hastiest.due);
        }
    }
    /// The first that waits.
    pub(super) fn first(&self) -> Option<&Waiting> {
        self.waiting.front()
    }
    /// Whether one more may go on before the one that is due: so many may, and none overtakes one that waits.
    pub(super) fn lets_pass(&self, most: usize) -> bool {
        self.waiting.len() < most && self.waiting.iter().all(|gone| gone.packet.is_none())
    }
    /// The one that is to go first, and of those the last in order.
    pub(super) fn hastiest(&self) -> Option<Waiting> {
        let hastiest = self.waiting.iter().rev();
        hastiest.min_by_key(|waiting| waiting.due).copied()
    }

    /// Puts a packet in.
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

    /// Lets those go that are due, up to the next gap.
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

    /// Lets those go that may not wait past `now`, with all before them. How many gaps were given up.
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

    /// Lets those go whose place is `at` or before it, whatever is missing among them, and the run that
    /// follows. How many gaps were given up.
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
