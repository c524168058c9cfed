//! Where packets are spread over the routes.

use anabranch_core::{
    trace::Fate,
    tunnel::{self, Header},
    units::{Duration, Instant},
};

use super::{
    kept::Kept,
    micros,
    peer::Peer,
    report::{Report, SplitReport},
    split::{AnySplit, Missing, Split, View},
};
use crate::{
    body::Body,
    link::Window,
    middlebox::{Held, Middlebox, Output, connection_of},
};

/// How often an entrance that keeps packets looks whether the other end asks for any, or whether there is anything to ask for:
/// a sender whose packets wait behind a gap sends nothing by which that could be noticed.
const PULSE: Duration = Duration::from_millis(5);
/// How long after the last packet it does so.
const ATTENTION: Duration = Duration::from_secs(1);
/// The largest packet, in bytes, of which a copy goes out where there is something to ask for and no packet to do so. On a wire
/// the header goes alone; here a packet of the tunnel without one inside does not exist. The other end drops the copy.
const CARRIES_ASKING: u32 = 200;

/// What an entrance is made of.
#[derive(Debug)]
pub struct EntranceParts {
    /// Which route the next packet takes.
    pub split: AnySplit,
    /// What the tunnel adds to each packet, in bytes.
    pub overhead: u32,
    /// How many routes there are.
    pub routes: usize,
    /// How many packets of each route are kept, to be sent again where the other end asks for them.
    pub keeps: u16,
    /// The end that it stands at, where the tunnel writes its header.
    pub peer: Option<Peer>,
    /// When counts are taken.
    pub window: Window,
}

/// The end of a gateway where packets come in; its ports are the routes, in order.
#[derive(Debug)]
pub struct Entrance<B: Body> {
    split: AnySplit,
    overhead: u32,
    peer: Option<Peer>,
    window: Window,
    /// By flow: the next number.
    numbers: Vec<u32>,
    /// By route: the next number.
    route_numbers: Vec<u16>,
    kept: Kept<B>,
    report: SplitReport,
    /// The routes of the packet at hand.
    routes: Vec<u16>,
    /// What the other end has told that is not dealt with.
    heard: Vec<tunnel::Report>,
    /// When to look again, and when the last packet came.
    pulse: Option<Instant>,
    last: Instant,
    /// The last small packet.
    small: Option<Held<B>>,
}

impl<B: Body> Entrance<B> {
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
            kept: Kept::new(parts.routes, parts.keeps),
            report: SplitReport::new(parts.routes),
            routes: Vec::new(),
            heard: Vec::new(),
            pulse: None,
            last: Instant::START,
            small: None,
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
            kept: self.kept.is_used() && self.split.keeps(),
            report: peer.report(),
            ..Header::default()
        }
    }

    /// A packet, or a copy, takes a route.
    fn address(&mut self, now: Instant, route: u16, packet: &mut Held<B>, header: Header) {
        let next = &mut self.route_numbers[usize::from(route)];
        packet.tunnel = Header {
            route: u8::try_from(route).expect("a gateway has 256 routes at most"),
            route_number: *next,
            ..header
        };
        *next = next.wrapping_add(1);
        self.kept.keep(packet);
        if self.window.contains(now) {
            self.report.sent(route, packet.size);
        }
    }

    /// What the other end has told since the last packet. What it asks for goes first.
    fn hear(&mut self, now: Instant, out: &mut Output<B>) {
        let Some(peer) = &self.peer else {
            return;
        };
        let mut heard = std::mem::take(&mut self.heard);
        peer.hear(|report| heard.push(*report));
        for report in heard.drain(..) {
            self.split.hear(now, &report);
            for before in (1..=u16::from(report.missing)).rev() {
                let number = report.route_number.wrapping_sub(before);
                self.resend(now, report.route, number, out);
            }
        }
        self.heard = heard;
    }

    /// A copy of a packet that a route has lost, unless the splitter leaves the loss to the sender. Asking again has no effect
    /// either way.
    fn resend(&mut self, now: Instant, route: u8, number: u16, out: &mut Output<B>) {
        let Some(mut copy) = self.kept.get(route, number).and_then(Option::take) else {
            return;
        };
        let missing = Missing {
            route: u16::from(route),
            route_number: number,
            size: copy.size,
        };
        let Some(route) = self.split.resend(now, missing) else {
            return;
        };
        let header = Header {
            sent: micros(now),
            kept: self.split.keeps(),
            report: None,
            ..copy.tunnel
        };
        self.address(now, route, &mut copy, header);
        out.create(Some(route), copy, Fate::Duplicated);
    }

    /// Sends what there is to ask for, if no packet has come that could take it along.
    fn ask(&mut self, now: Instant, out: &mut Output<B>) {
        let (Some(peer), Some(small)) = (&self.peer, &self.small) else {
            return;
        };
        if !peer.asks() {
            return;
        }
        let mut copy = small.clone();
        let header = Header {
            sent: micros(now),
            kept: false,
            report: peer.report(),
            ..copy.tunnel
        };
        let view = View {
            size: copy.size,
            connection: connection_of(&copy),
            index: copy.index,
        };
        self.split.split(now, view, &mut self.routes);
        let mut routes = std::mem::take(&mut self.routes);
        for route in routes.drain(..) {
            self.address(now, route, &mut copy, header);
            out.create(Some(route), copy.clone(), Fate::Duplicated);
        }
        self.routes = routes;
    }
}

/// The flow of a connection. On a wire it is a hash of addresses, ports and protocol; two that share a number share their
/// order, no more.
#[expect(clippy::cast_possible_truncation, reason = "modulo 2^16")]
const fn flow_of(connection: u32) -> u16 {
    connection as u16
}

impl<B: Body> Middlebox<B> for Entrance<B> {
    fn on_packet(&mut self, now: Instant, mut packet: Held<B>, out: &mut Output<B>) {
        packet.size = packet.size.saturating_add(self.overhead);
        self.hear(now, out);
        let connection = connection_of(&packet);
        let view = View {
            size: packet.size,
            connection,
            index: packet.index,
        };
        self.split.split(now, view, &mut self.routes);
        let header = self.header(now, connection.0);
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
        if self.kept.is_used() {
            self.last = now;
            self.pulse.get_or_insert(now + PULSE);
            if packet.size <= CARRIES_ASKING {
                self.small = Some(packet.clone());
            }
        }
        out.emit(first, packet);
        self.routes = routes;
    }
    fn on_timer(&mut self, now: Instant, out: &mut Output<B>) {
        if self.pulse.is_none_or(|pulse| pulse > now) {
            return;
        }
        self.hear(now, out);
        self.ask(now, out);
        let watches = now.saturating_since(self.last) < ATTENTION;
        self.pulse = watches.then_some(now + PULSE);
    }
    fn timer(&self) -> Option<Instant> {
        self.pulse
    }
    fn report(&self) -> Option<Report> {
        Some(Report::Split(self.report.clone()))
    }
}
