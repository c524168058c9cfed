//! The daemon: moves packets and datagrams between the kernel and the tunnels, in one thread.

use std::{
    io::{self, Read},
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    os::unix::net::UnixStream,
    time,
};

use anabranch_core::{
    system::words,
    units::{Duration, Instant},
};
use anabranch_gateway::{
    crypto::{Entropy, Keys},
    inner,
    path::{Route, State},
    policy,
    tunnel::{self, PathConfig, Refused, Tunnel},
    wire::{Message, PATHS, PathId},
};
use ipnet::IpNet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::{
    config::{Config, Endpoint, Role},
    device::Device,
    metrics::Metrics,
    socket::{self, PathSocket},
    status::{self, Dropped, PathReport, PeerDropped, PeerReport, Report, StatusSocket},
};

/// Packets that are taken from one descriptor before the others have their turn.
const BATCH: usize = 64;
/// Octets of the largest packet or datagram.
const LARGEST: usize = 1 << 16;

/// The kernel's random octets.
struct System;

impl Entropy for System {
    fn fill(&mut self, octets: &mut [u8]) {
        // A gateway without randomness must not send: its nonces and keys would repeat.
        getrandom::fill(octets).expect("the kernel has random octets");
    }
}

/// Octets of one path.
#[derive(Debug, Clone, Copy, Default)]
struct Traffic {
    sent: u64,
    received: u64,
}

/// Another end.
struct Peer {
    name: String,
    allowed: Vec<IpNet>,
    tunnel: Tunnel,
    traffic: [Traffic; PATHS],
}

/// What moves the packets.
struct Gateway {
    start: time::Instant,
    interface: String,
    device: Device,
    sockets: Vec<PathSocket>,
    paths: Vec<String>,
    peers: Vec<Peer>,
    dropped: Dropped,
    buffer: Vec<u8>,
}

/// Runs until a signal ends it.
///
/// # Errors
/// A message if the system refuses what the configuration asks for.
pub fn up(config: &Config) -> Result<(), String> {
    let mut signal = signals().map_err(|error| format!("signals: {}", words(&error)))?;
    let start = time::Instant::now();
    let peers = peers(config)?;
    let sockets = socket::open(config)?;
    let status = StatusSocket::open(status::path_of(config))?;
    let mut metrics = config.status.metrics.map(Metrics::open).transpose()?;
    let mtu = peers.iter().map(|peer| peer.tunnel.inner_mtu()).min();
    let mut gateway = Gateway {
        start,
        interface: config.tunnel.interface.0.clone(),
        device: Device::new(config, octets(mtu.unwrap_or_default()))?,
        sockets,
        paths: config.path.names().map(str::to_owned).collect(),
        peers,
        dropped: Dropped::default(),
        buffer: vec![0; LARGEST],
    };
    eprintln!("{}", gateway.interface.clone() + " is up");
    gateway
        .run(&mut signal, &status, metrics.as_mut())
        .map_err(|error| format!("{}: {}", gateway.interface, words(&error)))
}

/// Becomes readable when the daemon is to end.
fn signals() -> io::Result<UnixStream> {
    let (read, write) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT] {
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    read.set_nonblocking(true)?;
    Ok(read)
}

fn peers(config: &Config) -> Result<Vec<Peer>, String> {
    let peers = config.peer.0.iter().map(|(name, peer)| {
        let secret = config.tunnel.secret.0.as_ref();
        let keys = Keys {
            private: secret.ok_or("there is no private key")?.0,
            peer: peer.public_key.0,
            psk: peer.preshared.0.as_ref().map(|key| key.0),
        };
        let allowed: Vec<IpNet> = peer.allowed.iter().map(|prefix| prefix.0.trunc()).collect();
        let source = |net: &IpNet| inner::Prefix::new(net.addr(), net.prefix_len());
        let tunnel = tunnel::Config {
            keys,
            paths: paths(config, &peer.endpoint)?,
            sources: allowed.iter().filter_map(source).collect(),
            rules: Vec::new(),
        };
        Ok(Peer {
            name: name.clone(),
            allowed,
            tunnel: Tunnel::new(tunnel, Box::new(System), Instant::START),
            traffic: [Traffic::default(); PATHS],
        })
    });
    peers.collect()
}

/// Path `i` goes to endpoint `i`. Where there are fewer endpoints they are used in turn; where no path is configured there is one for each endpoint.
fn paths(config: &Config, endpoints: &[Endpoint]) -> Result<Vec<PathConfig>, String> {
    let remotes = endpoints
        .iter()
        .map(resolve)
        .collect::<Result<Vec<_>, _>>()?;
    let ways = &config.path.0;
    let count = if ways.is_empty() {
        remotes.len()
    } else {
        ways.len()
    };
    let mut paths = Vec::with_capacity(count);
    for (i, number) in (0..count).zip(0_u8..) {
        let id = PathId::new(number)
            .ok_or_else(|| format!("a tunnel has {PATHS} paths at most, not {count}"))?;
        let local = if ways.is_empty() { 0 } else { number };
        let remote = (!remotes.is_empty()).then(|| remotes[i % remotes.len()]);
        paths.push(PathConfig {
            id,
            route: remote.map(|remote| Route {
                local: local.into(),
                remote,
            }),
            role: ways.get(i).map_or(policy::Role::Active, |(_, way)| match way.role {
                Role::Active => policy::Role::Active,
                Role::Backup => policy::Role::Backup,
                Role::Metered => policy::Role::Metered,
            }),
        });
    }
    Ok(paths)
}

fn resolve(endpoint: &Endpoint) -> Result<SocketAddr, String> {
    match endpoint {
        Endpoint::Address(address) => Ok(*address),
        Endpoint::Name(host, port) => (host.as_str(), *port)
            .to_socket_addrs()
            .map_err(|error| format!("{endpoint}: {}", words(&error)))?
            .next()
            .ok_or_else(|| format!("{endpoint}: the name has no address")),
    }
}

impl Gateway {
    fn run(
        &mut self,
        signal: &mut UnixStream,
        status: &StatusSocket,
        mut metrics: Option<&mut Metrics>,
    ) -> io::Result<()> {
        loop {
            self.flush();
            self.follow_mtu()?;
            let ready = self.wait(signal, status, metrics.as_deref())?;
            if ready.signal && signal.read(&mut [0]).is_ok() {
                return Ok(());
            }
            if ready.device {
                self.take_packets()?;
            }
            for (socket, _) in ready
                .sockets
                .iter()
                .enumerate()
                .filter(|(_, ready)| **ready)
            {
                self.take_datagrams(socket);
            }
            if ready.client {
                status.serve(|| self.report());
                if let Some(metrics) = metrics.as_deref_mut() {
                    metrics.serve(|| self.report());
                }
            }
        }
    }

    fn now(&self) -> Instant {
        let nanos = self.start.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn wait(
        &self,
        signal: &UnixStream,
        status: &StatusSocket,
        metrics: Option<&Metrics>,
    ) -> io::Result<Ready> {
        let mut descriptors = vec![
            PollFd::new(signal, PollFlags::IN),
            PollFd::new(&self.device, PollFlags::IN),
        ];
        let sockets = self.sockets.iter();
        descriptors.extend(sockets.map(|socket| PollFd::new(socket, PollFlags::IN)));
        descriptors.push(PollFd::new(status, PollFlags::IN));
        let scrapers = metrics.iter().flat_map(|metrics| metrics.descriptors());
        descriptors.extend(scrapers.map(|client| PollFd::from_borrowed_fd(client, PollFlags::IN)));
        let due = self
            .peers
            .iter()
            .filter_map(|peer| peer.tunnel.poll_timeout());
        let timeout = due.min().map(|due| due.saturating_since(self.now()));
        let timeout = timeout.map(timespec);
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = descriptors
            .iter()
            .map(|polled| !polled.revents().is_empty());
        Ok(Ready {
            signal: ready.next().unwrap_or_default(),
            device: ready.next().unwrap_or_default(),
            sockets: ready.by_ref().take(self.sockets.len()).collect(),
            client: ready.any(|is_ready| is_ready),
        })
    }

    fn take_packets(&mut self) -> io::Result<()> {
        for _ in 0..BATCH {
            match self.device.receive(&mut self.buffer) {
                Ok(length) => self.on_packet(length),
                Err(error) if is_transient(&error) => break,
                // The interface was deleted.
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn on_packet(&mut self, length: usize) {
        let now = self.now();
        let packet = &self.buffer[..length];
        let Some(destination) = destination(packet) else {
            self.dropped.not_ip += 1;
            return;
        };
        let peer = self
            .peers
            .iter_mut()
            .find(|peer| peer.allowed.iter().any(|net| net.contains(&destination)));
        let Some(peer) = peer else {
            self.dropped.no_peer += 1;
            return;
        };
        match peer.tunnel.handle_inner(packet.to_vec(), now) {
            Ok(()) => {}
            Err(Refused::NotIp) => self.dropped.not_ip += 1,
            Err(Refused::TooBig(_)) => self.dropped.too_big += 1,
        }
    }

    fn take_datagrams(&mut self, socket: usize) {
        for _ in 0..BATCH {
            match self.sockets[socket].receive(&mut self.buffer) {
                Ok((length, remote)) => {
                    let local = u32::try_from(socket).unwrap_or_default();
                    self.on_datagram(length, Route { local, remote });
                }
                Err(_) => return,
            }
        }
    }

    /// Finds the tunnel of a datagram by the index that it names. An initiation names none: each tunnel sees it, and the one whose key opens it answers.
    fn on_datagram(&mut self, length: usize, route: Route) {
        let now = self.now();
        let datagram = &mut self.buffer[..length];
        let (index, path) = match Message::decode(datagram) {
            Err(_) => {
                self.dropped.malformed += 1;
                return;
            }
            Ok(Message::Initiation(_)) => {
                let is_refused = |peer: &mut Peer| {
                    let refused = |peer: &Peer| peer.tunnel.stats().counters.refused_initiations;
                    let before = refused(peer);
                    peer.tunnel.handle(datagram, route, now);
                    refused(peer) > before
                };
                let refused = self
                    .peers
                    .iter_mut()
                    .map(is_refused)
                    .filter(|refused| *refused);
                if refused.count() == self.peers.len() {
                    self.dropped.unknown_key += 1;
                }
                return;
            }
            Ok(Message::Response(response)) => (response.receiver, None),
            Ok(Message::CookieReply(reply)) => (reply.receiver, None),
            Ok(Message::Data(header)) => (header.receiver, Some(header.path)),
        };
        let Some(peer) = self
            .peers
            .iter_mut()
            .find(|peer| peer.tunnel.has_index(index))
        else {
            self.dropped.unknown_session += 1;
            return;
        };
        if let Some(path) = path {
            peer.traffic[path.index()].received += length as u64;
        }
        peer.tunnel.handle(datagram, route, now);
    }

    /// Sends and delivers what the tunnels have.
    fn flush(&mut self) {
        let now = self.now();
        for peer in &mut self.peers {
            while let Some(packet) = peer.tunnel.poll_deliver(now) {
                if self.device.send(&packet).is_err() {
                    self.dropped.not_delivered += 1;
                }
            }
            while let Some(transmit) = peer.tunnel.poll_transmit(now, &mut self.buffer) {
                peer.traffic[transmit.path.index()].sent += self.buffer.len() as u64;
                let socket = self.sockets.get(transmit.route.local as usize);
                let sent = socket.map(|socket| socket.send(&self.buffer, transmit.route.remote));
                // The tunnel detects lost datagrams; a full socket buffer is one more cause.
                if !matches!(sent, Some(Ok(()))) {
                    self.dropped.not_sent += 1;
                }
            }
        }
        self.buffer.resize(LARGEST, 0);
    }

    /// The interface's MTU is the smallest of the tunnels that are up, so that the kernel tells senders.
    fn follow_mtu(&mut self) -> io::Result<()> {
        let up = self.peers.iter().filter(|peer| peer.tunnel.stats().is_up);
        match up.map(|peer| peer.tunnel.inner_mtu()).min() {
            Some(mtu) => self.device.set_mtu(octets(mtu)),
            None => Ok(()),
        }
    }

    fn report(&self) -> Report {
        Report {
            interface: self.interface.clone(),
            mtu: self.device.mtu(),
            dropped: self.dropped,
            peers: self.peers.iter().map(|peer| self.report_of(peer)).collect(),
        }
    }

    fn report_of(&self, peer: &Peer) -> PeerReport {
        let stats = peer.tunnel.stats();
        let paths = stats.paths.iter().map(|path| PathReport {
            name: self
                .paths
                .get(path.path.index())
                .cloned()
                .unwrap_or_else(|| path.path.number().to_string()),
            state: state(path.state).to_owned(),
            rate_mbit_s: path.rate * 8e-6,
            rtt_ms: path.srtt.map(|srtt| srtt.as_secs_f64() * 1e3),
            loss: path.loss,
            datagram_octets: path.mtu,
            sent_octets: peer.traffic[path.path.index()].sent,
            received_octets: peer.traffic[path.path.index()].received,
            deaths: path.deaths,
        });
        PeerReport {
            name: peer.name.clone(),
            up: stats.is_up,
            sessions: stats.sessions,
            restarts: stats.counters.peer_restarts,
            packets_sent: stats.counters.entered,
            packets_received: stats.order.delivered,
            retransmitted: stats.counters.retransmitted,
            dropped: PeerDropped {
                unauthentic: stats.counters.unauthentic,
                malformed: stats.counters.malformed,
                foreign_sources: stats.counters.foreign_sources,
                queue: stats.queue_dropped,
                unsendable: stats.counters.unsendable,
                duplicates: stats.order.duplicates,
            },
            paths: paths.collect(),
        }
    }
}

/// What can be read.
struct Ready {
    signal: bool,
    device: bool,
    sockets: Vec<bool>,
    /// A client of the status socket or of the metrics.
    client: bool,
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

fn timespec(wait: Duration) -> Timespec {
    let nanos = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
    Timespec {
        tv_sec: nanos / 1_000_000_000,
        tv_nsec: nanos % 1_000_000_000,
    }
}

/// A size that the kernel takes as an MTU.
fn octets(mtu: usize) -> u16 {
    u16::try_from(mtu).unwrap_or(u16::MAX)
}

fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(packet.get(16..20)?.first_chunk::<4>().copied()?.into()),
        6 => Some(packet.get(24..40)?.first_chunk::<16>().copied()?.into()),
        _ => None,
    }
}

fn state(state: State) -> &'static str {
    match state {
        State::Validating { .. } => "validating",
        State::Active => "active",
        State::Standby => "standby",
        State::Suspect => "suspect",
        State::Dead { .. } => "dead",
    }
}
