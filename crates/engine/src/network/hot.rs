//! The hot path of a packet that reaches an end of our TCP: see
//! [`anabranch_tcp::endpoint`]'s hot path.
//!
//! Each agent keeps whether its endpoint is hot, judged after every other event. A hot packet's slot
//! is turned in place: data becomes its acknowledgment, and an acknowledgment becomes the next data.

use anabranch_core::{
    body::Body,
    packet::{Direction, Ecn, Packet, PacketId},
    trace::Fate,
};
use anabranch_tcp::{Endpoint, HotData, HotSend};
use anabranch_wire::Transport;

use super::{
    agent::{AgentSlot, App, End, Way, address, blank, segment_in},
    connection::Connection,
    fabric::Fabric,
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
}

/// Work left after a hot packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// The packet is left to the general path.
    All,
    /// The end sends on the general path.
    Sending,
    /// The transfer is complete.
    Completion,
    /// None.
    Nothing,
}

/// Passes the acknowledgment `id` to the sender, which sends data in its place.
#[inline]
pub(super) fn acknowledge<B: Body>(
    fabric: &mut Fabric<B>,
    slot: &mut AgentSlot<B>,
    conn: &mut Connection,
    (index, id): (usize, PacketId),
) -> Rest {
    let End::Tcp(endpoint, _) = &mut slot.end else {
        return Rest::All;
    };
    let now = fabric.now;
    let packet = &mut fabric.pool[id];
    let Transport::Tcp(segment) = &packet.payload else {
        return Rest::All;
    };
    if !endpoint.hot_ack(now, segment, packet.ecn) {
        return Rest::All;
    }
    let connection = packet.connection;
    fabric.probe.close(packet);
    let mut way = Way {
        fabric,
        connection,
        direction: Direction::Forward,
        element: slot.element,
    };
    let mut rest = Rest::Nothing;
    let mut place = Some(id);
    loop {
        let id = place
            .take()
            .unwrap_or_else(|| way.fabric.pool.reserve(blank));
        match send(&mut way, conn, endpoint, id) {
            HotSend::Sent(_) => {}
            HotSend::SentLast(_) => break,
            done => {
                way.fabric.pool.free(id);
                if done == HotSend::NotHot {
                    rest = Rest::Sending;
                }
                break;
            }
        }
    }
    if rest == Rest::Sending {
        return rest;
    }
    conn.sender.update(now, endpoint.cwnd(), endpoint.srtt());
    if endpoint.hot_deadline() < slot.armed {
        slot.arm_timer(index, fabric);
    }
    rest
}

/// `Way::send_segment`
#[inline]
fn send<B: Body>(
    way: &mut Way<'_, B>,
    conn: &mut Connection,
    endpoint: &mut Endpoint<B>,
    id: PacketId,
) -> HotSend {
    let now = way.fabric.now;
    let packet = &mut way.fabric.pool[id];
    let sent = endpoint.hot_send(now, segment_of(packet));
    if let HotSend::Sent(size) | HotSend::SentLast(size) = sent {
        way.dispatch(conn, id, size);
    }
    sent
}

/// Passes the data `id` to the receiver, which may answer in its place.
#[inline]
pub(super) fn receive<B: Body>(
    fabric: &mut Fabric<B>,
    slot: &mut AgentSlot<B>,
    conn: &mut Connection,
    (index, id): (usize, PacketId),
) -> Rest {
    let End::Tcp(endpoint, _) = &mut slot.end else {
        return Rest::All;
    };
    let now = fabric.now;
    let packet = &mut fabric.pool[id];
    let (connection, ecn) = (packet.connection, packet.ecn);
    let Transport::Tcp(segment) = &mut packet.payload else {
        return Rest::All;
    };
    // The trail is closed under the name of the data.
    let done = endpoint.hot_data(now, segment, ecn);
    match done {
        HotData::NotHot => return Rest::All,
        HotData::Waits => {
            fabric.free(id);
            slot.arm_timer(index, fabric);
        }
        HotData::Answered(size) => {
            fabric.probe.close(packet);
            let mut way = Way {
                fabric,
                connection,
                direction: Direction::Reverse,
                element: slot.element,
            };
            way.dispatch(conn, id, size);
        }
    }
    let End::Tcp(endpoint, _) = &slot.end else {
        return Rest::Nothing;
    };
    if conn.note_delivery(now, endpoint.stats().delivered_bytes) {
        Rest::Completion
    } else {
        Rest::Nothing
    }
}

impl<B: Body> Way<'_, B> {
    /// Sends the packet `id`, whose segment is written: `Way::send_segment`.
    #[inline]
    fn dispatch(&mut self, conn: &mut Connection, id: PacketId, size: u32) {
        let packet = &mut self.fabric.pool[id];
        packet.size = size;
        packet.ecn = Ecn::NotEct;
        packet.dscp = conn.dscp;
        packet.retransmission = false;
        let hop = address(packet, conn, self.connection, self.direction);
        self.fabric
            .probe
            .observe(self.fabric.now, self.element, packet, Fate::Sent);
        self.fabric.enter_route(id, hop);
    }
}

fn segment_of<B: Body>(packet: &mut Packet<Transport<B>>) -> &mut anabranch_wire::Segment<B> {
    match &mut packet.payload {
        Transport::Tcp(segment) => segment,
        other => segment_in(other),
    }
}
