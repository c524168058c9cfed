//! Ends that run ahead.
//!
//! The last link before an end computes when a packet will arrive. If nothing else can happen to the
//! end before, it takes the packet at once, which saves an event:
//! - the packets of its connection reach it over that link in order, and none is still to arrive;
//! - no timer of it is due before;
//! - nobody reads its state before: neither the caller (the run continues beyond the arrival) nor
//!   the end of the transfer;
//! - no router reports to it, and the first link of its own packets has no other user, so that it
//!   can be computed ahead too.
//!
//! Only hot ends ([`super::hot`]) run ahead. Packets that were on their way when an end became hot
//! are taken together, and their events find nothing left to do.

use anabranch_core::{
    body::Body,
    packet::{Direction, Packet, PacketId},
    trail::Trail,
    units::Instant,
};

use super::{
    Network,
    fabric::{Fabric, LinkSlot, PASSED, Target},
};

/// Packets on the last link before an end.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Approaching {
    packets: u32,
    /// That link.
    link: u32,
    /// Arrivals until the end tries to take them together.
    wait: u32,
}

/// The end that a packet goes to: that of the sender of connection n is 2n, the receiver's 2n + 1.
#[inline]
fn end_of<P>(packet: &Packet<P>) -> usize {
    packet.connection.0 as usize * 2 + usize::from(packet.direction == Direction::Forward)
}

impl<B: Body> Network<B> {
    /// Takes a packet that has crossed the last link before an end: now, or when it arrives.
    #[inline(never)]
    pub(super) fn run_ahead(&mut self, id: PacketId, at: Instant) {
        let end = end_of(&self.fabric.pool[id]);
        if self.fabric.approaching[end].packets > 0 || !self.takes_ahead(end, id, at) {
            self.fabric.approach(id, at);
        }
    }

    /// Lets an end take a packet that arrives at `at`. Returns `false` if it has to wait until then.
    #[expect(
        clippy::inline_always,
        reason = "measured: nearly all calls are in `run_ahead`"
    )]
    #[inline(always)]
    fn takes_ahead(&mut self, end: usize, id: PacketId, at: Instant) -> bool {
        let place = end / 2;
        let Some([sender, receiver]) = self.agents.get(place * 2..place * 2 + 2) else {
            return false;
        };
        let conn = &self.connections[place];
        if at >= self.fabric.ahead_until || at > sender.stop {
            return false;
        }
        if end.is_multiple_of(2) {
            return sender.is_hot
                && at <= sender.hot_deadline(true)
                && conn.size == u64::MAX
                && self.acknowledge(place, id, at);
        }
        let size = u64::from(self.fabric.pool[id].size);
        receiver.is_hot
            && at <= receiver.hot_deadline(false)
            && conn.delivered.saturating_add(size) < conn.size
            && self.receive(place, id, at)
    }

    #[cold]
    #[inline(never)]
    fn takes_later(&mut self, end: usize, id: PacketId, at: Instant) -> bool {
        self.takes_ahead(end, id, at)
    }

    /// A packet arrives that its end did not take ahead.
    #[inline(never)]
    pub(super) fn finish_approach(&mut self, id: PacketId) {
        let end = end_of(&self.fabric.pool[id]);
        let approaching = &mut self.fabric.approaching[end];
        approaching.packets -= 1;
        approaching.wait = approaching.wait.saturating_sub(1);
        let tries = approaching.wait == 0 && approaching.packets > 0;
        self.reach_end(id);
        if tries && self.agents[end].is_hot {
            self.catch_up(end);
        }
    }

    /// Lets an end take all packets on the last link.
    #[cold]
    fn catch_up(&mut self, end: usize) {
        for (at, id) in self.fabric.approaching_packets(end) {
            // Its entry in the ring stays, and keeps the slot.
            let copy = self.fabric.pool[id].clone();
            let ahead = self.fabric.pool.insert(copy);
            if !self.takes_later(end, ahead, at) {
                self.fabric.pool[ahead].trail = Trail::default();
                self.fabric.pool.free(ahead);
                break;
            }
            self.fabric.pass(end, id);
        }
        // An attempt reads a whole ring.
        let approaching = &mut self.fabric.approaching[end];
        approaching.wait = approaching.packets / 2;
    }
}

impl<B: Body> Fabric<B> {
    /// Schedules the arrival of a packet at an end that does not run ahead now.
    pub(super) fn approach(&mut self, id: PacketId, at: Instant) {
        let packet = &self.pool[id];
        let (Target::Plain(link) | Target::Folded(link)) = self.routes[packet.hop as usize - 1]
        else {
            unreachable!("the link before an end that may run ahead is plain")
        };
        let approaching = &mut self.approaching[end_of(packet)];
        approaching.packets += 1;
        approaching.link = link;
        let LinkSlot { ring, own_ring, .. } = self.links[link as usize];
        self.propagate(link as usize, ring, own_ring, id, at);
    }

    /// The packets that approach an end, in order.
    fn approaching_packets(&self, end: usize) -> Vec<(Instant, PacketId)> {
        let link = self.approaching[end].link;
        let LinkSlot { ring, own_ring, .. } = self.links[link as usize];
        let own = (own_ring != ring).then_some(own_ring);
        let mut packets: Vec<_> = [Some(ring), own]
            .into_iter()
            .flatten()
            .flat_map(|ring| self.rings[ring as usize].iter())
            .filter(|entry| entry.link() == link)
            .map(|entry| (entry.at, entry.packet()))
            .filter(|(_, id)| {
                end_of(&self.pool[*id]) == end && self.target(*id) == Target::EndAhead
            })
            .collect();
        packets.sort_by_key(|(at, _)| *at);
        packets
    }

    /// The end has taken the packet `id`: its event finds nothing.
    fn pass(&mut self, end: usize, id: PacketId) {
        self.approaching[end].packets -= 1;
        let packet = &mut self.pool[id];
        packet.trail = Trail::default();
        packet.hop = PASSED;
    }
}
