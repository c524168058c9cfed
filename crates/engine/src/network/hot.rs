//! The hot path of a packet that reaches an end of our TCP: see
//! [`anabranch_tcp::endpoint`]'s hot path.
//!
//! Each agent keeps whether its endpoint is hot, judged after every other event. A hot packet's slot
//! is turned in place: data becomes its acknowledgment, and an acknowledgment becomes the next data.

use anabranch_core::{
    body::Body,
    packet::{Direction, Ecn, Packet, PacketId},
    trace::{ElementId, Fate},
    units::Instant,
};
use anabranch_tcp::{HotData, HotSend};
use anabranch_wire::Transport;

use super::{
    Network,
    agent::{AgentSlot, End, address, blank, octets_of, segment_in},
    ahead::end_of,
    application::App,
    fabric::{Fabric, Target},
};

impl<B: Body> AgentSlot<B> {
    /// Whether the next packet may take the hot path. `sends`: the end is the sender of its flow's
    /// data.
    #[inline]
    pub(super) fn is_hot_now(&self, sends: bool) -> bool {
        match &self.end {
            End::Tcp(endpoint, App::Finished) if sends => endpoint.is_hot_sender(),
            End::Tcp(endpoint, App::Finished | App::Sink) if !sends => endpoint.is_hot_receiver(),
            _ => false,
        }
    }

    /// When a timer of a hot end is due. `sends`: it is the sender.
    #[inline]
    pub(super) fn hot_deadline(&self, sends: bool) -> Instant {
        let End::Tcp(endpoint, _) = &self.end else {
            return Instant::NEVER;
        };
        let due = if sends {
            endpoint.hot_sender_deadline()
        } else {
            endpoint.hot_receiver_deadline()
        };
        debug_assert_eq!(due, endpoint.deadline(), "no other timer runs");
        due
    }
}

impl<B: Body> Network<B> {
    /// Delivers a packet to the far end of its route.
    #[inline]
    pub(super) fn reach_end(&mut self, id: PacketId) {
        if !self.fabric.hot_permitted || !self.reach_hot_end(id) {
            self.reach_any_end(id);
        }
    }

    /// Passes a packet to its end if that is hot. Returns `false` if it is left to the general path.
    #[inline]
    fn reach_hot_end(&mut self, id: PacketId) -> bool {
        let packet = &self.fabric.pool[id];
        let place = packet.connection.0 as usize;
        let forward = packet.direction == Direction::Forward;
        // The sender's end of connection n is 2n, the receiver's 2n + 1.
        let index = place * 2 + usize::from(forward);
        self.fabric.ends[index].is_hot
            && if forward {
                self.receive_now(place, id)
            } else {
                self.acknowledge(place, id, self.fabric.now)
            }
    }

    /// Passes an acknowledgment that arrives at `at` to the hot sender of the connection at `place`,
    /// which sends data in its place: `reach_any_end` and `after_agent`. Returns `false` if it is
    /// left to them.
    #[inline(never)]
    pub(super) fn acknowledge(&mut self, place: usize, id: PacketId, at: Instant) -> bool {
        let index = place * 2;
        let Self {
            fabric,
            agents,
            connections,
            ..
        } = self;
        let (slot, conn) = (&mut agents[index], &mut connections[place]);
        let packet = &mut fabric.pool[id];
        let number = conn.number(Direction::Reverse, packet.index);
        let (End::Tcp(endpoint, _), Transport::Tcp(segment)) = (&mut slot.end, &packet.payload)
        else {
            return false;
        };
        if conn.is_stale(Direction::Reverse, number) {
            return false;
        }
        if !endpoint.hot_ack(at, segment, packet.ecn) {
            return self.acknowledge_otherwise(place, id, at);
        }
        let connection = packet.connection;
        fabric
            .probe
            .observe(at, slot.element, packet, Fate::Received);
        fabric.probe.close(packet);
        let mut id = id;
        loop {
            let packet = &mut fabric.pool[id];
            let sent = endpoint.hot_send(at, segment_of(packet));
            let (HotSend::Sent(size) | HotSend::SentLast(size)) = sent else {
                fabric.pool.free(id);
                if sent == HotSend::NotHot {
                    let now = std::mem::replace(&mut self.fabric.now, at);
                    self.after_agent(index);
                    self.fabric.now = now;
                    return true;
                }
                break;
            };
            packet.size = size;
            let hop = address(packet, conn, connection, Direction::Forward);
            fabric.dispatch(conn.dscp, slot.element, (id, hop, at));
            if sent == HotSend::SentLast(size) {
                break;
            }
            id = fabric.pool.reserve(blank);
        }
        conn.sender.update(at, endpoint.cwnd(), endpoint.srtt());
        if endpoint.hot_sender_deadline() < slot.armed {
            slot.arm_timer(index, fabric);
        }
        true
    }

    /// [`Self::receive`] at the event of the packet, out of line.
    #[inline(never)]
    fn receive_now(&mut self, place: usize, id: PacketId) -> bool {
        self.receive(place, id, self.fabric.now)
    }

    /// Passes data that arrives at `at` to the hot receiver of the connection at `place`, which may
    /// answer in its place: `reach_any_end` and `after_agent`. Returns `false` if it is left to
    /// them.
    #[expect(
        clippy::inline_always,
        reason = "measured: a call per packet costs 30 instructions"
    )]
    #[inline(always)]
    pub(super) fn receive(&mut self, place: usize, id: PacketId, at: Instant) -> bool {
        let index = place * 2 + 1;
        let Self {
            fabric,
            agents,
            connections,
            ..
        } = self;
        let (slot, conn) = (&mut agents[index], &mut connections[place]);
        let packet = &mut fabric.pool[id];
        let number = conn.number(Direction::Forward, packet.index);
        let (End::Tcp(endpoint, _), Transport::Tcp(segment)) = (&mut slot.end, &mut packet.payload)
        else {
            return false;
        };
        if conn.is_stale(Direction::Forward, number) {
            return false;
        }
        let resent = conn.has_resent_after(number);
        let octets = resent.then(|| octets_of(segment, endpoint.rcv_nxt()));
        let done = endpoint.hot_data(at, segment, packet.ecn);
        if done == HotData::NotHot {
            return false;
        }
        if let Some(octets) = octets {
            conn.note_arrival(&octets, number);
        }
        let delivered = endpoint.stats().delivered_bytes;
        fabric
            .probe
            .observe(at, slot.element, packet, Fate::Received);
        self.delivered_packets += 1;
        // A reordered packet is recorded only in a log.
        conn.receiver.on_packet(at, number, packet.size);
        let complete = conn.note_delivery(at, delivered);
        if let HotData::Answered(size) = done {
            fabric.probe.close(packet);
            packet.size = size;
            let connection = packet.connection;
            let hop = address(packet, conn, connection, Direction::Reverse);
            fabric.dispatch(conn.dscp, slot.element, (id, hop, at));
        } else {
            let due = endpoint.hot_receiver_deadline();
            fabric.free(id);
            if due < slot.armed {
                slot.arm_timer(index, fabric);
            }
        }
        if complete {
            self.transfer_is_complete(place);
        }
        true
    }
}

impl<B: Body> Fabric<B> {
    /// Sends a packet at `at` from the place `hop` of its route: `Way::send_segment`.
    #[inline(never)]
    fn dispatch(&mut self, dscp: u8, element: ElementId, (id, hop, at): (PacketId, u32, Instant)) {
        let packet = &mut self.pool[id];
        packet.ecn = Ecn::NotEct;
        packet.dscp = dscp;
        packet.retransmission = false;
        self.probe.observe(at, element, packet, Fate::Sent);
        match self.routes[hop as usize] {
            Target::Plain(index) | Target::Folded(index) => {
                let arrives = self.cross_plain_inline(index as usize, id, at);
                if arrives != Instant::NEVER {
                    self.approach(end_of(&self.pool[id]), id, arrives);
                }
            }
            _ => {
                debug_assert_eq!(
                    at, self.now,
                    "the first link of an end that runs ahead is plain"
                );
                self.enter_route(id, hop);
            }
        }
    }
}

fn segment_of<B: Body>(packet: &mut Packet<Transport<B>>) -> &mut anabranch_wire::Segment<B> {
    match &mut packet.payload {
        Transport::Tcp(segment) => segment,
        other => segment_in(other),
    }
}
