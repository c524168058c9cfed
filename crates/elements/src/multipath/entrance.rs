//! Where packets are spread over the routes.

use anabranch_core::{trace::Fate, tunnel::Header, units::Instant};

use super::{
    micros,
    peer::Peer,
    report::{Report, SplitReport},
    split::{AnySplit, Split, View},
};
use crate::{
    body::Body,
    link::Window,
    middlebox::{Held, Middlebox, Output},
};

/// What an entrance is made of.
#[derive(Debug)]
pub struct EntranceParts {
    /// Which route the next packet takes.
    pub split: AnySplit,
    /// What the tunnel adds to each packet, in bytes.
    pub overhead: u32,
    /// How many routes there are.
    pub routes: usize,
    /// The end that it stands at, where the tunnel writes its header.
    pub peer: Option<Peer>,
    /// When counts are taken.
    pub window: Window,
}

/// The end of a gateway where packets come in; its ports are the routes, in order.
#[derive(Debug)]
pub struct Entrance {
    split: AnySplit,
    overhead: u32,
    peer: Option<Peer>,
    window: Window,
    /// By flow: the next number.
    numbers: Vec<u32>,
    /// By route: the next number.
    route_numbers: Vec<u16>,
    report: SplitReport,
    /// The routes of the packet at hand.
    routes: Vec<u16>,
}

impl Entrance {
    /// One of these parts.
    #[must_use]
    pub fn new(parts: EntranceParts) -> Self {
        Self {
            split: parts.split,
            overhead: parts.overhead,
            peer: parts.peer,
            window: parts.window,
            numbers: Vec::new(),
            route_numbers: vec![0; parts.routes],
            report: SplitReport::new(parts.routes),
            routes: Vec::new(),
        }
    }

    /// What every copy of a packet has in its header.
    fn header(&mut self, now: Instant, connection: u32) -> Header {
        let Some(peer) = &self.peer else {
            return Header::default();
        };
        let flow = flow_of(connection);
        let place = usize::from(flow);
        if place >= self.numbers.len() {
            self.numbers.resize(place + 1, 0);
        }
        let number = self.numbers[place];
        self.numbers[place] = number.wrapping_add(1);
        Header {
            flow,
            number,
            sent: micros(now),
            report: peer.report(),
            ..Header::default()
        }
    }

    /// A packet, or a copy, takes a route.
    fn address<B: Body>(&mut self, now: Instant, route: u16, packet: &mut Held<B>, header: Header) {
        let next = &mut self.route_numbers[usize::from(route)];
        packet.tunnel = Header {
            route: u8::try_from(route).expect("a gateway has 256 routes at most"),
            route_number: *next,
            ..header
        };
        *next = next.wrapping_add(1);
        if self.window.contains(now) {
            self.report.sent(route, packet.size);
        }
    }
}

/// The flow of a connection. On a wire it is a hash of addresses, ports and protocol; two that share a number share their
/// order, no more.
#[expect(clippy::cast_possible_truncation, reason = "modulo 2^16")]
const fn flow_of(connection: u32) -> u16 {
    connection as u16
}

impl<B: Body> Middlebox<B> for Entrance {
    fn on_packet(&mut self, now: Instant, mut packet: Held<B>, out: &mut Output<B>) {
        packet.size = packet.size.saturating_add(self.overhead);
        if let Some(peer) = &self.peer {
            let split = &mut self.split;
            peer.hear(|report| split.hear(now, report));
        }
        let view = View {
            size: packet.size,
            connection: packet.connection,
            index: packet.index,
        };
        self.split.split(now, view, &mut self.routes);
        let header = self.header(now, packet.connection.0);
        let mut routes = std::mem::take(&mut self.routes);
        let mut chosen = routes.drain(..);
        let first = chosen
            .next()
            .expect("a splitter names a route for every packet");
        for route in chosen {
            let mut copy = packet.clone();
            self.address(now, route, &mut copy, header);
            out.create(Some(route), copy, Fate::Duplicated);
        }
        self.address(now, first, &mut packet, header);
        out.emit(first, packet);
        self.routes = routes;
    }
    fn report(&self) -> Option<Report> {
        Some(Report::Split(self.report.clone()))
    }
}
