//! Two endpoints with error correction, and a scripted network between them.
#![allow(dead_code, reason = "each test file uses its part")]

use std::{collections::BTreeMap, sync::Arc};

use anabranch_congestion::{self as cc};
use anabranch_core::{
    body::Body,
    packet::Ecn,
    rng::Stream,
    units::{Duration, Instant},
};
use anabranch_fec::{Config, Protected};
use anabranch_tcp::{Endpoint, Profile, Role, Settings, State};
use anabranch_wire::{Redundant, Transport, redundant::Tag};

/// The events of the network for packets of the first end.
#[derive(Debug, Clone, Default)]
pub struct Fate {
    pub seed: u64,
    pub loss: f64,
    /// Data packets to lose, by their index among first transmissions.
    pub lose: Vec<u64>,
    /// Redundant packets to lose, by their index.
    pub lose_redundant: Vec<u64>,
    /// Every second packet of the other end arrives after its successor.
    pub swap_acks: bool,
    /// Probability of a change to a redundant packet.
    pub forge: f64,
    /// Probability that a packet of the first end is late, by up to twelve packet times.
    pub late: f64,
    /// Probability that it arrives twice.
    pub twice: f64,
    /// Redundant packets that arrive four packets late, and ones that arrive twice, by their index.
    pub late_redundant: Vec<u64>,
    pub twice_redundant: Vec<u64>,
    /// Data packets that the network marks, by their index among first transmissions.
    pub mark: Vec<u64>,
}

/// A packet with payload sent by the first end.
#[derive(Debug, Clone, Copy)]
pub enum Left {
    /// Data: one past its last octet, its group's number, and the congestion window in whole
    /// packets at its transmission.
    Data {
        retransmission: bool,
        tag: Tag,
        end: u32,
        cwnd: u64,
    },
    /// Redundancy: the number of packets covered, and one past their last octet.
    Redundant { count: u16, end: u32 },
}

pub struct Net<B: Body> {
    pub now: Instant,
    pub ends: [Protected<B>; 2],
    pub fate: Fate,
    pub sent: [u64; 2],
    pub new_data: u64,
    pub redundant: u64,
    pub free_at: [Instant; 2],
    pub flying: BTreeMap<(Instant, u64), (usize, Transport<B>, Ecn)>,
    /// Times and sizes of all packets sent.
    pub trace: Vec<(Instant, usize, u32)>,
    pub log: Vec<Left>,
}

pub const DELAY: Duration = Duration::from_millis(20);
/// The distance of two packets on the link.
pub const GAP: Duration = Duration::from_micros(200);

impl<B: Body> Net<B> {
    pub fn new(profile: &str, config: &Config, fate: Fate) -> Self {
        let settings = Profile::named(profile).expect("it exists").settings;
        Self::with_settings(settings, config, fate)
    }

    pub fn with_settings(settings: Settings, config: &Config, fate: Fate) -> Self {
        let settings = Arc::new(settings);
        let end = |role, iss| {
            let control = cc::Config::Reno(cc::reno::Params::default()).build(&settings.init());
            // The initial number wraps soon.
            let mut end = Protected::new(Endpoint::new(&settings, control, role, iss), config);
            end.tcp_mut().set_auto_read(false);
            end
        };
        Self {
            now: Instant::START,
            ends: [end(Role::Active, u32::MAX - 30_000), end(Role::Passive, 77)],
            fate,
            sent: [0; 2],
            new_data: 0,
            redundant: 0,
            free_at: [Instant::START; 2],
            flying: BTreeMap::new(),
            trace: Vec::new(),
            log: Vec::new(),
        }
    }

    pub fn flush(&mut self) {
        for from in 0..2 {
            let mut n = 0;
            while let Some(out) = self.ends[from].poll_transmit(self.now) {
                n += 1;
                assert!(n < 10_000, "an end sends without end");
                let index = self.sent[from];
                self.sent[from] += 1;
                self.trace.push((self.now, from, out.size));
                let mut draw =
                    Stream::new(self.fate.seed, if from == 0 { "a" } else { "b" }).at(index);
                let mut transport = out.transport;
                let mut lost = from == 0 && draw.chance(self.fate.loss);
                let (mut overtaken, mut doubled, mut ecn) = (false, false, out.ecn);
                if from == 0 {
                    self.note(&transport, out.retransmission.is_some());
                }
                match &mut transport {
                    Transport::Tcp(segment) => {
                        if from == 0 && !segment.body.is_empty() && out.retransmission.is_none() {
                            lost |= self.fate.lose.contains(&self.new_data);
                            if self.fate.mark.contains(&self.new_data) && ecn != Ecn::NotEct {
                                ecn = Ecn::Ce;
                            }
                            self.new_data += 1;
                        }
                    }
                    Transport::Redundant(redundant) => {
                        lost |= self.fate.lose_redundant.contains(&self.redundant);
                        overtaken = self.fate.late_redundant.contains(&self.redundant);
                        doubled = self.fate.twice_redundant.contains(&self.redundant);
                        self.redundant += 1;
                        if draw.chance(self.fate.forge) {
                            forge(redundant, draw.bits().into());
                        }
                    }
                    Transport::Datagram(_) => unreachable!("neither end sends such"),
                }
                let leaves = self.now.max(self.free_at[from]);
                self.free_at[from] = leaves + GAP;
                doubled |= from == 0 && draw.chance(self.fate.twice);
                let copies = 1 + u64::from(doubled);
                for copy in (0..copies).take_while(|_| !lost) {
                    let late = if from == 1 && self.fate.swap_acks && index.is_multiple_of(2) {
                        DELAY / 4
                    } else if overtaken {
                        GAP * 3 + GAP / 2
                    } else if from == 0 && draw.chance(self.fate.late) {
                        GAP * u64::from(draw.bits() % 12) + GAP / 2
                    } else {
                        Duration::ZERO
                    };
                    let key = (leaves + DELAY + late, index * 4 + copy * 2 + from as u64);
                    self.flying.insert(key, (1 - from, transport.clone(), ecn));
                }
            }
        }
    }

    fn note(&mut self, transport: &Transport<B>, retransmission: bool) {
        let tcp = self.ends[0].tcp();
        let left = match transport {
            Transport::Tcp(segment) if !segment.body.is_empty() => Left::Data {
                retransmission,
                tag: Tag::read(segment),
                end: segment.seq.wrapping_add(segment.body.len()),
                cwnd: tcp.cwnd().get() / u64::from(tcp.smss()),
            },
            Transport::Redundant(redundant) => {
                let span = redundant.span().expect("it is the sender's own");
                Left::Redundant {
                    count: redundant.count,
                    end: redundant.first.wrapping_add(span),
                }
            }
            _ => return,
        };
        self.log.push(left);
    }

    /// Processes the next event. Returns `false` if there is none.
    pub fn step(&mut self) -> bool {
        let arrival = self
            .flying
            .keys()
            .next()
            .map_or(Instant::NEVER, |(at, _)| *at);
        let deadline = self.ends[0].deadline().min(self.ends[1].deadline());
        let at = arrival.min(deadline);
        if at == Instant::NEVER {
            return false;
        }
        self.now = self.now.max(at);
        if arrival <= deadline {
            let (_, (to, transport, ecn)) = self.flying.pop_first().expect("it was there");
            self.ends[to].on_packet(self.now, &transport, ecn);
        } else {
            for end in &mut self.ends {
                if end.deadline() <= self.now {
                    end.on_deadline(self.now);
                }
            }
        }
        self.flush();
        true
    }

    /// Sends `body` and closes. Returns the data received and the number of retransmitted packets.
    pub fn transfer(&mut self, body: B) -> (B, u64) {
        self.ends[0].tcp_mut().open(self.now);
        self.flush();
        let mut body = Some(body);
        let mut received = B::default();
        for _ in 0..2_000_000 {
            if self.ends[0].tcp().state() == State::Established
                && let Some(body) = body.take()
            {
                self.ends[0].tcp_mut().write_all(body);
                self.ends[0].tcp_mut().close();
                self.flush();
            }
            received.append(&self.ends[1].tcp_mut().read(self.now, u64::MAX));
            if self.ends[1].tcp().state() == State::CloseWait {
                self.ends[1].tcp_mut().close();
                self.flush();
            }
            if !self.step() || self.ends[1].tcp().state() == State::Closed {
                break;
            }
        }
        let again = self.ends[0].tcp().stats().retransmitted_packets;
        (received, again)
    }
}

/// Changes a field of a redundant packet such that it might still be accepted.
pub fn forge<B: Body>(redundant: &mut Redundant<B>, draw: u64) {
    let small = (draw >> 8) % 7 + 1;
    match draw % 7 {
        0 => redundant.checksum ^= 1 << (small * 4),
        1 => redundant.first = redundant.first.wrapping_add(u32::from(redundant.size)),
        2 => redundant.count = redundant.count.saturating_sub(1).max(1),
        3 => redundant.count += 1,
        4 => redundant.key ^= 1,
        5 => redundant.lengths ^= 1 << small,
        _ => {
            let mut octets = redundant
                .body
                .octets()
                .map(<[u8]>::to_vec)
                .unwrap_or_default();
            if let Some(octet) = octets.get_mut(usize::try_from(small * 50).expect("small")) {
                *octet ^= 0x41;
            }
            let len = redundant.body.len();
            redundant.body = B::from_octets(&octets, len);
        }
    }
}
