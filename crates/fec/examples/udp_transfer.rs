//! A transfer between two programs that terminate TCP themselves, with and without error
//! correction: `udp_transfer [OCTETS [LOSS [DELAY_MS [SEED]]]]`.
//!
//! Sender and receiver are endpoints of [`anabranch_tcp`], each with its own UDP socket on the
//! loopback interface; a datagram carries one IP packet. [`Protected`] adds the layer to an
//! endpoint. Between them a relay delays every datagram and loses those towards the receiver with
//! probability LOSS. All three run in this process, in real time.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a user of the library has a clock, sockets and threads"
)]

use std::{
    collections::VecDeque,
    error::Error,
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant as Clock},
};

use anabranch_congestion as cc;
use anabranch_core::{
    body::{Body as _, Octets},
    packet::Ecn,
    units::{Instant, text::Limit},
};
use anabranch_fec::{Config, Protected};
use anabranch_tcp::{Endpoint, Profile, Role};
use anabranch_wire::{IpHeader, Ports, Prefix, Transport, Version, decode, decode_redundant};
use anabranch_wire::{encode, encode_redundant};

/// The longest wait for a datagram: the other end may have finished meanwhile.
const PATIENCE: Duration = Duration::from_millis(5);
/// Time after which a transfer is given up.
const LONGEST: Duration = Duration::from_secs(120);
const LARGEST: usize = 65_536;

/// The relay: the delay of both directions, and the loss of datagrams towards the receiver.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    /// Probability of a loss.
    pub loss: f64,
    /// One-way delay.
    pub delay: Duration,
    /// Seed of the losses.
    pub seed: u64,
}

/// The result of a transfer.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Time until the receiver had all octets.
    pub seconds: f64,
    /// Packets with data or redundancy that the relay lost.
    pub lost: u64,
    /// Packets that the sender retransmitted.
    pub retransmitted: u64,
    /// Redundant packets that the sender sent.
    pub redundant: u64,
    /// Packets that the receiver rebuilt.
    pub rebuilt: u64,
}

/// An endpoint, with the layer or without.
#[derive(Debug)]
enum End {
    Plain(Box<Endpoint<Octets>>),
    Protected(Box<Protected<Octets>>),
}

impl End {
    fn new(role: Role, initial: u32, config: &Config) -> Result<Self, Box<dyn Error>> {
        let mut settings = Profile::named("linux").ok_or("no such profile")?.settings;
        // A flight that fits into the buffer of a UDP socket.
        settings.send_buffer = Limit::Packets(64);
        let settings = Arc::new(settings);
        let control = cc::Config::Cubic(cc::cubic::Params::default()).build(&settings.init());
        let mut tcp = Endpoint::new(&settings, control, role, initial);
        tcp.set_auto_read(false);
        Ok(match config {
            Config::Off => Self::Plain(Box::new(tcp)),
            _ => Self::Protected(Box::new(Protected::new(tcp, config))),
        })
    }

    fn tcp(&mut self) -> &mut Endpoint<Octets> {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Protected(both) => both.tcp_mut(),
        }
    }

    fn deadline(&self) -> Instant {
        match self {
            Self::Plain(tcp) => tcp.deadline(),
            Self::Protected(both) => both.deadline(),
        }
    }

    fn on_deadline(&mut self, now: Instant) {
        match self {
            Self::Plain(tcp) => tcp.on_deadline(now),
            Self::Protected(both) => both.on_deadline(now),
        }
    }

    /// Processes a datagram; damaged and foreign ones are dropped.
    fn on_datagram(&mut self, now: Instant, datagram: &[u8]) {
        let packet = match decode_redundant(datagram) {
            Ok(Some((_, _, redundant))) => Transport::Redundant(redundant),
            Ok(None) => match decode(datagram) {
                Ok(decoded) => Transport::Tcp(decoded.segment),
                Err(_) => return,
            },
            Err(_) => return,
        };
        match (self, packet) {
            (Self::Plain(tcp), Transport::Tcp(segment)) => {
                tcp.on_segment(now, &segment, Ecn::NotEct);
            }
            (Self::Plain(_), _) => {}
            (Self::Protected(both), packet) => both.on_packet(now, &packet, Ecn::NotEct),
        }
    }

    /// The next packet to send.
    fn next_packet(&mut self, now: Instant) -> Option<Transport<Octets>> {
        match self {
            Self::Plain(tcp) => tcp
                .poll_transmit(now)
                .map(|out| Transport::Tcp(out.segment)),
            Self::Protected(both) => both.poll_transmit(now).map(|out| out.transport),
        }
    }
}

/// The headers of the packets of one end; the addresses are private to the two programs.
fn headers(role: Role) -> (IpHeader, Ports) {
    let ends = [([10, 0, 0, 1], 1024), ([10, 0, 0, 2], 5001)];
    let [near, far] = if role == Role::Active {
        ends
    } else {
        [ends[1], ends[0]]
    };
    let version = Version::V4 {
        source: near.0,
        destination: far.0,
        identification: 0,
        dont_fragment: true,
    };
    let ip = IpHeader {
        version,
        dscp: 0,
        ecn: Ecn::NotEct,
        hop_limit: 64,
    };
    (
        ip,
        Ports {
            source: near.1,
            destination: far.1,
        },
    )
}

/// One program: an endpoint, its socket, its clock.
struct Program {
    end: End,
    role: Role,
    socket: UdpSocket,
    began: Clock,
    is_done: Arc<AtomicBool>,
}

impl Program {
    fn now(&self) -> Instant {
        let nanos = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Instant::from_nanos(nanos)
    }

    /// Runs until the transfer is done; `each` is the application, called after every event.
    fn run(
        mut self,
        mut each: impl FnMut(&mut End, Instant) -> bool,
    ) -> Result<End, Box<dyn Error + Send + Sync>> {
        let mut datagram = vec![0; LARGEST];
        while !self.is_done.load(Ordering::Relaxed) && self.began.elapsed() < LONGEST {
            let now = self.now();
            if self.end.deadline() <= now {
                self.end.on_deadline(now);
            }
            if each(&mut self.end, now) {
                self.is_done.store(true, Ordering::Relaxed);
            }
            self.send(now)?;
            let due = self.end.deadline().saturating_since(now).as_nanos();
            let wait = PATIENCE.min(Duration::from_nanos(due.max(1_000)));
            self.socket.set_read_timeout(Some(wait))?;
            match self.socket.recv(&mut datagram) {
                Ok(length) => {
                    let now = self.now();
                    self.end.on_datagram(now, &datagram[..length]);
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.end)
    }

    fn send(&mut self, now: Instant) -> Result<(), Box<dyn Error + Send + Sync>> {
        let (ip, ports) = headers(self.role);
        let mut octets = Vec::new();
        while let Some(packet) = self.end.next_packet(now) {
            octets.clear();
            match packet {
                Transport::Tcp(segment) => encode(&ip, ports, &segment, &mut octets)?,
                Transport::Redundant(redundant) => {
                    encode_redundant(&ip, ports, &redundant, Prefix::whole(&mut octets))?;
                }
                Transport::Datagram(_) => continue,
            }
            self.socket.send(&octets)?;
        }
        Ok(())
    }
}

/// The relay between sender and receiver; returns the number of lost datagrams.
fn relay(
    socket: &UdpSocket,
    path: Path,
    is_done: &AtomicBool,
) -> Result<u64, Box<dyn Error + Send + Sync>> {
    let (mut sender, mut receiver): (Option<SocketAddr>, Option<SocketAddr>) = (None, None);
    let mut waiting: VecDeque<(Clock, SocketAddr, Vec<u8>)> = VecDeque::new();
    let mut datagram = vec![0; LARGEST];
    let (mut random, mut lost) = (path.seed, 0);
    while !is_done.load(Ordering::Relaxed) {
        let due = waiting.front().map_or(PATIENCE, |one| {
            one.0.saturating_duration_since(Clock::now())
        });
        socket.set_read_timeout(Some(due.clamp(Duration::from_micros(1), PATIENCE)))?;
        match socket.recv_from(&mut datagram) {
            // An empty datagram is the receiver's, so that its address is known.
            Ok((0, from)) => receiver = Some(from),
            Ok((length, from)) => {
                let to = if Some(from) == receiver {
                    sender
                } else {
                    sender = Some(from);
                    receiver
                };
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                #[expect(clippy::cast_precision_loss, reason = "32 bits fit")]
                let drawn = (random >> 32) as f64 / f64::from(u32::MAX);
                if Some(from) != receiver && drawn < path.loss {
                    lost += 1;
                } else if let Some(to) = to {
                    waiting.push_back((Clock::now() + path.delay, to, datagram[..length].to_vec()));
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error.into()),
        }
        while waiting.front().is_some_and(|one| one.0 <= Clock::now()) {
            if let Some((_, to, octets)) = waiting.pop_front() {
                socket.send_to(&octets, to)?;
            }
        }
    }
    Ok(lost)
}

/// Transfers `octets` over a path with this error correction.
///
/// # Errors
/// A socket fails, the transfer takes too long, or the receiver has other octets.
pub fn transfer(octets: u32, path: Path, config: &Config) -> Result<Outcome, Box<dyn Error>> {
    let local = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    // Open until both ends notice that the transfer is done: a closed socket would refuse their datagrams.
    let relay_socket = Arc::new(local()?);
    let (near, far) = (local()?, local()?);
    near.connect(relay_socket.local_addr()?)?;
    far.connect(relay_socket.local_addr()?)?;
    far.send(&[])?;
    let is_done = Arc::new(AtomicBool::new(false));
    let began = Clock::now();
    let program = |role, initial, socket| -> Result<Program, Box<dyn Error>> {
        Ok(Program {
            end: End::new(role, initial, config)?,
            role,
            socket,
            began,
            is_done: Arc::clone(&is_done),
        })
    };
    let (mut sending, receiving) = (
        program(Role::Active, 1, near)?,
        program(Role::Passive, 2, far)?,
    );
    let content = Octets::filler(octets);
    sending.end.tcp().write_all(content.clone());
    sending.end.tcp().open(Instant::START);
    let (socket, relay_done) = (Arc::clone(&relay_socket), Arc::clone(&is_done));
    let between = thread::spawn(move || relay(&socket, path, &relay_done));
    let sender = thread::spawn(move || sending.run(|_, _| false));
    let mut got = Octets::default();
    let receiver = receiving.run(|end, now| {
        got.append(&end.tcp().read(now, u64::from(octets)));
        got.len() == octets
    });
    let seconds = began.elapsed().as_secs_f64();
    is_done.store(true, Ordering::Relaxed);
    let failed = "a thread panicked";
    let lost = between
        .join()
        .map_err(|_| failed)?
        .map_err(|e| e.to_string())?;
    let mut sender = sender
        .join()
        .map_err(|_| failed)?
        .map_err(|e| e.to_string())?;
    let receiver = receiver.map_err(|e| e.to_string())?;
    if got != content {
        return Err(format!("{} of {octets} octets arrived unchanged", got.len()).into());
    }
    let retransmitted = sender.tcp().stats().retransmitted_packets;
    let [redundant, rebuilt] = match (&sender, &receiver) {
        (End::Protected(near), End::Protected(far)) => {
            [near.stats().redundant_sent, far.stats().recovered_packets]
        }
        _ => [0, 0],
    };
    Ok(Outcome {
        seconds,
        lost,
        retransmitted,
        redundant,
        rebuilt,
    })
}

/// A sliding window whose redundancy follows the losses, as in `docs/studies/fec-frontier.md`.
///
/// # Errors
/// Never: the text is fixed.
pub fn adaptive() -> Result<Config, serde_json::Error> {
    serde_json::from_str(
        r#"{ "sliding-rlc": { "redundancy": "loss-adaptive", "release": "paced" } }"#,
    )
}

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let argument = |place: usize, default: f64| -> Result<f64, Box<dyn Error>> {
        given.get(place).map_or(Ok(default), |text| {
            let number = text.parse::<f64>().ok().filter(|n| *n >= 0.0 && *n < 1e9);
            number.ok_or_else(|| format!("{text:?}: a number was expected: udp_transfer [OCTETS [LOSS [DELAY_MS [SEED]]]]").into())
        })
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked above"
    )]
    let (octets, seed) = (argument(0, 1e6)? as u32, argument(3, 1.0)? as u64);
    let path = Path {
        loss: argument(1, 0.02)?,
        delay: Duration::from_secs_f64(argument(2, 20.0)? / 1e3),
        seed,
    };
    for (name, config) in [
        ("plain", Config::Off),
        ("with error correction", adaptive()?),
    ] {
        let done = transfer(octets, path, &config)?;
        println!(
            "{name}: {:.2} s, {} packets lost, {} retransmitted, {} redundant, {} rebuilt",
            done.seconds, done.lost, done.retransmitted, done.redundant, done.rebuilt
        );
    }
    Ok(())
}
