//! Receivers that run ahead.
//!
//! The link before a receiver computes when a packet will arrive. If nothing else can happen to the
//! receiver before, it takes the packet at once, which saves an event:
//! - the packets of its connection reach it over that link in order, and none is still to arrive;
//! - no timer of it is due before;
//! - nobody reads its state before: neither the caller (the run continues beyond the arrival) nor
//!   the end of the transfer;
//! - the first link of its acknowledgments has no other user, so that it can be computed ahead too.
//!
//! Only hot receivers ([`super::hot`]) run ahead. Packets that were on their way when a receiver
//! became hot are taken together, and their events find nothing left to do.

use anabranch_core::{body::Body, packet::PacketId, trail::Trail, units::Instant};

use super::{
    Network,
    fabric::{Fabric, LinkSlot, PASSED, Target},
};

/// Packets on the last link before a receiver.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Approaching {
    packets: u32,
    /// That link.
    link: u32,
    /// Arrivals until the receiver tries to take them together.
    wait: u32,
}

impl<B: Body> Network<B> {
    /// Takes a packet that has crossed the last link before a receiver: now, or when it arrives.
    #[inline(never)]
    pub(super) fn run_ahead(&mut self, id: PacketId, at: Instant) {
        let place = self.fabric.pool[id].connection.0 as usize;
        if self.fabric.approaching[place].packets > 0 || !self.takes_ahead(place, id, at) {
            self.fabric.approach(id, at);
        }
    }

    /// Lets the receiver of the connection at `place` take a packet that arrives at `at`. Returns
    /// `false` if it has to wait until then.
    #[expect(
        clippy::inline_always,
        reason = "measured: nearly all calls are in `run_ahead`"
    )]
    #[inline(always)]
    fn takes_ahead(&mut self, place: usize, id: PacketId, at: Instant) -> bool {
        let Some([sender, receiver]) = self.agents.get(place * 2..place * 2 + 2) else {
            return false;
        };
        let conn = &self.connections[place];
        let size = u64::from(self.fabric.pool[id].size);
        receiver.is_hot
            && at < self.fabric.ahead_until
            && at <= sender.stop
            && at <= receiver.hot_deadline()
            && conn.delivered.saturating_add(size) < conn.size
            && self.receive(place, id, at)
    }

    #[cold]
    #[inline(never)]
    fn takes_later(&mut self, place: usize, id: PacketId, at: Instant) -> bool {
        self.takes_ahead(place, id, at)
    }

    /// A packet arrives that its receiver did not take ahead.
    #[inline(never)]
    pub(super) fn finish_approach(&mut self, id: PacketId) {
        let place = self.fabric.pool[id].connection.0 as usize;
        let approaching = &mut self.fabric.approaching[place];
        approaching.packets -= 1;
        approaching.wait = approaching.wait.saturating_sub(1);
        let tries = approaching.wait == 0 && approaching.packets > 0;
        self.reach_end(id);
        if tries && self.agents[place * 2 + 1].is_hot {
            self.catch_up(place);
        }
    }

    /// Lets a receiver take all packets on the last link.
    #[cold]
    fn catch_up(&mut self, place: usize) {
        for (at, id) in self.fabric.approaching_packets(place) {
            // Its entry in the ring stays, and keeps the slot.
            let copy = self.fabric.pool[id].clone();
            let ahead = self.fabric.pool.insert(copy);
            if !self.takes_later(place, ahead, at) {
                self.fabric.pool[ahead].trail = Trail::default();
                self.fabric.pool.free(ahead);
                break;
            }
            self.fabric.pass(place, id);
        }
        // An attempt reads a whole ring.
        let approaching = &mut self.fabric.approaching[place];
        approaching.wait = approaching.packets / 2;
    }
}

impl<B: Body> Fabric<B> {
    /// Schedules the arrival of a packet at a receiver that does not run ahead now.
    pub(super) fn approach(&mut self, id: PacketId, at: Instant) {
        let packet = &self.pool[id];
        let (Target::Plain(link) | Target::Folded(link)) = self.routes[packet.hop as usize - 1]
        else {
            unreachable!("the link before a receiver that may run ahead is plain")
        };
        let approaching = &mut self.approaching[packet.connection.0 as usize];
        approaching.packets += 1;
        approaching.link = link;
        let LinkSlot { ring, own_ring, .. } = self.links[link as usize];
        self.propagate(link as usize, ring, own_ring, id, at);
    }

    /// The packets that approach the receiver of the connection at `place`, in order.
    fn approaching_packets(&self, place: usize) -> Vec<(Instant, PacketId)> {
        let link = self.approaching[place].link;
        let LinkSlot { ring, own_ring, .. } = self.links[link as usize];
        let own = (own_ring != ring).then_some(own_ring);
        let mut packets: Vec<_> = [Some(ring), own]
            .into_iter()
            .flatten()
            .flat_map(|ring| self.rings[ring as usize].iter())
            .filter(|entry| entry.link() == link)
            .map(|entry| (entry.at, entry.packet()))
            .filter(|(_, id)| {
                self.pool[*id].connection.0 as usize == place
                    && self.target(*id) == Target::EndAhead
            })
            .collect();
        packets.sort_by_key(|(at, _)| *at);
        packets
    }

    /// The receiver has taken the packet `id`: its event finds nothing.
    fn pass(&mut self, place: usize, id: PacketId) {
        self.approaching[place].packets -= 1;
        let packet = &mut self.pool[id];
        packet.trail = Trail::default();
        packet.hop = PASSED;
    }
}
