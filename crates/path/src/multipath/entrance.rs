//! The sending end of a gateway, which distributes packets over the routes.

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

/// Interval at which an entrance with stored packets checks for retransmission requests in either
/// direction. A sender whose packets wait at a gap sends nothing that would trigger the check.
const PULSE: Duration = Duration::from_millis(5);
/// Time after the last packet during which these checks continue.
const ATTENTION: Duration = Duration::from_secs(1);

/// Number of notices sent per abandoned route, because each notice may be lost.
const NOTICES: u8 = 3;

/// Components of an entrance.
#[derive(Debug)]
pub struct EntranceParts {
    /// Chooses the route of the next packet.
    pub split: AnySplit,
    /// Bytes that the tunnel adds to each packet.
    pub overhead: u32,
    /// Number of routes.
    pub routes: usize,
    /// Number of packets stored per route for retransmission on request of the other end.
    pub keeps: u16,
    /// State shared with the exit at this end, if the tunnel writes its header.
    pub peer: Option<Peer>,
    /// Measured time, in which packets are counted.
    pub window: Window,
    /// Shared with the exit of this direction.
    pub meter: Meter,
}

/// The end of a gateway that packets enter. Its ports are the routes, in order.
#[derive(Debug)]
pub struct Entrance<B: Body> {
    split: AnySplit,
    overhead: u32,
    peer: Option<Peer>,
    window: Window,
    meter: Meter,
    /// Next packet number by flow.
    numbers: Vec<u32>,
    /// Next packet number by route.
    route_numbers: Vec<u16>,
    kept: Kept<B>,
    report: SplitReport,
    /// Routes of the current packet.
    routes: Vec<u16>,
    /// Reports of the other end that are not processed yet.
    heard: Vec<tunnel::Report>,
    /// Actions that the splitter requests.
    due: Due,
    /// Silent routes whose packets are still to be retransmitted.
    fallen: VecDeque<Fallen>,
    /// Abandoned routes and the number of notices still to be sent for each.
    notices: Vec<(u16, u8)>,
    /// Time of the next check, and of the last packet.
    pulse: Option<Instant>,
    last: Instant,
}

impl<B: Body> Entrance<B> {
    /// Creates an entrance of these components.
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

    /// Returns the header fields shared by all copies of a packet.
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

    /// Assigns a packet or a copy to a route and stores it for retransmission.
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

    /// Processes the reports of the other end that arrived since the last packet. Requested
    /// retransmissions are sent first.
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

    /// Retransmits a packet that a route has lost, unless the splitter leaves the loss to the
    /// sender. A repeated request for the packet has no effect.
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

    /// Sends reports in a packet of the tunnel. With `for_traffic`, they report packets of flows.
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

    /// Returns the deadline for sending reports in a packet of the tunnel, and whether they report
    /// packets of flows.
    fn reports_due(&self) -> Option<(Instant, bool)> {
        let within = self.split.reports_within()?;
        let owed = self.peer.as_ref()?.owed()?;
        Some((owed.since + within, owed.is_traffic))
    }

    /// Sends overdue reports that no packet has carried.
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

    /// Executes the splitter's timer and the actions it requests.
    fn run_split_timer(&mut self, now: Instant, out: &mut Output<B>) {
        let mut due = std::mem::take(&mut self.due);
        self.split.on_timer(now, self.overhead, &mut due);
        for route in due.probes.drain(..) {
            // A probe may be lost, so the report it carries does not count as sent.
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

    /// Retransmits packets of silent routes as far as other routes have room.
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

    /// Notifies the other end of abandoned routes.
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

/// Maps a connection to a flow. A real gateway would hash addresses, ports and protocol. Two
/// connections with the same flow number share their order and nothing else.
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
            self.run_split_timer(now, out);
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
