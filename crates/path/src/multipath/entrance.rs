//! Where packets are spread over the routes.

use std::collections::VecDeque;

use anabranch_core::{
    body::Body,
    packet::{ConnectionId, Direction, Ecn, Packet, WaitAccount},
    trace::Fate,
    trail::Trail,
    tunnel::{self, Content, Header},
    units::{Duration, Instant},
};

use super::{
    kept::Kept,
    meter::Meter,
    micros,
    peer::Peer,
    split::{AnySplit, Due, Fallen, Missing, Split, View},
};
use crate::{
    link::Window,
    middlebox::{Held, Middlebox, Output, connection_of},
    report::{Report, SplitReport},
};
use anabranch_wire::Transport;

/// How often an entrance that keeps packets looks whether the other end asks for any, or whether there is anything to ask for:
/// a sender whose packets wait behind a gap sends nothing by which that could be noticed.
const PULSE: Duration = Duration::from_millis(5);
/// How long after the last packet it does so.
const ATTENTION: Duration = Duration::from_secs(1);

/// How many notices say that a route was given up: each may be lost.
const NOTICES: u8 = 3;

/// What an entrance is made of.
#[derive(Debug)]
pub struct EntranceParts {
    /// Which route the next packet takes.
    pub split: AnySplit,
    /// What the tunnel adds to each packet, in bytes.
    pub overhead: u32,
    /// How many routes there are.
    pub routes: usize,
    /// How many packets of each route are kept, to be retransmitted where the other end asks for them.
    pub keeps: u16,
    /// The end that it stands at, where the tunnel writes its header.
    pub peer: Option<Peer>,
    /// When counts are taken.
    pub window: Window,
    /// Shared with the exit of this direction.
    pub meter: Meter,
}

/// The end of a gateway where packets come in; its ports are the routes, in order.
#[derive(Debug)]
pub struct Entrance<B: Body> {
    split: AnySplit,
    overhead: u32,
    peer: Option<Peer>,
    window: Window,
    meter: Meter,
    /// By flow: the next number.
    numbers: Vec<u32>,
    /// By route: the next number.
    route_numbers: Vec<u16>,
    kept: Kept<B>,
    report: SplitReport,
    /// The routes of the packet at hand.
    routes: Vec<u16>,
    /// What the other end has reported that is not dealt with.
    heard: Vec<tunnel::Report>,
    /// What the splitter wants done.
    due: Due,
    /// Routes that have fallen silent, and their packets that are still to be retransmitted.
    fallen: VecDeque<Fallen>,
    /// Routes of which the other end is to be told that they were given up, and how often.
    notices: Vec<(u16, u8)>,
    /// When to look again, and when the last packet came.
    pulse: Option<Instant>,
    last: Instant,
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
            meter: parts.meter,
            numbers: Vec::new(),
            route_numbers: vec![0; parts.routes],
            kept: Kept::new(parts.routes, parts.keeps),
            report: SplitReport::new(parts.routes),
            routes: Vec::new(),
            heard: Vec::new(),
            due: Due::default(),
            fallen: VecDeque::new(),
            notices: Vec::new(),
            pulse: None,
            last: Instant::START,
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
        if header.content == Content::Packet {
            self.kept.keep(packet);
        } else {
            self.kept
                .skip(packet.tunnel.route, packet.tunnel.route_number);
        }
        if self.window.contains(now) {
            self.report.sent(route, packet.size);
        }
    }

    /// What the other end has reported since the last packet. What it asks for goes first.
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

    /// Sends a header without a packet.
    fn send_own(&mut self, now: Instant, route: u16, own: Header, out: &mut Output<B>) {
        let header = Header {
            sent: micros(now),
            kept: self.kept.is_used() && self.split.keeps(),
            ..own
        };
        let mut packet = Packet {
            connection: ConnectionId::NONE,
            index: 0,
            size: self.overhead,
            hop: 0,
            direction: Direction::Forward,
            retransmission: false,
            ecn: Ecn::NotEct,
            dscp: 0,
            trail: Trail::default(),
            waits: WaitAccount::NONE,
            tunnel: header,
            payload: Transport::Datagram(B::default()),
        };
        self.address(now, route, &mut packet, header);
        out.create(Some(route), packet, Fate::Injected);
    }

    /// Sends a report by itself; `for_traffic`: of packets of flows.
    fn report_alone(&mut self, now: Instant, for_traffic: bool, out: &mut Output<B>) {
        let report = self.peer.as_ref().and_then(Peer::report);
        if report.is_none() {
            return;
        }
        let mut routes = std::mem::take(&mut self.routes);
        let content = self
            .split
            .split_own(now, self.overhead, for_traffic, &mut routes);
        let own = Header {
            content,
            report,
            ..Header::default()
        };
        for route in routes.drain(..) {
            self.send_own(now, route, own, out);
        }
        self.routes = routes;
    }

    /// When reports must go by themselves, and whether they are of packets of flows.
    fn reports_due(&self) -> Option<(Instant, bool)> {
        let within = self.split.reports_within()?;
        let owed = self.peer.as_ref()?.owed()?;
        Some((owed.since + within, owed.is_traffic))
    }

    /// Reports that no packet has taken along in time.
    fn report_due(&mut self, now: Instant, out: &mut Output<B>) {
        for _ in 0..self.route_numbers.len() {
            match self.reports_due() {
                Some((due, for_traffic)) if due <= now => {
                    self.report_alone(now, for_traffic, out);
                }
                _ => return,
            }
        }
    }

    /// Does what the splitter wants done for its routes.
    fn look_after_routes(&mut self, now: Instant, out: &mut Output<B>) {
        let mut due = std::mem::take(&mut self.due);
        self.split.on_timer(now, self.overhead, &mut due);
        for route in due.probes.drain(..) {
            // It may be lost, so nothing counts as reported by it.
            let own = Header {
                content: Content::Probe,
                report: self.peer.as_ref().and_then(Peer::repetition),
                ..Header::default()
            };
            self.send_own(now, route, own, out);
        }
        if let Some(peer) = self.peer.as_ref().filter(|_| !due.silent.is_empty()) {
            peer.renew(now);
        }
        self.fallen.extend(due.silent.drain(..));
        self.due = due;
        self.retransmit_fallen(now, out);
        self.give_notice(now, out);
    }

    /// Retransmits what fell with a route, as far as there is room.
    fn retransmit_fallen(&mut self, now: Instant, out: &mut Output<B>) {
        while let Some(fallen) = self.fallen.front_mut() {
            let (route, number) = (fallen.route, fallen.first);
            let is_silent = self.split.is_silent(route);
            if !is_silent || fallen.packets == 0 {
                self.fallen.pop_front();
                if is_silent {
                    self.notices.push((route, NOTICES));
                }
                continue;
            }
            if !self.split.has_room(now) {
                return;
            }
            fallen.first = number.wrapping_add(1);
            fallen.packets -= 1;
            let route = u8::try_from(route).expect("a gateway has 256 routes at most");
            self.resend(now, route, number, out);
        }
    }

    /// Tells the other end which routes were given up.
    fn give_notice(&mut self, now: Instant, out: &mut Output<B>) {
        let mut notices = std::mem::take(&mut self.notices);
        for (fallen, times) in &mut notices {
            *times -= 1;
            let mut routes = std::mem::take(&mut self.routes);
            self.split.split_own(now, self.overhead, false, &mut routes);
            let own = Header {
                content: Content::GivenUp,
                flow: *fallen,
                report: self.peer.as_ref().and_then(Peer::repetition),
                ..Header::default()
            };
            for route in routes.drain(..) {
                self.send_own(now, route, own, out);
            }
            self.routes = routes;
        }
        notices.retain(|(_, times)| *times > 0);
        self.notices = notices;
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
        self.meter.entered(now, packet.connection, packet.index);
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
        }
        out.emit(first, packet);
        self.routes = routes;
    }
    fn on_timer(&mut self, now: Instant, out: &mut Output<B>) {
        if self.split.timer().is_some_and(|due| due <= now) {
            self.hear(now, out);
            self.look_after_routes(now, out);
        }
        if self.pulse.is_some_and(|pulse| pulse <= now) {
            self.hear(now, out);
            if self.peer.as_ref().is_some_and(Peer::asks) {
                self.report_alone(now, false, out);
            }
            let watches = now.saturating_since(self.last) < ATTENTION;
            self.pulse = watches.then_some(now + PULSE);
        }
        self.report_due(now, out);
    }
    fn timer(&self) -> Option<Instant> {
        let reports = self.reports_due().map(|(due, _)| due);
        [self.pulse, self.split.timer(), reports]
            .into_iter()
            .flatten()
            .min()
    }
    fn report(&self) -> Option<Report> {
        Some(Report::Split(self.report.clone()))
    }
}
