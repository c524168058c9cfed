//! Endpoints: our TCP with an application, UDP, or a host supplied by the caller.

use std::ops::Range;

use anabranch_core::{
    body::Body,
    packet::{ConnectionId, Direction, Ecn, FlowId, Packet, PacketId, WaitAccount},
    reordering::Arrival,
    trace::{ElementId, Fate},
    trail::Trail,
    tunnel::Header,
    units::Instant,
};
use anabranch_fec::{self as fec};
use anabranch_path::host::{Arrived, Departing, Host};
use anabranch_tcp::{Endpoint, RetransmitCause, State};
use anabranch_wire::{Flags, Segment, Seq, Transport, seq::near};

use super::{
    Network,
    application::{App, drive, drive_rarely, stop},
    connection::Connection,
    datagrams::UdpEnd,
    fabric::Fabric,
};
use crate::{
    event_queue::{Class, Entry, Source},
    record::Probe,
};

/// One end of a connection.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all of them are the large one, and a box would cost a look-up per packet"
)]
pub enum End<B: Body> {
    /// Our TCP.
    Tcp(Endpoint<B>, App),
    /// Our TCP inside a layer of error correction.
    Protected(Box<fec::Protected<B>>, App),
    /// An end of a UDP flow.
    Udp(Box<UdpEnd>),
    /// A user's stack.
    Host(Box<dyn Host<B>>),
    /// Free for a later connection.
    Vacant,
}

/// The other variants are handled out of line, so that one comparison identifies our bare TCP.
impl<B: Body> End<B> {
    /// Our TCP and its application, with or without error correction.
    pub(super) fn tcp(&self) -> Option<(&Endpoint<B>, &App)> {
        match self {
            Self::Tcp(endpoint, app) => Some((endpoint, app)),
            Self::Protected(layer, app) => Some((layer.tcp(), app)),
            _ => None,
        }
    }
    /// The same, mutable.
    pub(super) fn tcp_mut(&mut self) -> Option<(&mut Endpoint<B>, &mut App)> {
        match self {
            Self::Tcp(endpoint, app) => Some((endpoint, app)),
            Self::Protected(layer, app) => Some((layer.tcp_mut(), app)),
            _ => None,
        }
    }

    /// The time of its next timer.
    #[inline(never)]
    fn timer(&self) -> Instant {
        match self {
            Self::Tcp(endpoint, _) => endpoint.deadline(),
            Self::Protected(layer, _) => layer.deadline(),
            Self::Udp(end) => end.timer(),
            Self::Host(host) => host.timer().unwrap_or(Instant::NEVER),
            Self::Vacant => Instant::NEVER,
        }
    }

    /// Processes a packet at an end other than our bare TCP; `number` counts within its transfer.
    #[inline(never)]
    fn on_packet(
        &mut self,
        now: Instant,
        packet: &Packet<Transport<B>>,
        (number, arrival): (u64, Option<Arrival>),
    ) {
        match self {
            Self::Protected(layer, _) => layer.on_packet(now, &packet.payload, packet.ecn),
            Self::Udp(end) => {
                let len = packet.payload.payload_len();
                end.on_datagram(now, number, len, arrival);
            }
            Self::Host(host) => {
                let arrived = Arrived {
                    transport: &packet.payload,
                    ecn: packet.ecn,
                    dscp: packet.dscp,
                };
                host.on_packet(now, arrived);
            }
            Self::Tcp(..) | Self::Vacant => {}
        }
    }

    /// Whether the receiver did not accept the packet in order, or may have rebuilt other octets
    /// from it.
    #[inline]
    fn is_to_be_noted(&self, packet: &Packet<Transport<B>>) -> bool {
        match (&packet.payload, self) {
            (Transport::Tcp(segment), Self::Tcp(endpoint, _)) => is_beyond(segment, endpoint),
            (Transport::Tcp(segment), Self::Protected(layer, _)) => is_beyond(segment, layer.tcp()),
            (Transport::Redundant(_), Self::Protected(..)) => true,
            _ => false,
        }
    }

    /// Records the octets that the packet `number` has just brought to this end.
    #[cold]
    #[inline(never)]
    fn note_arrival(
        &self,
        probe: &mut Probe,
        packet: &Packet<Transport<B>>,
        (conn, number): (&mut Connection, u64),
    ) {
        let forward = packet.direction == Direction::Forward;
        let Some((endpoint, _)) = self.tcp() else {
            return;
        };
        match (&packet.payload, self) {
            (Transport::Tcp(segment), _) => {
                let mut octets = octets_of(segment, endpoint.rcv_nxt());
                if let Some(missing) = endpoint.missing(octets.clone()).first() {
                    let refused = octets.end.since(missing.start);
                    probe.refused(packet, u32::try_from(refused).unwrap_or(u32::MAX));
                    octets.end = missing.start;
                }
                if forward {
                    conn.note_arrival(&octets, number);
                }
            }
            (Transport::Redundant(_), Self::Protected(layer, _)) => {
                let (_, irs) = endpoint.initial_numbers();
                let first = Seq::first(irs);
                for octets in layer.repaired() {
                    probe.rebuilt(packet, (octets.start.since(first), octets.end.since(first)));
                    if forward {
                        // They count as the first transmission, which precedes any retransmission.
                        conn.note_arrival(octets, 0);
                    }
                }
            }
            _ => {}
        }
    }

    /// Sends the packets of an end other than our bare TCP, and sets `wake` to the time at which
    /// its application continues. Returns whether a transfer is complete.
    #[inline(never)]
    fn send(&mut self, way: &mut Way<'_, B>, conn: &mut Connection, wake: &mut Instant) -> bool {
        let now = way.fabric.now;
        let delivered = match self {
            Self::Protected(layer, app) => {
                drive_rarely(layer.tcp_mut(), app, now, wake);
                while let Some(out) = layer.poll_transmit(now) {
                    way.send_protected(conn, out, layer.tcp());
                }
                let endpoint = layer.tcp();
                if way.direction == Direction::Forward {
                    conn.sender.update(now, endpoint.cwnd(), endpoint.srtt());
                }
                endpoint.stats().delivered_bytes
            }
            Self::Udp(end) => {
                while let Some((offset, out)) = end.poll_transmit(now) {
                    way.send(conn, out, offset);
                }
                end.delivered_bytes()
            }
            Self::Host(host) => {
                while let Some(out) = host.poll_transmit(now) {
                    way.send(conn, out, 0);
                }
                host.delivered_bytes()
            }
            Self::Tcp(..) | Self::Vacant => return false,
        };
        way.direction == Direction::Reverse && conn.note_delivery(now, delivered)
    }
}

#[derive(Debug)]
pub(super) struct AgentSlot<B: Body> {
    pub(super) end: End<B>,
    pub(super) element: ElementId,
    /// The timer in the event queue.
    pub(super) armed: Instant,
    /// The start of the flow, then the time at which a scripted application continues;
    /// [`Instant::NEVER`] if there is none, as for the far end.
    pub(super) start: Instant,
    /// The time at which the application stops.
    pub(super) stop: Instant,
}

impl<B: Body> AgentSlot<B> {
    /// A slot without an end.
    pub(super) fn vacant(element: ElementId) -> Self {
        Self {
            end: End::Vacant,
            element,
            armed: Instant::NEVER,
            start: Instant::NEVER,
            stop: Instant::NEVER,
        }
    }
    #[inline]
    fn deadline(&self) -> Instant {
        let inner = match &self.end {
            End::Tcp(endpoint, _) => endpoint.deadline(),
            other => other.timer(),
        };
        inner.min(self.start).min(self.stop)
    }

    /// Pushes the timer into the event queue unless an earlier one is already there.
    #[expect(
        clippy::inline_always,
        reason = "measured: most often nothing is to be done"
    )]
    #[inline(always)]
    pub(super) fn arm_timer(&mut self, index: usize, fabric: &mut Fabric<B>) {
        // An overdue deadline is due now.
        let due = self.deadline().max(fabric.now);
        if due < self.armed {
            self.armed = due;
            fabric.push_timer(Entry::new(due, Source::new(Class::AgentTimer, index)));
        }
    }

    /// Whether it is waiting for a SYN: before the first one, or after an abandoned attempt.
    pub(super) fn listens(&self) -> bool {
        let tcp = self.end.tcp();
        tcp.is_some_and(|(endpoint, _)| endpoint.state() == State::Listen)
    }

    /// Whether both directions are closed, so that no further activity follows.
    pub(super) fn is_over(&self) -> bool {
        match &self.end {
            End::Tcp(endpoint, _) => matches!(endpoint.state(), State::Closed | State::TimeWait),
            End::Protected(layer, _) => {
                matches!(layer.tcp().state(), State::Closed | State::TimeWait)
            }
            End::Udp(_) | End::Host(_) => false,
            End::Vacant => true,
        }
    }
}

impl<B: Body> Network<B> {
    /// Delivers a packet to the far end of its route, on the general path.
    #[inline(never)]
    pub(super) fn reach_any_end(&mut self, id: PacketId) {
        let Self {
            fabric,
            agents,
            connections,
            ..
        } = self;
        let packet = &mut fabric.pool[id];
        let place = packet.connection.0 as usize;
        let forward = packet.direction == Direction::Forward;
        let index = place * 2 + usize::from(forward);
        let slot = &mut agents[index];
        let conn = &mut connections[place];
        let number = conn.number(packet.direction, packet.index);
        fabric
            .probe
            .observe(fabric.now, slot.element, packet, Fate::Received);
        if conn.is_stale(packet.direction, number) {
            // A late packet of an ended transfer, whose place another transfer uses now.
            fabric.free(id);
            return;
        }
        let mut arrival = None;
        if forward {
            self.delivered_packets += u64::from(packet.payload.payload_len() > 0);
            arrival = conn.receiver.on_packet(fabric.now, number, packet.size);
            if let Some(arrival) = arrival.filter(|arrival| arrival.reordered) {
                fabric.probe.reordered(packet, arrival.extent);
            }
        }
        match &mut slot.end {
            End::Tcp(endpoint, _) => {
                if let Transport::Tcp(segment) = &packet.payload {
                    endpoint.on_segment(fabric.now, segment, packet.ecn);
                }
            }
            other => {
                let own = number - conn.first_index[packet.direction as usize];
                other.on_packet(fabric.now, packet, (own, arrival));
            }
        }
        if forward && conn.has_resent_after(number) || slot.end.is_to_be_noted(packet) {
            let probe = &mut fabric.probe;
            slot.end.note_arrival(probe, packet, (conn, number));
        }
        fabric.free(id);
        self.after_agent(index);
    }

    /// The number of a flow's first connection, by which queues identify its packets unless they
    /// carry a connection themselves ([`Body::connection`]).
    pub fn first_connection(&mut self, flow: FlowId) -> ConnectionId {
        match self.flows[flow.0 as usize].connection {
            Some(place) => self.fabric.identities[place as usize].connection,
            None => self.next_connection(flow),
        }
    }

    /// Returns an unused number for the next connection of a flow whose ends the caller supplies.
    pub fn next_connection(&mut self, flow: FlowId) -> ConnectionId {
        self.fabric.next_identity(flow).connection
    }

    /// Sends pending data of a flow's end supplied by the caller, now; the end at `from` for
    /// [`Direction::Forward`]. A driver calls it between events.
    pub fn wake(&mut self, flow: FlowId, end: Direction) {
        if let Some(connection) = self.flows[flow.0 as usize].connection {
            self.after_agent(connection as usize * 2 + end as usize);
            self.reach_all();
        }
    }

    pub(super) fn agent_timer(&mut self, index: usize) {
        let now = self.fabric.now;
        let slot = &mut self.agents[index];
        if slot.armed != now {
            return;
        }
        slot.armed = Instant::NEVER;
        if slot.deadline() > now {
            slot.arm_timer(index, &mut self.fabric);
            return;
        }
        self.fabric.events += 1;
        if slot.start <= now {
            slot.start = Instant::NEVER;
            match &mut slot.end {
                end @ (End::Tcp(..) | End::Protected(..)) => match end.tcp_mut() {
                    // The application's timer, not the flow's start: due work is done below.
                    Some((_, App::Scripted(script))) if script.has_begun() => {}
                    Some((_, App::Late(late))) if late.has_begun() => {}
                    Some((endpoint, _)) => {
                        if self.fabric.probe.logs() {
                            endpoint.keep_window_log();
                        }
                        endpoint.open(now);
                    }
                    None => {}
                },
                End::Udp(end) => end.start(),
                End::Host(host) => host.start(now),
                End::Vacant => {}
            }
        }
        if slot.stop <= now {
            slot.stop = Instant::NEVER;
            match &mut slot.end {
                end @ (End::Tcp(..) | End::Protected(..)) => {
                    if let Some((endpoint, app)) = end.tcp_mut() {
                        stop(endpoint, app, now, &mut slot.start);
                    }
                }
                End::Udp(end) => end.stop(),
                End::Host(_) | End::Vacant => {}
            }
        }
        match &mut slot.end {
            End::Tcp(endpoint, _) if endpoint.deadline() <= now => endpoint.on_deadline(now),
            End::Protected(layer, _) if layer.deadline() <= now => layer.on_deadline(now),
            End::Host(host) if host.timer().is_some_and(|due| due <= now) => host.on_timer(now),
            _ => {}
        }
        self.after_agent(index);
    }

    /// Sends the pending packets of an end, sets its timer, and updates its meters.
    #[inline]
    pub(super) fn after_agent(&mut self, index: usize) {
        let Self {
            fabric,
            agents,
            connections,
            ..
        } = self;
        let place = index / 2;
        let slot = &mut agents[index];
        let conn = &mut connections[place];
        let direction = if index.is_multiple_of(2) {
            Direction::Forward
        } else {
            Direction::Reverse
        };
        let mut way = Way {
            fabric,
            connection: connection_id(place),
            direction,
            element: slot.element,
        };
        let mut complete = false;
        match &mut slot.end {
            End::Tcp(endpoint, app) => {
                if !matches!(app, App::Finished) {
                    drive(endpoint, app, way.fabric.now, &mut slot.start);
                }
                while endpoint.may_transmit() && way.send_segment(conn, endpoint) {}
                let now = way.fabric.now;
                if direction == Direction::Forward {
                    conn.sender.update(now, endpoint.cwnd(), endpoint.srtt());
                } else {
                    complete = conn.note_delivery(now, endpoint.stats().delivered_bytes);
                }
            }
            other => complete = other.send(&mut way, conn, &mut slot.start),
        }
        slot.arm_timer(index, fabric);
        let is_hot = fabric.permits_hot() && slot.is_hot_now(direction == Direction::Forward);
        fabric.ends[index].is_hot = is_hot;
        if conn.has_fresh_resent()
            && let Some((receiver, _)) = agents[index ^ 1].end.tcp()
        {
            conn.compare_resent(receiver);
        }
        let of_workload = conn.spawner.is_some();
        if complete {
            self.transfer_is_complete(place);
        }
        if of_workload {
            self.retire_if_over(place);
        }
    }
}

/// The sending context of an end.
pub(super) struct Way<'a, B: Body> {
    pub(super) fabric: &'a mut Fabric<B>,
    pub(super) connection: ConnectionId,
    pub(super) direction: Direction,
    pub(super) element: ElementId,
}

impl<B: Body> Way<'_, B> {
    /// Sends the next segment of an endpoint, if any. The segment is written directly into the
    /// packet pool.
    #[expect(clippy::inline_always, reason = "measured: it is called in one loop")]
    #[inline(always)]
    pub(super) fn send_segment(
        &mut self,
        conn: &mut Connection,
        endpoint: &mut Endpoint<B>,
    ) -> bool {
        let id = self.fabric.pool.reserve(blank);
        let packet = &mut self.fabric.pool[id];
        let place = match &mut packet.payload {
            Transport::Tcp(segment) => segment,
            other => segment_in(other),
        };
        let Some(departure) = endpoint.poll_transmit_into(self.fabric.now, place) else {
            self.fabric.pool.free(id);
            return false;
        };
        packet.size = departure.size;
        packet.ecn = departure.ecn;
        packet.dscp = conn.dscp;
        packet.retransmission = departure.retransmission.is_some();
        if packet.retransmission && self.direction == Direction::Forward {
            note_retransmission(conn, &packet.payload, endpoint);
        }
        let hop = address(packet, conn, self.connection, self.direction);
        self.fabric
            .probe
            .observe(self.fabric.now, self.element, packet, Fate::Sent);
        if self.fabric.probe.logs() {
            self.log_sent(conn, id, 0, departure.retransmission);
        }
        self.fabric.enter_route(id, hop);
        true
    }

    /// Sends a packet of UDP or of a host supplied by the caller, after `offset` octets of the
    /// stream.
    fn send(&mut self, conn: &mut Connection, departing: Departing<B>, offset: u64) {
        let id = self.fabric.pool.insert(Packet {
            size: departing.size,
            ecn: departing.ecn,
            dscp: match departing.dscp {
                0 => conn.dscp,
                chosen => chosen,
            },
            payload: departing.transport,
            ..blank()
        });
        address(
            &mut self.fabric.pool[id],
            conn,
            self.connection,
            self.direction,
        );
        self.observe_sent(conn, id, offset, None);
        self.fabric.go_on(id);
    }

    /// Sends a packet of the error correction layer.
    fn send_protected(
        &mut self,
        conn: &mut Connection,
        out: fec::protected::Outgoing<B>,
        endpoint: &Endpoint<B>,
    ) {
        if out.retransmission.is_some() && self.direction == Direction::Forward {
            note_retransmission(conn, &out.transport, endpoint);
        }
        let id = self.fabric.pool.insert(Packet {
            size: out.size,
            ecn: out.ecn,
            dscp: conn.dscp,
            retransmission: out.retransmission.is_some(),
            payload: out.transport,
            ..blank()
        });
        address(
            &mut self.fabric.pool[id],
            conn,
            self.connection,
            self.direction,
        );
        self.observe_sent(conn, id, 0, out.retransmission);
        self.fabric.go_on(id);
    }

    /// Records the sending of a packet; `offset` is the number of preceding octets of the stream,
    /// except for TCP.
    #[inline]
    fn observe_sent(
        &mut self,
        conn: &Connection,
        id: PacketId,
        offset: u64,
        cause: Option<RetransmitCause>,
    ) {
        let Fabric {
            now, probe, pool, ..
        } = self.fabric;
        probe.observe(*now, self.element, &mut pool[id], Fate::Sent);
        if probe.logs() {
            self.log_sent(conn, id, offset, cause);
        }
    }

    #[inline(never)]
    fn log_sent(
        &mut self,
        conn: &Connection,
        id: PacketId,
        offset: u64,
        cause: Option<RetransmitCause>,
    ) {
        let Fabric {
            now, probe, pool, ..
        } = self.fabric;
        let packet = &mut pool[id];
        // Sequence numbers in packets have 32 bits; a stream may be longer.
        let last = probe
            .last_sent(packet.connection, packet.direction)
            .filter(|row| {
                let number = conn.number(row.direction, row.index);
                !conn.is_stale(row.direction, number)
            })
            .map_or(0, |row| row.sequence);
        let iss = conn.iss[self.direction as usize];
        let place = |seq: u32| near(last, seq.wrapping_sub(iss));
        let (sequence, payload) = match &packet.payload {
            Transport::Tcp(segment) => (place(segment.seq), segment.body.len()),
            Transport::Redundant(redundant) => (place(redundant.first), 0),
            Transport::Datagram(body) => (offset, body.len()),
        };
        probe.sent(*now, conn.flow, packet, (sequence, payload, cause));
    }
}

/// Fills in the connection, number and direction of a packet, and returns the place where its route
/// begins.
#[inline]
pub(super) fn address<P>(
    packet: &mut Packet<P>,
    conn: &mut Connection,
    connection: ConnectionId,
    direction: Direction,
) -> u32 {
    let number = conn.next_index[direction as usize];
    conn.next_index[direction as usize] = number + 1;
    let hop = conn.route[direction as usize];
    packet.connection = connection;
    packet.index = low_half(number);
    packet.hop = hop;
    packet.direction = direction;
    hop
}

/// The octets of a segment, whose sequence number is close to `known`. A SYN is one octet, before
/// the first of the stream.
pub(super) fn octets_of<B: Body>(segment: &Segment<B>, known: Seq) -> Range<Seq> {
    let start = known.near(segment.seq);
    let syn = u64::from(segment.flags.any(Flags::SYN));
    start..start + syn + u64::from(segment.body.len())
}

/// Whether a segment ends beyond the in-order data of its receiver.
#[inline]
fn is_beyond<B: Body>(segment: &Segment<B>, receiver: &Endpoint<B>) -> bool {
    let end = segment.seq.wrapping_add(segment.body.len());
    !segment.body.is_empty() && end.wrapping_sub(receiver.rcv_nxt().wire()).cast_signed() > 0
}

/// Records a retransmission that is about to be sent.
#[cold]
#[inline(never)]
fn note_retransmission<B: Body>(
    conn: &mut Connection,
    transport: &Transport<B>,
    endpoint: &Endpoint<B>,
) {
    if let Transport::Tcp(segment) = transport {
        let octets = octets_of(segment, endpoint.snd_una());
        if !octets.is_empty() {
            let number = conn.next_index[Direction::Forward as usize];
            conn.note_resent(octets, number, endpoint.snd_una());
        }
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low half travels")]
pub(super) const fn low_half(number: u64) -> u32 {
    number as u32
}

/// The number of the connection at `place`.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "connections are counted in 32 bits"
)]
const fn connection_id(place: usize) -> ConnectionId {
    ConnectionId(place as u32)
}

/// A packet to be filled in.
pub(super) fn blank<B: Body>() -> Packet<Transport<B>> {
    Packet {
        connection: ConnectionId(0),
        index: 0,
        size: 0,
        hop: 0,
        direction: Direction::Forward,
        retransmission: false,
        ecn: Ecn::NotEct,
        dscp: 0,
        trail: Trail::default(),
        waits: WaitAccount::NONE,
        tunnel: Header::default(),
        payload: Transport::Tcp(Segment::default()),
    }
}

/// Turns a place with other contents into one for a segment.
#[inline(never)]
pub(super) fn segment_in<B: Body>(place: &mut Transport<B>) -> &mut Segment<B> {
    *place = Transport::Tcp(Segment::default());
    match place {
        Transport::Tcp(segment) => segment,
        _ => unreachable!("it was just made one"),
    }
}
