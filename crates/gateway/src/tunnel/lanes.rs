//! Packets that wait for a path. Each class has a lane, so that no packet waits for a path that
//! only another lane must use.

use anabranch_core::units::Duration;
use std::collections::VecDeque;

use super::{homes::Homes, stats::ClassStats};
use crate::{
    blocks::Protector,
    inner::{FLOWS, Summary},
    path::Kept,
    policy::{Class, Match, Rule},
    pool::Pool,
    queue::Queue,
    time::Instant,
    wire::{OVERHEAD, PATHS},
};

/// The largest number of packets of a lane that wait for retransmission.
const REPAIRS: usize = 512;
/// The largest number of retransmissions of a packet.
const ATTEMPTS: u8 = 3;
/// The greatest age of a packet when it leaves: its receiver does not wait for it any more, and the
/// backlog of an outage must not delay later packets. Retransmissions may be twice as old.
const AGE: Duration = Duration::from_secs(1);
/// The same for interactive packets.
const AGE_INTERACTIVE: Duration = Duration::from_millis(200);
/// The window of [`Meter`].
const METER: Duration = Duration::from_millis(200);

/// A packet that has a place in its flow and waits for its path.
#[derive(Debug)]
pub(super) struct Staged {
    pub kept: Kept,
    pub is_repair: bool,
}

/// The sending rate over the last window or the elapsed part of the present one, whichever is
/// greater.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Meter {
    since: Instant,
    octets: usize,
    before: f64,
}

impl Meter {
    fn add(&mut self, octets: usize, now: Instant) {
        let past = now.saturating_since(self.since);
        if past >= METER {
            self.before = self.octets as f64 / past.as_secs_f64();
            (self.since, self.octets) = (now, 0);
        }
        self.octets += octets;
    }

    /// Octets per second.
    pub(super) fn rate(&self) -> f64 {
        self.before.max(self.octets as f64 / METER.as_secs_f64())
    }
}

/// A lane.
#[derive(Debug)]
pub(super) struct Lane {
    pub class: Class,
    pub queue: Queue,
    pub repairs: VecDeque<Kept>,
    pub staged: Option<Staged>,
    pub homes: Homes,
    pub meter: Meter,
    pub protector: Protector,
    /// Packets sent, repair packets and retransmissions included.
    packets: u64,
    /// Their octets.
    octets: u64,
    /// Octets that it has sent, plus its unused share: the lane with the least sends next.
    served: u64,
    /// Packets dropped because of their age after they had left the queue.
    expired: u64,
}

impl Lane {
    fn new(class: Class, seed: u64) -> Self {
        Self {
            class,
            queue: Queue::new(seed),
            repairs: VecDeque::new(),
            staged: None,
            homes: Homes::default(),
            meter: Meter::default(),
            protector: Protector::default(),
            packets: 0,
            octets: 0,
            served: 0,
            expired: 0,
        }
    }

    pub(super) fn stats(&self) -> ClassStats {
        ClassStats {
            class: self.class,
            packets: self.packets,
            octets: self.octets,
            queued: self.queue.len() + self.homes.len(),
            dropped: self.queue.dropped(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.staged.is_none()
            && self.homes.is_empty()
            && self.queue.is_empty()
            && self.repairs.is_empty()
            && self.protector.next_octets().is_none()
    }

    /// The greatest age of a packet that leaves for the first time.
    pub(super) const fn age(&self) -> Duration {
        match self.class {
            Class::Interactive => AGE_INTERACTIVE,
            Class::Bulk | Class::Pinned(_) => AGE,
        }
    }

    /// Takes the next retransmission. Drops those beyond the age limit.
    pub(super) fn take_repair(&mut self, now: Instant, pool: &mut Pool) -> Option<Kept> {
        while let Some(kept) = self.repairs.pop_front() {
            if let Some(kept) = self.unless_old(kept, now, pool) {
                return Some(kept);
            }
        }
        None
    }

    /// Returns a packet that has a number, or drops it because of its age. One without content
    /// replaces a packet for which the receiver must not wait.
    pub(super) fn unless_old(&mut self, kept: Kept, now: Instant, pool: &mut Pool) -> Option<Kept> {
        if kept.packet.is_empty() || now.saturating_since(kept.since) <= self.age() * 2 {
            return Some(kept);
        }
        self.expired += 1;
        pool.put(kept.packet);
        None
    }

    fn repair(&mut self, kept: Kept, pool: &mut Pool) {
        if kept.attempts < ATTEMPTS && self.repairs.len() < REPAIRS {
            self.repairs.push_back(kept);
        } else {
            pool.put(kept.packet);
        }
    }

    /// Retransmits packets that repair packets cannot restore.
    pub(super) fn take_excess(&mut self, pool: &mut Pool) {
        while let Some(kept) = self.protector.take_excess() {
            self.repair(kept, pool);
        }
    }

    /// A lower bound of the next datagram's octets.
    pub(super) fn next_octets(&self) -> usize {
        let staged = self.staged.as_ref().map(|staged| staged.kept.packet.len());
        let repair = self.protector.next_octets();
        repair.or(staged).unwrap_or(0) + OVERHEAD
    }
}

/// All lanes. Lane 0 is that of [`Class::Bulk`].
#[derive(Debug)]
pub(super) struct Lanes {
    all: Vec<Lane>,
    rules: Vec<(Match, u8)>,
    seed: u64,
    /// The value of `served` of the lane that sent last.
    clock: u64,
    /// The number of the last block.
    block: u16,
}

impl Lanes {
    pub(super) fn new(rules: &[Rule], seed: u64) -> Self {
        let mut lanes = Self {
            all: vec![Lane::new(Class::Bulk, seed)],
            rules: Vec::new(),
            seed,
            clock: 0,
            block: 0,
        };
        lanes.set_rules(rules);
        lanes
    }

    /// Replaces the rules. A lane that no rule names any more sends its remaining packets.
    pub(super) fn set_rules(&mut self, rules: &[Rule]) {
        self.rules.clear();
        for rule in rules {
            let known = self.all.iter().position(|lane| lane.class == rule.class);
            let lane = known.unwrap_or_else(|| {
                self.all.push(Lane::new(rule.class, self.seed));
                self.all.len() - 1
            });
            // Bulk, interactive and one for each path: they are few.
            let lane = u8::try_from(lane).unwrap_or(0);
            self.rules.push((rule.matches.clone(), lane));
        }
    }

    /// The largest number of lanes.
    pub(super) const MOST: usize = PATHS + 2;

    pub(super) fn get(&self, lane: u8) -> Option<&Lane> {
        self.all.get(usize::from(lane))
    }

    pub(super) fn get_mut(&mut self, lane: u8) -> Option<&mut Lane> {
        self.all.get_mut(usize::from(lane))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Lane> {
        self.all.iter()
    }

    /// The lane of a packet, and its flow. Lanes share no flow, because one lane would wait for the
    /// other at the receiver.
    pub(super) fn classify(&self, packet: &Summary) -> (u8, u16) {
        let fits = |(matches, _): &&(Match, u8)| matches.fits(packet);
        let lane = self.rules.iter().find(fits).map_or(0, |&(_, lane)| lane);
        (lane, (packet.flow + 59 * u16::from(lane)) % FLOWS)
    }

    pub(super) fn push(
        &mut self,
        lane: u8,
        flow: u16,
        packet: Vec<u8>,
        now: Instant,
        pool: &mut Pool,
    ) {
        let clock = self.clock;
        if let Some(lane) = self.get_mut(lane) {
            if lane.is_empty() {
                lane.served = lane.served.max(clock);
            }
            lane.queue.push(flow, packet, now, pool);
        }
    }

    /// Queues a packet for retransmission, unless the queue is full or the packet was retransmitted
    /// often enough.
    pub(super) fn repair(&mut self, kept: Kept, pool: &mut Pool) {
        match self.get_mut(kept.lane) {
            Some(lane) => lane.repair(kept, pool),
            None => pool.put(kept.packet),
        }
    }

    /// Handles the loss of a packet of a block. It is retransmitted unless the block's repair
    /// packets restore it.
    pub(super) fn on_protected_lost(&mut self, kept: Kept, pool: &mut Pool) {
        let Some(lane) = self.get_mut(kept.lane) else {
            return pool.put(kept.packet);
        };
        if let Some(kept) = lane.protector.on_lost(kept) {
            lane.repair(kept, pool);
        }
        lane.take_excess(pool);
    }

    /// Handles the loss of a repair packet.
    pub(super) fn on_repair_lost(&mut self, lane: u8, block: u16, pool: &mut Pool) {
        if let Some(lane) = self.get_mut(lane) {
            lane.protector.on_repair_lost(block);
            lane.take_excess(pool);
        }
    }

    /// The next lane to send, among nonempty lanes that were not `tried`: interactive first; the
    /// others share.
    pub(super) fn next(&self, tried: u32) -> Option<u8> {
        let lanes = (0_u8..).zip(&self.all);
        let able = lanes.filter(|(number, lane)| tried >> number & 1 == 0 && !lane.is_empty());
        able.min_by_key(|(_, lane)| (lane.class != Class::Interactive, lane.served))
            .map(|(number, _)| number)
    }

    /// Records a packet of a lane that was sent.
    pub(super) fn on_sent(&mut self, lane: u8, octets: usize, now: Instant) {
        if let Some(lane) = self.get_mut(lane) {
            lane.meter.add(octets, now);
            lane.packets += 1;
            lane.octets += octets as u64;
            lane.served += octets as u64;
            let (class, served) = (lane.class, lane.served);
            if class != Class::Interactive {
                self.clock = self.clock.max(served);
            }
        }
    }

    /// The time at which a block must be closed.
    pub(super) fn closes(&self) -> Option<Instant> {
        self.iter().filter_map(|lane| lane.protector.closes()).min()
    }

    /// Adds a packet to a lane's block; returns the block's number and the packet's index.
    pub(super) fn protect(
        &mut self,
        kept: &Kept,
        closes: Instant,
        pool: &mut Pool,
    ) -> Option<(u16, u8)> {
        let lane = self.all.get_mut(usize::from(kept.lane))?;
        let block = &mut self.block;
        Some(
            lane.protector
                .add(kept.place, &kept.packet, block, closes, pool),
        )
    }

    /// Packets that wait.
    pub(super) fn queued(&self) -> usize {
        self.iter()
            .map(|lane| lane.queue.len() + lane.homes.len())
            .sum()
    }

    /// Packets that wait for retransmission.
    pub(super) fn repairing(&self) -> usize {
        self.iter().map(|lane| lane.repairs.len()).sum()
    }

    /// Packets dropped by the queues, or because of their age.
    pub(super) fn dropped(&self) -> u64 {
        let dropped = |lane: &Lane| lane.queue.dropped() + lane.queue.expired() + lane.expired;
        self.iter().map(dropped).sum()
    }

    /// Octets that leave before a packet that arrives now.
    pub(super) fn backlog(&self) -> u64 {
        self.iter()
            .map(|lane| lane.queue.octets() + lane.homes.all_octets() as u64)
            .sum()
    }

    /// Drops packets that have a number, because the other end has restarted.
    pub(super) fn forget_numbered(&mut self) {
        for lane in &mut self.all {
            lane.repairs.clear();
            lane.staged = None;
            lane.homes.forget();
            lane.protector = Protector::default();
        }
    }
}
