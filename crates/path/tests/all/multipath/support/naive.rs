//! A restorer that is not optimized for speed, right or wrong in one respect.

use std::collections::BTreeMap;

use anabranch_core::{
    packet::PacketId,
    units::{Duration, Instant},
};
use anabranch_path::multipath::restore::{Arrived, Restore};

/// Fault of the restorer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Releases waiting packets in the order of arrival.
    Hasty,
    /// Keeps all flows in one order.
    OneOrder,
    /// Has no timer.
    Stalls,
    /// Waits twice as long as allowed.
    Slow,
    /// Has unlimited memory.
    Greedy,
    /// Drops late packets.
    Forgets,
    /// Releases late packets twice.
    Doubles,
    /// Does not report abandoned gaps.
    Silent,
}

/// Waits for `limit`, holds `memory` packets.
#[derive(Debug)]
pub struct Naive {
    fault: Fault,
    limit: Duration,
    memory: usize,
    next: BTreeMap<u32, u64>,
    /// Packets and arrival times, by flow and position.
    held: BTreeMap<(u32, u64), (PacketId, Instant)>,
    arrived: u64,
    gaps: u64,
}

impl Naive {
    pub fn new(fault: Fault, limit: Duration, memory: usize) -> Self {
        let factor = if fault == Fault::Slow { 2 } else { 1 };
        Self {
            fault,
            limit: limit * factor,
            memory,
            next: BTreeMap::new(),
            held: BTreeMap::new(),
            arrived: 0,
            gaps: 0,
        }
    }

    fn run(&mut self, flow: u32, released: &mut Vec<PacketId>) {
        loop {
            let next = self.next.entry(flow).or_default();
            let Some((packet, _)) = self.held.remove(&(flow, *next)) else {
                return;
            };
            *next += 1;
            released.push(packet);
        }
    }

    /// Releases all packets of a flow up to this position.
    fn give_up(&mut self, flow: u32, at: u64, released: &mut Vec<PacketId>) {
        let from = released.len();
        while let Some((&(_, first), _)) = self.held.range((flow, 0)..=(flow, at)).next() {
            let next = self.next.entry(flow).or_default();
            if first > *next && self.fault != Fault::Silent {
                self.gaps += 1;
            }
            *next = first;
            self.run(flow, released);
        }
        if self.fault == Fault::Hasty {
            released[from..].sort_by_key(|packet| std::cmp::Reverse(packet.0));
        }
    }

    fn eldest(&self) -> Option<((u32, u64), Instant)> {
        let all = self.held.iter().map(|(key, (_, since))| (*key, *since));
        all.min_by_key(|((_, at), since)| (*since, std::cmp::Reverse(*at)))
    }
}

impl Restore for Naive {
    fn arrive(&mut self, now: Instant, packet: Arrived, released: &mut Vec<PacketId>) {
        let number = u64::from(packet.tunnel.number);
        let (flow, at) = if self.fault == Fault::OneOrder {
            self.arrived += 1;
            (0, number)
        } else {
            (u32::from(packet.tunnel.flow), number)
        };
        let next = *self.next.entry(flow).or_default();
        if at < next {
            match self.fault {
                Fault::Forgets => return,
                Fault::Doubles => released.extend([packet.packet; 2]),
                _ => released.push(packet.packet),
            }
            return;
        }
        if let Some((other, _)) = self.held.insert((flow, at), (packet.packet, now)) {
            released.push(other);
        }
        self.run(flow, released);
        while self.held.len() > self.memory && self.fault != Fault::Greedy {
            let ((flow, at), _) = self.eldest().expect("there are some");
            self.give_up(flow, at, released);
        }
    }
    fn on_timer(&mut self, now: Instant, released: &mut Vec<PacketId>) {
        while let Some(((flow, at), since)) = self.eldest()
            && since + self.limit <= now
        {
            self.give_up(flow, at, released);
        }
    }
    fn timer(&self) -> Option<Instant> {
        if self.fault == Fault::Stalls {
            return None;
        }
        self.eldest().map(|(_, since)| since + self.limit)
    }
    fn gaps_given_up(&self) -> u64 {
        self.gaps
    }
}
