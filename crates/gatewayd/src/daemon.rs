//! The daemon: moves packets and datagrams between the kernel and the tunnels, in one thread.

use std::{
    io::{self, Read},
    net::IpAddr,
    os::unix::net::UnixStream,
    time,
};

use anabranch_core::{
    system::words,
    units::{Duration, Instant},
};
use anabranch_gateway::{
    path::{Route, State},
    tunnel::Refused,
    wire::Message,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::{
    batch::Batches,
    config::Config,
    device::{self, Batch, Device, HEADROOM},
    metrics::Metrics,
    peers::{self, Peer},
    status::{self, Dropped, PathReport, PeerDropped, PeerReport, Rejected, Report, StatusSocket},
    ways::Ways,
};

/// Batches of packets that are taken from the interface before the others have their turn.
const BATCHES: usize = 16;
/// Reads of one socket before the others have their turn.
const DRAIN: usize = 1024;
/// Octets of the largest packet or datagram.
const LARGEST: usize = 1 << 16;

/// What moves the packets.
struct Gateway {
    start: time::Instant,
    interface: String,
    device: Device,
    ways: Ways,
    peers: Vec<Peer>,
    dropped: Dropped,
    rejected: Rejected,
    buffer: Vec<u8>,
    received: Vec<u8>,
    batch: Batch,
    batches: Batches,
    delivered: Vec<Vec<u8>>,
}

/// Runs until a signal ends it.
///
/// # Errors
/// A message if the system refuses what the configuration asks for.
pub fn up(config: &Config) -> Result<(), String> {
    let mut signal = signals().map_err(|error| format!("signals: {}", words(&error)))?;
    let start = time::Instant::now();
    let remotes = peers::resolve(config)?;
    let ways = Ways::open(config, &remotes.concat())?;
    let peers = config.peer.0.iter().zip(&remotes);
    let peers = peers
        .map(|(peer, remotes)| peers::peer(config, peer, remotes, &ways, Instant::START))
        .collect::<Result<Vec<_>, _>>()?;
    let status = StatusSocket::open(status::path_of(config))?;
    let mut metrics = config.status.metrics.map(Metrics::open).transpose()?;
    let mtu = peers.iter().map(|peer| peer.tunnel.inner_mtu()).min();
    let mut gateway = Gateway {
        start,
        interface: config.gateway.interface.0.clone(),
        device: Device::new(config, octets(mtu.unwrap_or_default()))?,
        ways,
        peers,
        dropped: Dropped::default(),
        rejected: Rejected::default(),
        buffer: Vec::new(),
        received: vec![0; LARGEST],
        batch: Batch::default(),
        batches: Batches::default(),
        delivered: Vec::new(),
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
            for socket in ready.sockets {
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
        since(self.start)
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
        let sockets = self.ways.sockets();
        descriptors.extend(sockets.map(|(_, socket)| PollFd::new(socket, PollFlags::IN)));
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
            sockets: self
                .ways
                .sockets()
                .zip(ready.by_ref())
                .filter_map(|((number, _), is_ready)| is_ready.then_some(number))
                .collect(),
            client: ready.any(|is_ready| is_ready),
        })
    }

    fn take_packets(&mut self) -> io::Result<()> {
        let mut batch = std::mem::take(&mut self.batch);
        let taken = self.take_batches(&mut batch);
        self.batch = batch;
        taken
    }

    fn take_batches(&mut self, batch: &mut Batch) -> io::Result<()> {
        for _ in 0..BATCHES {
            match self.device.receive(batch) {
                Ok(()) => batch.packets().for_each(|packet| self.on_packet(packet)),
                Err(error) if is_transient(&error) => break,
                // A packet that cannot be split.
                Err(error) if error.raw_os_error().is_none() => self.dropped.not_ip += 1,
                // The interface was deleted.
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn on_packet(&mut self, packet: &[u8]) {
        let now = self.now();
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

    /// Takes all that waits, within reason: a report that waits behind other datagrams would make its path seem silent.
    fn take_datagrams(&mut self, local: u32) {
        let mut buffer = std::mem::take(&mut self.received);
        for _ in 0..DRAIN {
            let Some(socket) = self.ways.socket(local) else {
                break;
            };
            let Ok(received) = socket.receive(&mut buffer) else {
                break;
            };
            let now = self.now();
            let age = Duration::from_nanos(u64::try_from(received.age.as_nanos()).unwrap_or(0));
            let arrived = Instant::START + now.saturating_since(Instant::START).saturating_sub(age);
            let remote = received.from;
            for datagram in buffer[..received.length].chunks_mut(received.segment) {
                self.on_datagram(datagram, Route { local, remote }, arrived, now);
            }
        }
        self.received = buffer;
    }

    /// Finds the tunnel of a datagram by the index that it names. An initiation names none: each tunnel sees it, and the one whose key opens it answers.
    fn on_datagram(&mut self, datagram: &mut [u8], route: Route, arrived: Instant, now: Instant) {
        let (index, path) = match Message::decode(datagram) {
            Err(_) => {
                self.rejected.malformed += 1;
                return;
            }
            Ok(Message::Initiation(_)) => {
                let is_refused = |peer: &mut Peer| {
                    let refused = |peer: &Peer| peer.tunnel.stats().counters.refused_initiations;
                    let before = refused(peer);
                    peer.tunnel.handle(datagram, route, arrived, now);
                    refused(peer) > before
                };
                let refused = self
                    .peers
                    .iter_mut()
                    .map(is_refused)
                    .filter(|refused| *refused);
                if refused.count() == self.peers.len() {
                    self.rejected.unknown_key += 1;
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
            self.rejected.unknown_session += 1;
            return;
        };
        if let Some(path) = path {
            peer.traffic[path.index()].received += datagram.len() as u64;
        }
        peer.tunnel.handle(datagram, route, arrived, now);
    }

    /// Sends and delivers what the tunnels have.
    fn flush(&mut self) {
        let start = self.start;
        let mut delivered = std::mem::take(&mut self.delivered);
        for peer in &mut self.peers {
            while let Some(packet) = peer.tunnel.poll_deliver(since(start)) {
                let mut buffer = vec![0; HEADROOM];
                buffer.extend_from_slice(&packet);
                delivered.push(buffer);
                if delivered.len() == device::BATCH {
                    self.dropped.not_delivered += deliver(&mut self.device, &mut delivered);
                }
            }
            while let Some(transmit) = peer.tunnel.poll_transmit(since(start), &mut self.buffer) {
                peer.traffic[transmit.path.index()].sent += self.buffer.len() as u64;
                self.batches
                    .add(transmit.route, &self.buffer, &mut self.ways);
            }
        }
        self.dropped.not_delivered += deliver(&mut self.device, &mut delivered);
        self.delivered = delivered;
        self.batches.flush(&mut self.ways);
        self.dropped.not_sent = self.batches.not_sent;
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
        let mut rejected = self.rejected;
        for counters in self.peers.iter().map(|peer| peer.tunnel.stats().counters) {
            rejected.replayed += counters.replayed;
            rejected.unauthentic += counters.unauthentic;
            rejected.malformed += counters.malformed;
            rejected.foreign_sources += counters.foreign_sources;
        }
        let peers = self.peers.iter();
        Report {
            interface: self.interface.clone(),
            mtu: self.device.mtu(),
            peers: peers
                .map(|peer| (peer.name.clone(), self.report_of(peer)))
                .collect(),
            rejected,
            dropped: self.dropped,
        }
    }

    fn report_of(&self, peer: &Peer) -> PeerReport {
        let stats = peer.tunnel.stats();
        let paths = stats.paths.iter().map(|path| {
            let report = PathReport {
                state: state(path.state).to_owned(),
                rtt_ms: path.srtt.map(|srtt| srtt.as_secs_f64() * 1e3),
                rate_mbit_s: path.rate * 8e-6,
                loss: path.loss,
                mtu: path.mtu,
                sent_bytes: peer.traffic[path.path.index()].sent,
                received_bytes: peer.traffic[path.path.index()].received,
                deaths: path.deaths,
            };
            (self.ways.name(path.path), report)
        });
        PeerReport {
            state: if stats.is_up { "up" } else { "down" }.to_owned(),
            paths: paths.collect(),
            repaired_packets: stats.counters.retransmitted,
            reordered_packets: stats.order.late,
            sent_packets: stats.counters.entered,
            received_packets: stats.order.delivered,
            sessions: stats.sessions,
            restarts: stats.counters.peer_restarts,
            dropped: PeerDropped {
                queue: stats.queue_dropped,
                unsendable: stats.counters.unsendable,
                duplicates: stats.order.duplicates,
            },
        }
    }
}

fn since(start: time::Instant) -> Instant {
    let nanos = start.elapsed().as_nanos();
    Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Gives packets to the kernel. How often it refused.
fn deliver(device: &mut Device, packets: &mut Vec<Vec<u8>>) -> u64 {
    if packets.is_empty() {
        return 0;
    }
    let refused = device.send(packets).is_err();
    packets.clear();
    refused.into()
}

/// What can be read.
struct Ready {
    signal: bool,
    device: bool,
    /// Sockets by number.
    sockets: Vec<u32>,
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
