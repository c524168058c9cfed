//! MTUs of links, and the reports of routers.
//!
//! A packet larger than the MTU is dropped before the link's queue. The router before the link
//! reports it to the sender by ICMP, "fragmentation needed" (RFC 1191) or "packet too big" (RFC
//! 8201), unless it is a black hole. The report takes the propagation delay of the links that the
//! packet has crossed, in the other direction; it is not queued and not lost.

use std::collections::VecDeque;

use anabranch_core::{
    body::Body,
    packet::{ConnectionId, Direction, PacketId},
    trace::Fate,
    units::{Duration, Instant},
};
use anabranch_path::{host::Refused, link::Mtu};
use anabranch_wire::Transport;

use super::{
    LinkId, Network,
    agent::End,
    fabric::{Fabric, LinkKind, Target},
};
use crate::event_queue::{Class, Entry, Source};

/// The MTU of one direction of a link, and its count of larger packets.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkMtu {
    mtu: Mtu,
    /// The router before the link, which reports larger packets.
    router: u32,
    /// Packets in the measured time.
    too_big_packets: u64,
}

/// A report on its way to a sender.
#[derive(Debug)]
struct Answer<B> {
    at: Instant,
    connection: ConnectionId,
    direction: Direction,
    /// The packet's number within its connection and direction.
    index: u32,
    mtu: u32,
    router: u32,
    payload: Transport<B>,
}

/// All MTUs of a network, by link; empty if no link has one.
#[derive(Debug)]
pub(super) struct Mtus<B> {
    links: Vec<Option<LinkMtu>>,
    /// The other direction of the same link.
    opposite: Vec<Option<u32>>,
    /// In order of their arrival.
    answers: VecDeque<Answer<B>>,
}

impl<B> Mtus<B> {
    pub(super) fn new(mtus: Vec<Option<(Mtu, u32)>>, opposite: Vec<Option<u32>>) -> Self {
        let links = if mtus.iter().any(Option::is_some) {
            let new = |(mtu, router)| LinkMtu {
                mtu,
                router,
                too_big_packets: 0,
            };
            mtus.into_iter().map(|mtu| mtu.map(new)).collect()
        } else {
            Vec::new()
        };
        Self {
            opposite: if links.is_empty() {
                Vec::new()
            } else {
                opposite
            },
            links,
            answers: VecDeque::new(),
        }
    }
    /// Whether a link has an MTU.
    pub(super) fn bounds(&self, link: u32) -> bool {
        matches!(self.links.get(link as usize), Some(Some(_)))
    }
    /// Packets that exceeded a link's MTU; `None` for a link without one.
    pub(super) fn too_big_packets(&self, link: LinkId) -> Option<u64> {
        let link = self.links.get(link.0 as usize)?.as_ref()?;
        Some(link.too_big_packets)
    }
    fn admits(&self, link: u32, size: u32) -> bool {
        match self.links.get(link as usize) {
            Some(Some(link)) => size <= link.mtu.bytes,
            _ => true,
        }
    }
}

impl<B: Body> Network<B> {
    /// Checks a packet at the entry of a link with an MTU, now.
    pub(super) fn check_size(&mut self, link: u32, id: PacketId) {
        let packet = &mut self.fabric.pool[id];
        if self.mtus.admits(link, packet.size) {
            packet.hop += 1;
            self.fabric.go_on(id);
        } else {
            self.refuse(link, 0, id);
        }
    }

    /// Checks a packet at a port of a gateway, which added `overhead` to it. Returns whether it was
    /// dropped.
    pub(super) fn is_refused_at_port(&mut self, link: u32, overhead: u32, id: PacketId) -> bool {
        let refused = !self.mtus.admits(link, self.fabric.pool[id].size);
        if refused {
            self.refuse(link, overhead, id);
        }
        refused
    }

    /// Drops a packet that exceeds a link's MTU.
    fn refuse(&mut self, link: u32, overhead: u32, id: PacketId) {
        let Some(Some(entry)) = self.mtus.links.get_mut(link as usize) else {
            return;
        };
        let now = self.fabric.now;
        entry.too_big_packets += u64::from(self.fabric.window.contains(now));
        let (mtu, router) = (entry.mtu, entry.router);
        let element = self.fabric.links[link as usize].element;
        let packet = &mut self.fabric.pool[id];
        self.fabric
            .probe
            .observe(now, element, packet, Fate::TooBig);
        let packet = &self.fabric.pool[id];
        if mtu.reports && packet.connection != ConnectionId::NONE {
            let answer = Answer {
                at: now + self.way_back(packet.connection, packet.direction, packet.hop),
                connection: packet.connection,
                direction: packet.direction,
                index: packet.index,
                mtu: mtu.bytes.saturating_sub(overhead),
                router,
                payload: packet.payload.clone(),
            };
            self.send_answer(answer);
        }
        self.fabric.free(id);
    }

    fn send_answer(&mut self, answer: Answer<B>) {
        let at = answer.at;
        let answers = &mut self.mtus.answers;
        let place = answers.partition_point(|other| other.at <= at);
        answers.insert(place, answer);
        self.fabric
            .push_timer(Entry::new(at, Source::new(Class::PathReport, 0)));
    }

    /// The delay of a report from the place `hop` of a route to the beginning of the route.
    fn way_back(&self, connection: ConnectionId, direction: Direction, hop: u32) -> Duration {
        let start = self.connections[connection.0 as usize].route[direction as usize];
        let crossed = &self.fabric.routes[start as usize..(hop as usize).max(start as usize)];
        let mut total = Duration::ZERO;
        let mut in_gateway = false;
        for target in crossed {
            total += match *target {
                Target::Plain(link) | Target::Folded(link) | Target::Served(link) => {
                    self.delay_back(link)
                }
                Target::Middlebox(index) => {
                    in_gateway = !in_gateway;
                    let ports = self.middleboxes[index as usize].ports.iter();
                    let longest = ports.map(|link| self.delay_back(*link)).max();
                    // Both ends of a tunnel have ports; each pair counts once.
                    longest.filter(|_| in_gateway).unwrap_or(Duration::ZERO)
                }
                Target::Checked(_)
                | Target::Processing(_)
                | Target::End
                | Target::EndAhead
                | Target::Passed => Duration::ZERO,
            };
        }
        total
    }

    fn delay_back(&self, link: u32) -> Duration {
        let back = self.mtus.opposite.get(link as usize).copied().flatten();
        self.fabric.delay_of(back.unwrap_or(link))
    }

    /// Delivers the earliest report to the sender of its packet.
    pub(super) fn deliver_answer(&mut self) {
        let Some(answer) = self.mtus.answers.pop_front() else {
            return;
        };
        self.fabric.events += 1;
        let now = self.fabric.now;
        let place = answer.connection.0 as usize;
        let conn = &self.connections[place];
        let number = conn.number(answer.direction, answer.index);
        if conn.is_stale(answer.direction, number) {
            return;
        }
        let index = place * 2 + usize::from(answer.direction == Direction::Reverse);
        let end = &mut self.agents[index].end;
        match end {
            End::Tcp(..) | End::Protected(..) => {
                if let (Transport::Tcp(segment), Some((endpoint, _))) =
                    (&answer.payload, end.tcp_mut())
                {
                    endpoint.on_packet_too_big(now, segment.seq, answer.mtu);
                }
            }
            End::Host(host) => host.on_refused(
                now,
                Refused {
                    transport: &answer.payload,
                    mtu: answer.mtu,
                    router: answer.router,
                },
            ),
            End::Udp(_) | End::Vacant => return,
        }
        self.after_agent(index);
    }
}

impl<B: Body> Fabric<B> {
    fn delay_of(&self, link: u32) -> Duration {
        match &self.links[link as usize].kind {
            LinkKind::Plain(link) => link.delay(),
            LinkKind::Served(slot) => slot.link.delay(),
        }
    }
}
