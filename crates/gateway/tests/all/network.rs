//! A deterministic network of two tunnels: loss, delay, jitter, duplication, black holes, new
//! addresses, restarts, clock offsets and path MTU.

use super::{
    Seeded,
    states::{Cause, Watch},
};
use anabranch_core::{rng::Stream, units::Duration};
use anabranch_gateway::{
    crypto::{Entropy as _, Identity, Keys, MacKey, Pending, public_key, with_mac2},
    inner::Prefix,
    path::Route,
    policy::{Role, Rule},
    time::Instant,
    tunnel::{Config, PathConfig, Stats, Tunnel},
    wire::PathId,
};
use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet};

/// The behaviour of one direction of a path.
#[derive(Debug, Clone, Copy)]
pub struct Wire {
    pub delay: Duration,
    pub jitter: Duration,
    pub loss: f64,
    /// Packets lost in a row, on average.
    pub burst: f64,
    pub duplicate: f64,
    pub corrupt: f64,
    pub is_dead: bool,
    pub mtu: usize,
    /// The rate in octets per second, and the length of the queue.
    pub rate: f64,
    pub queue: Duration,
}

impl Default for Wire {
    fn default() -> Self {
        Self {
            delay: Duration::from_millis(20),
            jitter: Duration::ZERO,
            loss: 0.0,
            burst: 1.0,
            duplicate: 0.0,
            corrupt: 0.0,
            is_dead: false,
            mtu: 1_472,
            rate: 12.5e6,
            queue: Duration::from_millis(100),
        }
    }
}

/// An end: 0 initiates, 1 answers.
pub type End = usize;

struct Host {
    tunnel: Tunnel,
    offset: Duration,
    boots: u64,
    /// Datagrams and packets that wait for the host's processor, with their arrival times.
    inbox: Vec<(Instant, Event)>,
}

enum Event {
    Wake { end: End },
    Datagram { to: End, path: u8, octets: Vec<u8> },
    Send { from: End, flow: u16 },
}

/// A delivered packet: its time, flow and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivered {
    pub at: Instant,
    pub flow: u16,
    pub number: u32,
}

pub struct Network {
    pub now: Instant,
    pub wires: Vec<[Wire; 2]>,
    pub delivered: [Vec<Delivered>; 2],
    pub sent: [BTreeMap<u16, u32>; 2],
    pub refused: u64,
    /// Octets of packets.
    pub size: usize,
    sources: [Vec<Prefix>; 2],
    roles: [BTreeMap<u8, Role>; 2],
    rules: Vec<Rule>,
    /// The pre-shared key of each end at its next start.
    pub psks: [Option<[u8; 32]>; 2],
    /// The time of each end's stamps at its start.
    pub epochs: [u64; 2],
    /// The code point of packets of a flow.
    pub dscp: BTreeMap<u16, u8>,
    /// Datagrams of each end on each path.
    pub datagrams: [BTreeMap<u8, u64>; 2],
    /// The source port of each end on each path, as the other end sees it.
    pub ports: [Vec<u16>; 2],
    /// Paths that lose every message of a handshake.
    pub without_handshakes: BTreeSet<u8>,
    /// Every datagram that was carried, with its receiver and path.
    pub recorded: Vec<(End, u8, Vec<u8>)>,
    hosts: Vec<Host>,
    events: BTreeMap<(Instant, u64), Event>,
    free: Vec<[Instant; 2]>,
    /// Whether a burst of losses is in progress.
    bad: Vec<[bool; 2]>,
    stream: Stream,
    count: u64,
    seed: u64,
    paths: u8,
    both_begin: bool,
    /// Checks the states of paths, if present.
    pub watch: Option<Watch>,
    /// Intervals at which an end has the processor; always if `None`.
    wake: [Option<Duration>; 2],
    /// Every data header sent, by boot and end: a nonce must not repeat under one receiver's index.
    nonces: BTreeSet<(End, Vec<u8>)>,
}

fn keys(seed: u64, end: End) -> Keys {
    let mut random = Seeded::new(seed, "keys");
    let privates: [[u8; 32]; 2] = [random.draw(), random.draw()];
    Keys {
        private: privates[end],
        peer: public_key(&privates[1 - end]),
        psk: None,
    }
}

fn route(of: End, number: u8, ports: &[Vec<u16>; 2]) -> Route {
    let ip = if of == 0 {
        [192, 0, 2, 1]
    } else {
        [192, 0, 2, 2]
    };
    Route {
        local: u32::from(number),
        remote: SocketAddr::from((ip, ports[of][usize::from(number)])),
    }
}

pub fn path(number: u8) -> PathId {
    PathId::new(number).expect("a small number")
}

/// An IPv4 UDP packet that contains a number.
pub fn packet(from: End, flow: u16, number: u32, size: usize) -> Vec<u8> {
    let mut octets = vec![0; size];
    octets[0] = 0x45;
    octets[2..4].copy_from_slice(&u16::try_from(size).expect("small").to_be_bytes());
    octets[9] = 17;
    octets[12..16].copy_from_slice(&[10, 0, u8::from(from == 1), 1]);
    octets[16..20].copy_from_slice(&[10, 0, u8::from(from == 0), 1]);
    octets[20..22].copy_from_slice(&flow.to_be_bytes());
    octets[28..32].copy_from_slice(&number.to_be_bytes());
    octets
}

impl Network {
    /// Two ends with these paths. With `both_begin` both ends know the other's addresses.
    pub fn new(seed: u64, wires: Vec<[Wire; 2]>, both_begin: bool) -> Self {
        let paths = u8::try_from(wires.len()).expect("few");
        let ports = |end: u16| {
            (0..u16::from(paths))
                .map(|path| 1_000 * (end + 1) + path)
                .collect()
        };
        let mut network = Self {
            now: Instant::START,
            free: vec![[Instant::START; 2]; wires.len()],
            bad: vec![[false; 2]; wires.len()],
            wires,
            delivered: Default::default(),
            sent: Default::default(),
            refused: 0,
            size: 1_000,
            sources: Default::default(),
            epochs: [1 << 60; 2],
            roles: Default::default(),
            rules: Vec::new(),
            psks: [None; 2],
            dscp: BTreeMap::new(),
            datagrams: Default::default(),
            ports: [ports(0), ports(1)],
            without_handshakes: BTreeSet::new(),
            recorded: Vec::new(),
            hosts: Vec::new(),
            events: BTreeMap::new(),
            stream: Stream::new(seed, "network"),
            count: 0,
            seed,
            paths,
            both_begin,
            watch: None,
            wake: [None; 2],
            nonces: BTreeSet::new(),
        };
        for end in [0, 1] {
            let offset = Duration::from_millis(if end == 0 { 0 } else { seed % 7_000_000 });
            let tunnel = network.boot(end, 0, Instant::START + offset);
            network.hosts.push(Host {
                tunnel,
                offset,
                boots: 0,
                inbox: Vec::new(),
            });
        }
        network
    }

    fn boot(&self, end: End, boots: u64, now: Instant) -> Tunnel {
        let paths = (0..self.paths).map(|number| PathConfig {
            id: path(number),
            route: (end == 0 || self.both_begin).then(|| self.route(1 - end, number)),
            role: self.roles[end].get(&number).copied().unwrap_or_default(),
        });
        let config = Config {
            keys: Keys {
                psk: self.psks[end],
                ..keys(self.seed, end)
            },
            paths: paths.collect(),
            sources: self.sources[end].clone().into(),
            rules: self.rules.clone(),
            epoch: self.epochs[end],
        };
        let entropy = Seeded::new(self.seed ^ (boots << 32), if end == 0 { "a" } else { "b" });
        Tunnel::new(config, Box::new(entropy), now)
    }

    /// The address of an end on a path, as the other end sees it.
    fn route(&self, of: End, number: u8) -> Route {
        route(of, number, &self.ports)
    }

    fn local(&self, end: End) -> Instant {
        self.now + self.hosts[end].offset
    }

    /// Restarts an end, which loses all its state.
    pub fn restart(&mut self, end: End) {
        let boots = self.hosts[end].boots + 1;
        let offset = self.hosts[end].offset + Duration::from_secs(77 * boots);
        let tunnel = self.boot(end, boots, self.now + offset);
        self.hosts[end] = Host {
            tunnel,
            offset,
            boots,
            inbox: Vec::new(),
        };
        if let Some(watch) = &mut self.watch {
            watch.restart(end);
        }
    }

    /// Restarts an end, whose clock begins at this time.
    pub fn start_clock(&mut self, end: End, at: Duration) {
        self.hosts[end].offset = at;
        let (now, boots) = (self.local(end), self.hosts[end].boots);
        self.hosts[end].tunnel = self.boot(end, boots, now);
    }

    /// Removes the carrier of a path's interface at an end.
    pub fn lose_carrier(&mut self, end: End, number: u8) {
        let now = self.local(end);
        self.hosts[end].tunnel.on_carrier_loss(path(number), now);
        if let Some(watch) = &mut self.watch {
            watch.lose_carrier(end, number, self.now);
        }
    }

    /// Removes a path at an end and adds it again with another role.
    pub fn reload(&mut self, end: End, number: u8, role: Role) {
        self.roles[end].insert(number, role);
        let now = self.local(end);
        let config = PathConfig {
            id: path(number),
            route: (end == 0 || self.both_begin).then(|| self.route(1 - end, number)),
            role,
        };
        self.hosts[end].tunnel.set_path(config, now);
        if let Some(watch) = &mut self.watch {
            watch.reload(end, number);
        }
    }

    /// Gives an end the processor only once per `interval`. Arrivals in between wait, with their
    /// arrival times.
    pub fn busy(&mut self, end: End, interval: Duration) {
        self.wake[end] = Some(interval);
    }

    /// The earliest time, from `at` on, at which an end has the processor.
    fn awake(&self, end: End, at: Instant) -> Instant {
        let Some(interval) = self.wake[end] else {
            return at;
        };
        let nanos = at.saturating_since(Instant::START).as_nanos();
        // Instants are finer than nanoseconds.
        let nanos = nanos + u64::from(Instant::from_nanos(nanos) < at);
        let interval = interval.as_nanos();
        Instant::from_nanos(nanos.div_ceil(interval) * interval)
    }

    fn is_awake(&self, end: End) -> bool {
        self.awake(end, self.now) == self.now
    }

    /// Restarts both ends; `ends` set the role of the path.
    pub fn role(&mut self, ends: &[End], path: u8, role: Role) {
        for &end in ends {
            self.roles[end].insert(path, role);
        }
        self.restart(0);
        self.restart(1);
    }

    /// Restarts both ends with these rules.
    pub fn rules(&mut self, rules: Vec<Rule>) {
        self.rules = rules;
        self.restart(0);
        self.restart(1);
    }

    /// Restarts an end, which accepts only packets from these sources.
    pub fn sources(&mut self, end: End, prefixes: &[&str]) {
        let prefix = |text: &&str| {
            let (address, length) = text.split_once('/').expect("a prefix");
            let address = address.parse().expect("an address");
            Prefix::new(address, length.parse().expect("a length")).expect("no bits beyond")
        };
        self.sources[end] = prefixes.iter().map(prefix).collect();
        self.restart(end);
    }

    /// An initiation to end 1 with the correct public key of end 1, from a sender whose own key end
    /// 1 has not configured.
    pub fn forged_initiation(&self, index: u32) -> Vec<u8> {
        let stranger = Keys {
            private: [3; 32],
            ..keys(self.seed, 0)
        };
        let mut random = Seeded::new(u64::from(index), "forger");
        let identity = Identity::new(stranger.private);
        let pending =
            Pending::begin(&identity, &stranger, index, [0; 2], &mut random).expect("valid keys");
        let key = MacKey::of(&stranger.peer);
        with_mac2(path(0), index, &pending.noise, &key, None)
            .encode()
            .to_vec()
    }

    pub fn stats(&self, end: End) -> Stats {
        self.hosts[end].tunnel.stats()
    }

    pub fn tunnel(&mut self, end: End) -> &mut Tunnel {
        &mut self.hosts[end].tunnel
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    /// Schedules a packet of a flow every `interval` for `time`.
    pub fn flow(&mut self, from: End, flow: u16, interval: Duration, time: Duration) {
        let mut at = self.now;
        while at < self.now + time {
            self.schedule(at, Event::Send { from, flow });
            at = at + interval;
        }
    }

    /// Delivers octets to an end as if they had arrived on a path.
    pub fn inject(&mut self, to: End, number: u8, octets: Vec<u8>) {
        let at = self.now;
        self.schedule(
            at,
            Event::Datagram {
                to,
                path: number,
                octets,
            },
        );
    }

    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            for host in [0, 1] {
                if self.is_awake(host) {
                    self.poll(host);
                }
            }
            let timers = (0..2).filter_map(|host| {
                let Host { tunnel, offset, .. } = &self.hosts[host];
                let at = tunnel.poll_timeout()?;
                assert!(
                    at > self.local(host) || !self.is_awake(host),
                    "end {host} asks for a time that has passed"
                );
                let at = self.now + at.saturating_since(self.now + *offset);
                Some(self.awake(host, at))
            });
            let event = self.events.first_key_value().map(|(&(at, _), _)| at);
            let next = timers.chain(event).min().unwrap_or(end);
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            while let Some(entry) = self
                .events
                .first_entry()
                .filter(|entry| entry.key().0 <= self.now)
            {
                let event = entry.remove();
                self.happen(event);
            }
        }
    }

    fn happen(&mut self, event: Event) {
        let end = match event {
            Event::Datagram { to, .. } => to,
            Event::Send { from, .. } => from,
            Event::Wake { end } => {
                for (arrived, event) in std::mem::take(&mut self.hosts[end].inbox) {
                    self.take(event, arrived);
                }
                return;
            }
        };
        if self.is_awake(end) {
            return self.take(event, self.now);
        }
        if self.hosts[end].inbox.is_empty() {
            self.schedule(self.awake(end, self.now), Event::Wake { end });
        }
        self.hosts[end].inbox.push((self.now, event));
    }

    fn take(&mut self, event: Event, arrived: Instant) {
        match event {
            Event::Wake { .. } => {}
            Event::Datagram {
                to,
                path,
                mut octets,
            } => {
                let Host { tunnel, offset, .. } = &mut self.hosts[to];
                let (arrived, now) = (arrived + *offset, self.now + *offset);
                let route = route(1 - to, path, &self.ports);
                tunnel.handle(&mut octets, route, arrived, now);
                self.check_states(to, Cause::Datagram);
            }
            Event::Send { from, flow } => {
                let number = self.sent[from].entry(flow).or_insert(0);
                let mut packet = packet(from, flow, *number, self.size);
                packet[1] = self.dscp.get(&flow).copied().unwrap_or(0) << 2;
                *number += 1;
                let now = self.local(from);
                if self.hosts[from].tunnel.handle_inner(packet, now).is_err() {
                    self.refused += 1;
                }
            }
        }
    }

    fn check_states(&mut self, end: End, cause: Cause) {
        if let Some(watch) = &mut self.watch {
            let Host { tunnel, offset, .. } = &self.hosts[end];
            watch.check(end, &tunnel.stats(), cause, self.now + *offset);
        }
    }

    fn poll(&mut self, end: End) {
        let now = self.local(end);
        let mut octets = Vec::new();
        while let Some(transmit) = self.hosts[end].tunnel.poll_transmit(now, &mut octets) {
            self.check_states(end, Cause::Time);
            *self.datagrams[end]
                .entry(transmit.path.number())
                .or_insert(0) += 1;
            if octets[0] == 4 {
                assert!(
                    self.nonces.insert((end, octets[..16].to_vec())),
                    "a nonce repeats"
                );
            }
            // A datagram to an address that is no longer in use is lost.
            if transmit.route == self.route(1 - end, transmit.path.number()) {
                self.carry(end, transmit.path.number(), &octets);
            }
        }
        self.check_states(end, Cause::Time);
        while let Some(packet) = self.hosts[end].tunnel.poll_deliver(now) {
            self.delivered[end].push(Delivered {
                at: self.now,
                flow: u16::from_be_bytes([packet[20], packet[21]]),
                number: u32::from_be_bytes([packet[28], packet[29], packet[30], packet[31]]),
            });
        }
    }

    fn carry(&mut self, from: End, number: u8, octets: &[u8]) {
        self.recorded.push((1 - from, number, octets.to_vec()));
        let wire = self.wires[usize::from(number)][from];
        let mut draw = self.stream.at(self.count);
        self.count += 1;
        let free = &mut self.free[usize::from(number)][from];
        let begin = self.now.max(*free);
        let is_full = begin.saturating_since(self.now) > wire.queue;
        let bad = &mut self.bad[usize::from(number)][from];
        *bad = if wire.burst <= 1.0 {
            draw.chance(wire.loss)
        } else if *bad {
            !draw.chance(1.0 / wire.burst)
        } else {
            draw.chance(wire.loss / (wire.burst * (1.0 - wire.loss)))
        };
        let is_blocked = octets[0] != 4 && self.without_handshakes.contains(&number);
        if wire.is_dead || is_blocked || octets.len() > wire.mtu || *bad || is_full {
            return;
        }
        *free = begin + Duration::from_secs_f64(octets.len() as f64 / wire.rate);
        let sent = *free;
        let copies = 1 + u32::from(draw.chance(wire.duplicate));
        for _ in 0..copies {
            let at = sent + wire.delay + wire.jitter.mul_f64(draw.uniform());
            let mut octets = octets.to_vec();
            if draw.chance(wire.corrupt) {
                let at = usize::try_from(draw.bits()).expect("32 bits") % octets.len();
                octets[at] ^= 1 << (draw.bits() % 8);
            }
            self.schedule(
                at,
                Event::Datagram {
                    to: 1 - from,
                    path: number,
                    octets,
                },
            );
        }
    }

    /// Checks that each packet was delivered at most once; returns their number.
    pub fn check_once(&self, end: End) -> usize {
        let mut seen = BTreeSet::new();
        for packet in &self.delivered[end] {
            assert!(
                seen.insert((packet.flow, packet.number)),
                "{packet:?} twice"
            );
        }
        seen.len()
    }

    /// The number of packets delivered after a later one of their flow.
    pub fn out_of_order(&self, end: End) -> u64 {
        let mut highest = BTreeMap::new();
        let mut count = 0;
        for packet in &self.delivered[end] {
            let before = highest.entry(packet.flow).or_insert(packet.number);
            count += u64::from(packet.number < *before);
            *before = packet.number.max(*before);
        }
        count
    }

    /// The longest time without a delivery at an end, from `since` until now.
    pub fn gap(&self, end: End, since: Instant) -> Duration {
        let times = self.delivered[end]
            .iter()
            .map(|packet| packet.at)
            .filter(|&at| at >= since);
        let mut before = since;
        let mut gap = Duration::ZERO;
        for at in times.chain([self.now]) {
            gap = gap.max(at.saturating_since(before));
            before = at;
        }
        gap
    }
}
