//! Ends that run ahead.
//!
//! The last link before an end computes when a packet will arrive. If nothing else can happen to the
//! end before, it takes the packet at once, which saves an event:
//! - the packets of its connection reach it over that link in order, and none is still to arrive;
//! - no timer of it is due before;
//! - its state is not read before: the run continues beyond the arrival, and the transfer does not
//!   end. Data that fills a gap may deliver more than its own octets, so a finite transfer with a gap
//!   waits. A retransmission is compared with a receiver that may be ahead: it counts as spurious now
//!   and not when the original arrives, and the sum is read later;
//! - no router reports to it, and the first link of the packets that it sends has no other user:
//!   that link can be computed ahead too.
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
    agent::low_half,
    fabric::{Fabric, PASSED, Target},
};

/// An end looks for its packets in rings of at most this many entries for each packet sent later.
const MOST_READ: usize = 16;

/// The packets to come at an end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Approach {
    /// When the last packet on the last link arrives; one that is taken ahead does not count. Set
    /// where the arrival is scheduled.
    pub(super) last: Instant,
    /// The next packet may take the hot path ([`super::hot`]).
    pub(super) is_hot: bool,
    /// Arrivals until the end tries to take all packets together.
    wait: u32,
}

impl Default for Approach {
    fn default() -> Self {
        Self {
            last: Instant::START,
            is_hot: false,
            wait: 0,
        }
    }
}

impl Approach {
    /// Whether a packet that crosses the last link now may be taken ahead: the end is hot, and no
    /// earlier packet is still to arrive. One that arrives now counts as still to arrive.
    #[inline]
    pub(super) fn may_run_ahead(&self, now: Instant) -> bool {
        self.is_hot && self.last < now
    }
}

/// The end that a packet goes to: that of the sender of connection n is 2n, the receiver's 2n + 1.
#[inline]
pub(super) fn end_of<P>(packet: &Packet<P>) -> usize {
    packet.connection.0 as usize * 2 + usize::from(packet.direction == Direction::Forward)
}

impl<B: Body> Network<B> {
    /// Takes a packet that has crossed the last link before an end: now, or when it arrives.
    #[inline(never)]
    pub(super) fn run_ahead(&mut self, id: PacketId, at: Instant) {
        let end = end_of(&self.fabric.pool[id]);
        if !self.takes_ahead(end, id, at) {
            self.fabric.approach(end, id, at);
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
        // The stop matters at its own instant, after which the state is read only later.
        if at >= self.fabric.ahead_until || at > sender.stop {
            return false;
        }
        if end.is_multiple_of(2) {
            debug_assert_eq!(conn.size, u64::MAX, "the stream of a hot sender is open");
            return at <= sender.hot_deadline(true) && self.acknowledge(place, id, at);
        }
        let size = u64::from(self.fabric.pool[id].size);
        at <= receiver.hot_deadline(false)
            && conn.delivered.saturating_add(size) < conn.size
            && (conn.size == u64::MAX || !receiver.has_gaps())
            && self.receive(place, id, at)
    }

    /// [`Self::takes_ahead`], out of line.
    #[cold]
    #[inline(never)]
    fn takes_ahead_rarely(&mut self, end: usize, id: PacketId, at: Instant) -> bool {
        self.takes_ahead(end, id, at)
    }

    /// A packet arrives that its end did not take ahead.
    #[inline(never)]
    pub(super) fn finish_approach(&mut self, id: PacketId) {
        let end = end_of(&self.fabric.pool[id]);
        let approach = &mut self.fabric.ends[end];
        let more = approach.last > self.fabric.now;
        let tries = approach.wait == 0;
        approach.wait = approach.wait.saturating_sub(1);
        let rest = (more && tries).then(|| {
            let packet = &self.fabric.pool[id];
            let sent = self.connections[end / 2].next_index[packet.direction as usize];
            (
                self.fabric.last_link(id),
                low_half(sent).wrapping_sub(packet.index),
            )
        });
        self.reach_end(id);
        // A search reads all entries of the rings, including entries of other flows.
        if let Some((link, later)) = rest
            && self.fabric.ends[end].is_hot
            && self.fabric.approaching(link) <= MOST_READ * later as usize
        {
            self.catch_up(end, link);
        }
    }

    /// Lets an end take all packets on the last link.
    #[cold]
    fn catch_up(&mut self, end: usize, link: u32) {
        let packets = self.fabric.approaching_packets(end, link);
        let mut left = packets.len();
        for (at, id) in packets {
            if !self.fabric.ends[end].is_hot {
                break;
            }
            // Its entry in the ring stays, and keeps the slot.
            let copy = self.fabric.pool[id].clone();
            let ahead = self.fabric.pool.insert(copy);
            if !self.takes_ahead_rarely(end, ahead, at) {
                self.fabric.pool[ahead].trail = Trail::default();
                self.fabric.pool.free(ahead);
                break;
            }
            self.fabric.pass(id);
            left -= 1;
        }
        let approach = &mut self.fabric.ends[end];
        if left == 0 {
            approach.last = Instant::START;
        }
        // An attempt reads a whole ring.
        approach.wait = u32::try_from(left / 2).unwrap_or(u32::MAX);
    }
}

impl<B: Body> Fabric<B> {
    /// Schedules the arrival of a packet at an end that does not run ahead now.
    pub(super) fn approach(&mut self, end: usize, id: PacketId, at: Instant) {
        self.ends[end].last = at;
        let link = self.last_link(id);
        let ring = self.links[link as usize].ring;
        self.propagate(link as usize, ring, id, at);
    }

    /// The link that a packet has crossed last.
    fn last_link(&self, id: PacketId) -> u32 {
        match self.routes[self.pool[id].hop as usize - 1] {
            Target::Plain(link) | Target::Folded(link) => link,
            _ => unreachable!("the link before an end that may run ahead is plain"),
        }
    }

    /// Number of packets in the rings of `link`.
    fn approaching(&self, link: u32) -> usize {
        let rings = self.links[link as usize].rings();
        rings.map(|ring| self.rings[ring as usize].len()).sum()
    }

    /// The packets on `link` that approach an end, in order.
    fn approaching_packets(&self, end: usize, link: u32) -> Vec<(Instant, PacketId)> {
        let mut packets: Vec<_> = self.links[link as usize]
            .rings()
            .flat_map(|ring| self.rings[ring as usize].iter())
            .map(|entry| (entry.at, entry.packet()))
            .filter(|(_, id)| {
                end_of(&self.pool[*id]) == end && self.target(*id) == Target::EndAhead
            })
            .collect();
        packets.sort_by_key(|(at, _)| *at);
        packets
    }

    /// The end has taken the packet `id`: its event finds nothing.
    fn pass(&mut self, id: PacketId) {
        let packet = &mut self.pool[id];
        packet.trail = Trail::default();
        packet.hop = PASSED;
    }
}
