//! Endpoints at work: our TCP with an application on top, or a host from outside.

use std::sync::Arc;

use anabranch_core::{
    packet::{ConnectionId, Direction, Packet, PacketId},
    trace::{ElementId, Fate},
    units::Instant,
};
use anabranch_elements::{
    body::Body,
    cc,
    host::{Arrived, Departing, Host},
    tcp::{Endpoint, Role, Settings, State},
    transport::Transport,
};

use super::Network;
use crate::event_queue::{Class, Entry, Source};

/// One end of a connection.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all of them are the large one, and a box would cost a look-up per packet"
)]
pub enum End<B: Body> {
    /// Our TCP.
    Tcp(Endpoint<B>, App),
    /// A user's stack.
    Host(Box<dyn Host<B>>),
    /// A place for a later connection.
    Vacant,
}

/// What the application at an end does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum App {
    /// Sends for as long as it may.
    Bulk,
    /// Sends this many bytes, then closes.
    File(u64),
    /// Receives, and closes when the other end has.
    Sink,
    /// Done with sending.
    Finished,
}

#[derive(Debug)]
pub(super) struct AgentSlot<B: Body> {
    pub(super) end: End<B>,
    pub(super) element: ElementId,
    /// The timer that stands in the event queue.
    pub(super) armed: Instant,
    /// When the flow starts; [`Instant::NEVER`] once it has, and for the far end.
    pub(super) start: Instant,
    /// When the application stops.
    pub(super) stop: Instant,
}

impl<B: Body> AgentSlot<B> {
    /// A place without an end.
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
            End::Host(host) => host.timer().unwrap_or(Instant::NEVER),
            End::Vacant => Instant::NEVER,
        };
        inner.min(self.start).min(self.stop)
    }

    /// Whether nothing more will come of it: both ways closed.
    pub(super) fn is_over(&self) -> bool {
        match &self.end {
            End::Tcp(endpoint, _) => matches!(endpoint.state(), State::Closed | State::TimeWait),
            End::Host(_) => false,
            End::Vacant => true,
        }
    }
}

impl<B: Body> Network<B> {
    /// The sender's end of a connection is 2n, the receiver's 2n + 1.
    #[inline]
    fn agent_of(connection: ConnectionId, travelling: Direction) -> usize {
        connection.0 as usize * 2 + usize::from(travelling == Direction::Forward)
    }

    /// A packet reaches the far end of its route.
    #[inline]
    pub(super) fn reach_end(&mut self, id: PacketId) {
        let packet = &self.pool[id];
        let (connection, direction) = (packet.connection, packet.direction);
        let index = Self::agent_of(connection, direction);
        let slot = &mut self.agents[index];
        self.probe
            .observe(self.now, slot.element, packet, Fate::Received);
        let conn = &mut self.connections[connection.0 as usize];
        if conn.is_stale(direction, packet.index) {
            // A late packet of a transfer that is over, whose place another has taken.
            self.pool.free(id);
            return;
        }
        let mut arrival = None;
        if direction == Direction::Forward {
            self.delivered_packets += u64::from(packet.payload.payload_len() > 0);
            arrival = conn.receiver.on_packet(self.now, packet.index, packet.size);
            if let Some(arrival) = arrival.filter(|arrival| arrival.reordered) {
                self.probe.reordered(packet, arrival.extent);
            }
        }
        match &mut slot.end {
            End::Tcp(endpoint, _) => {
                if let Transport::Tcp(segment) = &packet.payload {
                    let before = endpoint.stats().duplicate_segments;
                    endpoint.on_segment(self.now, segment, packet.ecn);
                    // Data that was there already, in a packet that the network did not double: one of
                    // the two sendings was needless.
                    if endpoint.stats().duplicate_segments != before
                        && arrival.is_some_and(|arrival| !arrival.duplicate)
                    {
                        conn.receiver.spurious_retransmissions += 1;
                    }
                }
            }
            End::Host(host) => {
                let arrived = Arrived {
                    transport: &packet.payload,
                    ecn: packet.ecn,
                    dscp: packet.dscp,
                };
                host.on_packet(self.now, arrived);
            }
            End::Vacant => {}
        }
        self.pool.free(id);
        self.after_agent(index);
    }

    pub(super) fn agent_timer(&mut self, index: usize) {
        let slot = &mut self.agents[index];
        if slot.armed != self.now {
            return;
        }
        slot.armed = Instant::NEVER;
        if slot.deadline() > self.now {
            self.rearm_agent(index);
            return;
        }
        self.events += 1;
        if slot.start <= self.now {
            slot.start = Instant::NEVER;
            match &mut slot.end {
                End::Tcp(endpoint, _) => endpoint.open(self.now),
                End::Host(host) => host.start(self.now),
                End::Vacant => {}
            }
        }
        if slot.stop <= self.now {
            slot.stop = Instant::NEVER;
            if let End::Tcp(endpoint, app) = &mut slot.end {
                endpoint.close();
                *app = App::Finished;
            }
        }
        let slot = &mut self.agents[index];
        match &mut slot.end {
            End::Tcp(endpoint, _) if endpoint.deadline() <= self.now => {
                endpoint.on_deadline(self.now);
            }
            End::Host(host) if host.timer().is_some_and(|due| due <= self.now) => {
                host.on_timer(self.now);
            }
            _ => {}
        }
        self.after_agent(index);
    }

    /// Takes what an end wants to send, sets its timer, and meters it.
    #[inline]
    pub(super) fn after_agent(&mut self, index: usize) {
        let (conn_index, direction) = (
            index / 2,
            if index.is_multiple_of(2) {
                Direction::Forward
            } else {
                Direction::Reverse
            },
        );
        if let End::Tcp(endpoint, app) = &mut self.agents[index].end
            && *app != App::Finished
        {
            drive(endpoint, app);
        }
        while let Some(departing) = self.poll_agent(index) {
            self.send(index, conn_index, direction, departing);
        }
        if direction == Direction::Forward {
            if let End::Tcp(endpoint, _) = &self.agents[index].end {
                let conn = &mut self.connections[conn_index];
                conn.sender
                    .update(self.now, endpoint.cwnd(), endpoint.srtt());
            }
        } else {
            self.note_delivery(index, conn_index);
        }
        self.rearm_agent(index);
        if self.connections[conn_index].spawner.is_some() {
            self.retire_if_over(conn_index);
        }
    }

    #[inline]
    fn poll_agent(&mut self, index: usize) -> Option<(Departing<B>, bool)> {
        match &mut self.agents[index].end {
            End::Tcp(endpoint, _) => endpoint.poll_transmit(self.now).map(|out| {
                let departing = Departing {
                    transport: Transport::Tcp(out.segment),
                    size: out.size,
                    ecn: out.ecn,
                    dscp: 0,
                };
                (departing, out.retransmission)
            }),
            End::Host(host) => host
                .poll_transmit(self.now)
                .map(|departing| (departing, false)),
            End::Vacant => None,
        }
    }

    #[inline]
    fn send(
        &mut self,
        agent: usize,
        conn_index: usize,
        direction: Direction,
        (departing, retransmission): (Departing<B>, bool),
    ) {
        let conn = &mut self.connections[conn_index];
        let index = conn.next_index[direction as usize];
        conn.next_index[direction as usize] = index.wrapping_add(1);
        let packet = Packet {
            connection: ConnectionId(
                u32::try_from(conn_index).expect("connections are counted in 32 bits"),
            ),
            index,
            size: departing.size,
            hop: conn.route[direction as usize],
            direction,
            retransmission,
            ecn: departing.ecn,
            dscp: departing.dscp,
            payload: departing.transport,
        };
        self.probe
            .observe(self.now, self.agents[agent].element, &packet, Fate::Sent);
        if self.probe.logs() {
            let (sequence, payload) = match &packet.payload {
                Transport::Tcp(segment) => (
                    u64::from(segment.seq.wrapping_sub(conn.iss[direction as usize])),
                    segment.body.len(),
                ),
                Transport::Datagram(body) => (0, body.len()),
            };
            self.probe
                .sent(self.now, conn.flow, &packet, sequence, payload);
        }
        let id = self.pool.insert(packet);
        self.go_on(id);
    }

    #[inline]
    fn rearm_agent(&mut self, index: usize) {
        let slot = &mut self.agents[index];
        // What was due already is due now.
        let due = slot.deadline().max(self.now);
        if due < slot.armed {
            slot.armed = due;
            self.timers
                .push(Entry::new(due, Source::new(Class::AgentTimer, index)));
        }
    }

    #[inline]
    fn note_delivery(&mut self, index: usize, conn_index: usize) {
        let delivered = match &self.agents[index].end {
            End::Tcp(endpoint, _) => endpoint.stats().delivered_bytes,
            End::Host(host) => host.delivered_bytes(),
            End::Vacant => return,
        };
        let conn = &mut self.connections[conn_index];
        if delivered == conn.delivered {
            return;
        }
        conn.delivered = delivered;
        conn.receiver.last_delivery = self.now;
        if delivered == conn.size {
            self.transfer_is_complete(conn_index);
        }
    }
}

/// Both ends of a TCP connection: the one that sends, and the one that listens.
pub(super) fn tcp_ends<B: Body>(
    settings: &Arc<Settings>,
    control: &cc::Config,
    app: App,
) -> [End<B>; 2] {
    let init = settings.init();
    let end = |role| {
        Endpoint::new(settings, control.build(&init), role, 0).with_timer_rule(control.timer_rule())
    };
    [
        End::Tcp(end(Role::Active), app),
        End::Tcp(end(Role::Passive), App::Sink),
    ]
}

/// Octets after which a bulk application's stream repeats.
const PATTERN: u32 = 251 * 256;

/// What the application does when it gets a chance.
#[inline]
fn drive<B: Body>(endpoint: &mut Endpoint<B>, app: &mut App) {
    // A close before the handshake is over would give the connection up (RFC 9293 §3.10.4).
    if matches!(
        endpoint.state(),
        State::Closed | State::Listen | State::SynSent | State::SynReceived
    ) {
        return;
    }
    match app {
        App::Bulk => {
            endpoint.write_repeating(B::filler(PATTERN));
            *app = App::Finished;
        }
        App::File(remaining) => {
            while *remaining > 0 {
                let part = u32::try_from(*remaining).unwrap_or(u32::MAX);
                endpoint.write_all(B::filler(part));
                *remaining -= u64::from(part);
            }
            endpoint.close();
            *app = App::Finished;
        }
        App::Sink => {
            if matches!(endpoint.state(), State::CloseWait) {
                endpoint.close();
                *app = App::Finished;
            }
        }
        App::Finished => {}
    }
}
