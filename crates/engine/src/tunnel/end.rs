//! One end of a tunnel.

use core::net::SocketAddr;
use std::fmt;

use anabranch_core::{
    body::Body,
    packet::{ConnectionId, Direction, Ecn, FlowId, Packet, WaitAccount},
    trace::Fate,
    trail::Trail,
    tunnel::Header,
    units::{Duration, Instant},
};
use anabranch_gateway::{
    crypto::{Entropy as _, Keys, public_key},
    inner,
    path::Route,
    policy::{Role, Rule},
    time,
    tunnel::{Config, PathConfig, Stats, Tunnel},
    wire::PathId,
};
use anabranch_path::{
    link::Window,
    middlebox::{Held, Kept, Middlebox, Output},
    multipath::{Meter, Report, TunnelPath, TunnelReceiver, TunnelReport, TunnelSender},
};
use anabranch_wire::{Ports, Transport};

use super::{
    crossing::Crossing,
    label::Labels,
    packet::{self, clamp, is_datagram, is_of, number},
    seeded::Seeded,
};

/// The headers of IPv4 and UDP around a datagram.
const CARRIER: usize = 28;
/// The daemon's port in the documentation.
const PORT: u16 = 51_900;

/// The parameters of the two ends.
#[derive(Debug)]
pub struct Ends<'a> {
    /// The gateway's name, which keys the random streams.
    pub name: &'a str,
    /// The scenario's seed.
    pub seed: u64,
    /// By path: when it is used.
    pub roles: &'a [Role],
    /// The rules of packet classes.
    pub rules: &'a [Rule],
    /// The addresses and ports of flows inside the tunnel.
    pub labels: &'a Labels,
    /// The readings of the ends' clocks at the start.
    pub clock_offset: [Duration; 2],
    /// The window in which counts are taken.
    pub window: Window,
}

/// Creates both ends: the first, where forward packets enter, initiates the handshake; the second
/// responds.
///
/// # Panics
/// If there are more paths than a tunnel permits.
#[must_use]
pub fn ends<B: Body>(parts: &Ends<'_>) -> [Box<dyn Middlebox<B>>; 2] {
    let secrets = Direction::BOTH
        .map(|way| Seeded::new(parts.seed, &format!("{}.key", element(parts.name, way))).draw());
    let crossing = Crossing::new(parts.roles.len());
    let meters = [Meter::default(), Meter::default()];
    Direction::BOTH.map(|way| {
        let keys = Keys {
            private: secrets[way as usize],
            peer: public_key(&secrets[way.opposite() as usize]),
            psk: None,
        };
        let paths = (0..).zip(parts.roles).map(|(path, &role)| PathConfig {
            id: PathId::new(path).expect("resolving counts the routes"),
            route: (way == Direction::Forward).then(|| route_to(way.opposite(), path)),
            role,
        });
        let config = Config {
            keys,
            paths: paths.collect(),
            sources: anabranch_gateway::sources::Sources::default(),
            rules: parts.rules.to_vec(),
            epoch: 0,
        };
        let entropy = Box::new(Seeded::new(parts.seed, &element(parts.name, way)));
        let clock_offset = parts.clock_offset[way as usize];
        let start = time::Instant::START + clock_offset;
        let tunnel = Tunnel::new(config, entropy, start);
        let end = End {
            tunnel,
            way,
            clock_offset,
            crossing: crossing.clone(),
            meters: meters.clone(),
            window: parts.window,
            buffer: Vec::new(),
            sent: vec![(0, 0); parts.roles.len()],
            ended: 0,
            counted: Counted::default(),
            labels: parts.labels.clone(),
            rules: parts.rules.to_vec(),
            by_class: vec![0; parts.rules.len()],
            before: None,
        };
        Box::new(end) as Box<dyn Middlebox<B>>
    })
}

/// The name of the end where packets of a direction enter.
fn element(name: &str, way: Direction) -> String {
    format!("gateway.{name}.{}", way.name())
}

/// The route to an end on a path, in addresses for documentation (RFC 5737 §3).
fn route_to(end: Direction, path: u8) -> Route {
    let network = match end {
        Direction::Forward => [192, 0, 2],
        Direction::Reverse => [198, 51, 100],
    };
    let [a, b, c] = network;
    Route {
        local: u32::from(path),
        remote: SocketAddr::from(([a, b, c, path + 1], PORT)),
    }
}

/// Packets refused and unmatched in the measured time.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    refused: u64,
    unmatched: u64,
}

/// The middlebox.
struct End<B: Body> {
    tunnel: Tunnel,
    /// The direction of the packets that enter here.
    way: Direction,
    clock_offset: Duration,
    crossing: Crossing<B>,
    /// By direction.
    meters: [Meter; 2],
    window: Window,
    buffer: Vec<u8>,
    /// By path: datagrams, and octets of their packets.
    sent: Vec<(u64, u64)>,
    /// Packets that ended here in the whole run: datagrams, and packets that were refused or did
    /// not match.
    ended: u64,
    counted: Counted,
    labels: Labels,
    rules: Vec<Rule>,
    /// By rule: packets that entered in the measured time.
    by_class: Vec<u64>,
    /// The core's counters at the start of the measured time.
    before: Option<Box<Stats>>,
}

impl<B: Body> fmt::Debug for End<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("End")
            .field("way", &self.way)
            .field("tunnel", &self.tunnel)
            .finish_non_exhaustive()
    }
}

impl<B: Body> End<B> {
    /// The time by this end's clock.
    fn local(&self, now: Instant) -> time::Instant {
        time::Instant::from(now) + self.clock_offset
    }

    /// Stores the core's counters at the start of the measured time.
    fn look(&mut self, now: Instant) {
        if self.before.is_none() && self.window.contains(now) {
            self.before = Some(Box::new(self.tunnel.stats()));
        }
    }

    fn on_datagram(&mut self, now: Instant, datagram: &Held<B>) {
        self.ended += 1;
        let Header { route, number, .. } = datagram.tunnel;
        let from = self.way.opposite();
        if let Some(mut octets) = self.crossing.receive(from, usize::from(route), number) {
            let now = self.local(now);
            self.tunnel
                .handle(&mut octets, route_to(from, route), now, now);
        }
    }

    fn enter(&mut self, now: Instant, flow: FlowId, packet: Held<B>) {
        let number = self.crossing.next_packet(self.way);
        let label = self.labels.of(flow);
        let octets = packet::encode(&packet, number, &label);
        let class = self.class(&octets);
        let name = (packet.connection, packet.index);
        let ports = packet::ports(&packet, &label);
        self.crossing.enter(now, self.way, packet, ports);
        let local = self.local(now);
        if self.tunnel.handle_inner(octets, local).is_ok() {
            self.meters[self.way as usize].entered(now, name.0, name.1);
            if let Some(class) = class {
                self.by_class[class] += u64::from(self.window.contains(now));
            }
        } else {
            self.crossing.leave(self.way, number);
            self.ended += 1;
            self.counted.refused += u64::from(self.window.contains(now));
        }
    }

    /// The rule that applies to a packet.
    fn class(&self, octets: &[u8]) -> Option<usize> {
        if self.rules.is_empty() {
            return None;
        }
        let summary = inner::read(octets)?;
        let mut rules = self.rules.iter();
        rules.position(|rule| rule.matches.fits(&summary))
    }

    /// Sends and delivers all pending output of the core.
    fn pump(&mut self, now: Instant, out: &mut Output<B>) {
        let local = self.local(now);
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some(transmit) = self.tunnel.poll_transmit(local, &mut buffer) {
            self.send(now, transmit.path, &buffer, out);
        }
        self.buffer = buffer;
        while let Some(octets) = self.tunnel.poll_deliver(local) {
            self.deliver(now, &octets, out);
        }
    }

    fn send(&mut self, now: Instant, path: PathId, octets: &[u8], out: &mut Output<B>) {
        let Some(number) = self.crossing.send(self.way, path.index(), octets.to_vec()) else {
            return;
        };
        let size = u32::try_from(octets.len() + CARRIER).unwrap_or(u32::MAX);
        if self.window.contains(now)
            && let Some((packets, bytes)) = self.sent.get_mut(path.index())
        {
            *packets += 1;
            *bytes += u64::from(size);
        }
        let datagram = Packet {
            connection: ConnectionId::NONE,
            index: number,
            size,
            hop: 0,
            direction: self.way,
            retransmission: false,
            ecn: Ecn::NotEct,
            dscp: 0,
            trail: Trail::default(),
            waits: WaitAccount::NONE,
            tunnel: Header {
                route: path.number(),
                number,
                ..Header::default()
            },
            payload: Transport::Datagram(B::default()),
        };
        let port = u16::from(path.number());
        out.create(Some(port), datagram, Fate::Injected);
    }

    fn deliver(&mut self, now: Instant, octets: &[u8], out: &mut Output<B>) {
        let from = self.way.opposite();
        let packet = number(octets).and_then(|number| self.crossing.leave(from, number));
        let is_same = |(packet, ports): &(Held<B>, Ports)| is_of(octets, packet, *ports);
        self.ended += u64::from(packet.as_ref().is_some_and(|packet| !is_same(packet)));
        let Some((mut packet, _)) = packet.filter(is_same) else {
            self.counted.unmatched += u64::from(self.window.contains(now));
            return;
        };
        clamp(&mut packet, octets);
        // The waiting times belong to the datagrams, several of which may have carried the packet.
        packet.waits = WaitAccount::NONE;
        // The route contains both ends of the gateway.
        packet.hop += 1;
        let name = (packet.connection, packet.index);
        self.meters[from as usize].delivered(now, name, self.window);
        out.forward(packet);
    }

    fn sender(&self, stats: &Stats, before: &Stats) -> TunnelSender {
        let paths = stats.paths.iter().zip(&self.sent);
        let path = paths.map(|(path, &(sent_packets, sent_bytes))| TunnelPath {
            sent_packets,
            sent_bytes,
            state: path.state.name(),
            deaths: path.deaths,
            srtt: path.srtt,
            rate: path.rate,
            mtu: path.mtu,
        });
        let (now, then) = (&stats.counters, &before.counters);
        TunnelSender {
            paths: path.collect(),
            entered: now.entered - then.entered,
            entered_by_class: self.by_class.clone(),
            refused: self.counted.refused,
            queue_dropped: stats.queue_dropped - before.queue_dropped,
            unsendable: now.unsendable - then.unsendable,
            retransmitted: now.retransmitted - then.retransmitted,
            sessions: stats.sessions,
        }
    }

    fn receiver(&self, stats: &Stats, before: &Stats) -> TunnelReceiver {
        let (now, then) = (&stats.order, &before.order);
        TunnelReceiver {
            delivered: now.delivered - then.delivered,
            late: now.late - then.late,
            gaps_given_up: now.given_up - then.given_up,
            duplicates: now.duplicates - then.duplicates,
            max_held_packets: now.max_waiting as u64,
            unmatched: self.counted.unmatched,
            silent: self.meters[self.way.opposite() as usize].longest(self.window),
        }
    }
}

impl<B: Body> Middlebox<B> for End<B> {
    fn on_packet(&mut self, now: Instant, packet: Held<B>, out: &mut Output<B>) {
        self.on_packet_of(FlowId(u32::MAX), now, packet, out);
    }
    fn on_packet_of(&mut self, flow: FlowId, now: Instant, packet: Held<B>, out: &mut Output<B>) {
        self.look(now);
        if is_datagram(&packet) {
            self.on_datagram(now, &packet);
        } else {
            self.enter(now, flow, packet);
        }
        self.pump(now, out);
    }
    fn on_timer(&mut self, now: Instant, out: &mut Output<B>) {
        self.look(now);
        self.pump(now, out);
    }
    fn timer(&self) -> Option<Instant> {
        let at = self.tunnel.poll_timeout()?;
        let start = time::Instant::START + self.clock_offset;
        Some(Instant::START + at.saturating_since(start))
    }
    fn report(&self) -> Option<Report> {
        let stats = self.tunnel.stats();
        let before = self.before.as_deref().unwrap_or(&stats);
        Some(Report::Tunnel(Box::new(TunnelReport {
            sender: self.sender(&stats, before),
            receiver: self.receiver(&stats, before),
        })))
    }
    fn lost(&self, now: Instant) -> Vec<(ConnectionId, Direction, u32)> {
        let lost = self.crossing.lost(self.way, now).into_iter();
        lost.map(|(connection, index)| (connection, self.way, index))
            .collect()
    }
    fn kept(&self) -> Kept {
        let (held, displaced) = self.crossing.inside(self.way);
        Kept {
            held,
            discarded: self.ended + displaced,
        }
    }
}
