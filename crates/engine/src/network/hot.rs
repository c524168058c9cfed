//! The hot path of a packet that reaches an end of our TCP: see
//! [`anabranch_tcp::endpoint`]'s hot path.
//!
//! Each agent keeps whether its endpoint is hot, judged after every other event. A hot packet's slot
//! is turned in place: data becomes its acknowledgment, and an acknowledgment becomes the next data.

use anabranch_core::{
    body::Body,
    packet::{Direction, Ecn, Packet, PacketId},
    trace::Fate,
    units::Instant,
};
use anabranch_tcp::{HotData, HotSend};
use anabranch_wire::Transport;

use super::{
    Network,
    agent::{AgentSlot, App, End, Way, address, blank, segment_in},
    connection::Connection,
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

    /// When a timer of a hot end is due.
    #[inline]
    pub(super) fn hot_deadline(&self) -> Instant {
        match &self.end {
            End::Tcp(endpoint, _) => endpoint.deadline(),
            _ => Instant::NEVER,
        }
    }
}

/// A packet that arrives at an end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arriving {
    pub(super) id: PacketId,
    /// The agent.
    pub(super) index: usize,
    /// The packet's number in its direction.
    pub(super) number: u64,
    /// Now, or later if the receiver runs ahead.
    pub(super) at: Instant,
}

/// Work left after a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// The packet is left to the general path.
    All,
    /// The end sends on the general path.
    Sending,
    /// A data packet was delivered.
    Delivery,
    /// A data packet was delivered, and the transfer is complete.
    Completion,
    /// None.
    Nothing,
}

impl<B: Body> Network<B> {
    /// Does the rest of the work after a packet of the hot path.
    #[inline]
    pub(super) fn after_hot(&mut self, rest: Rest, arriving: Arriving) {
        match rest {
            Rest::Delivery => self.delivered_packets += 1,
            Rest::Completion => {
                self.delivered_packets += 1;
                self.transfer_is_complete(arriving.index / 2);
            }
            Rest::Sending => self.after_agent(arriving.index),
            Rest::All | Rest::Nothing => {}
        }
    }
}

/// Passes a packet to a hot end: `reach_end` and `after_agent`.
#[inline]
pub(super) fn arrive<B: Body>(
    fabric: &mut Fabric<B>,
    slot: &mut AgentSlot<B>,
    conn: &mut Connection,
    arriving: Arriving,
    forward: bool,
) -> Rest {
    if !forward {
        acknowledge(fabric, slot, conn, arriving)
    } else if conn.has_resent_after(arriving.number) {
        Rest::All
    } else {
        receive(fabric, slot, conn, arriving)
    }
}

/// Passes an acknowledgment to the sender, which sends data in its place.
#[inline]
fn acknowledge<B: Body>(
    fabric: &mut Fabric<B>,
    slot: &mut AgentSlot<B>,
    conn: &mut Connection,
    Arriving { id, index, at, .. }: Arriving,
) -> Rest {
    let End::Tcp(endpoint, _) = &mut slot.end else {
        return Rest::All;
    };
    let packet = &mut fabric.pool[id];
    let Transport::Tcp(segment) = &packet.payload else {
        return Rest::All;
    };
    if !endpoint.hot_ack(at, segment, packet.ecn) {
        return Rest::All;
    }
    let connection = packet.connection;
    fabric
        .probe
        .observe(at, slot.element, packet, Fate::Received);
    fabric.probe.close(packet);
    let mut way = Way {
        fabric,
        connection,
        direction: Direction::Forward,
        element: slot.element,
    };
    let mut place = Some(id);
    loop {
        let id = place
            .take()
            .unwrap_or_else(|| way.fabric.pool.reserve(blank));
        let packet = &mut way.fabric.pool[id];
        match endpoint.hot_send(at, segment_of(packet)) {
            HotSend::Sent(size) => way.dispatch(conn, id, (size, at)),
            HotSend::SentLast(size) => {
                way.dispatch(conn, id, (size, at));
                break;
            }
            HotSend::Full => {
                way.fabric.pool.free(id);
                break;
            }
            HotSend::NotHot => {
                way.fabric.pool.free(id);
                return Rest::Sending;
            }
        }
    }
    conn.sender.update(at, endpoint.cwnd(), endpoint.srtt());
    if endpoint.hot_deadline() < slot.armed {
        slot.arm_timer(index, fabric);
    }
    Rest::Nothing
}

/// Passes data to the receiver, which may answer in its place.
#[inline]
fn receive<B: Body>(
    fabric: &mut Fabric<B>,
    slot: &mut AgentSlot<B>,
    conn: &mut Connection,
    Arriving {
        id,
        index,
        number,
        at,
    }: Arriving,
) -> Rest {
    let End::Tcp(endpoint, _) = &mut slot.end else {
        return Rest::All;
    };
    let packet = &mut fabric.pool[id];
    let (connection, size, ecn) = (packet.connection, packet.size, packet.ecn);
    let Transport::Tcp(segment) = &mut packet.payload else {
        return Rest::All;
    };
    let done = endpoint.hot_data(at, segment, ecn);
    if done == HotData::NotHot {
        return Rest::All;
    }
    fabric
        .probe
        .observe(at, slot.element, packet, Fate::Received);
    // A reordered packet is recorded only in a log.
    conn.receiver.on_packet(at, number, size);
    let complete = conn.note_delivery(at, endpoint.stats().delivered_bytes);
    if let HotData::Answered(size) = done {
        fabric.probe.close(packet);
        let mut way = Way {
            fabric,
            connection,
            direction: Direction::Reverse,
            element: slot.element,
        };
        way.dispatch(conn, id, (size, at));
    } else {
        fabric.free(id);
        slot.arm_timer(index, fabric);
    }
    if complete {
        Rest::Completion
    } else {
        Rest::Delivery
    }
}

impl<B: Body> Way<'_, B> {
    /// Sends the packet `id`, whose segment is written: `Way::send_segment`.
    #[inline]
    fn dispatch(&mut self, conn: &mut Connection, id: PacketId, (size, at): (u32, Instant)) {
        let packet = &mut self.fabric.pool[id];
        packet.size = size;
        packet.ecn = Ecn::NotEct;
        packet.dscp = conn.dscp;
        packet.retransmission = false;
        let hop = address(packet, conn, self.connection, self.direction);
        self.fabric
            .probe
            .observe(at, self.element, packet, Fate::Sent);
        match self.fabric.routes[hop as usize] {
            Target::Plain(index) | Target::Folded(index) => {
                self.fabric.enter_plain(index as usize, id, at);
            }
            // Only receivers behind a plain link run ahead.
            _ => self.fabric.enter_route(id, hop),
        }
    }
}

fn segment_of<B: Body>(packet: &mut Packet<Transport<B>>) -> &mut anabranch_wire::Segment<B> {
    match &mut packet.payload {
        Transport::Tcp(segment) => segment,
        other => segment_in(other),
    }
}
