//! QUIC connections in a capture: the unencrypted parts of packets alone.
//!
//! Long headers show the handshake, the version and a Retry (RFC 8999, RFC 9000 §17, RFC 9369). The
//! spin bit shows round trips if both ends take part (RFC 9000 §17.4). Acknowledgments,
//! retransmissions and streams are encrypted: no limit can be attributed.

use std::collections::BTreeMap;

use anabranch_capture::{Fragment, Packet};
use anabranch_core::histogram::Histogram;
use serde::Serialize;

use crate::{
    entries::RoundTrips,
    segment::End,
    time::{MICROSECOND, Nanos, from_picos, millis, seconds},
};

/// Maximum number of connections; later ones are counted.
const MOST: usize = 10_000;
/// A client pads its first datagram to this (RFC 9000 §14.1).
const FIRST_DATAGRAM: u32 = 1200;
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;
const UDP_OCTETS: u32 = 8;

/// Most octets of a connection ID (RFC 9000 §17.2), and least octets of a server's first ID, which the
/// client draws (§7.2).
const MOST_ID: usize = 20;
const LEAST_DRAWN: u8 = 8;
/// Most connection IDs that are stored of a connection: the drawn ID, an ID of each end, IDs of Retries.
const MOST_IDS: u8 = 8;

const LONG: u8 = 0x80;
const FIXED: u8 = 0x40;
const SPIN: u8 = 0x20;

const V1: u32 = 1;
const V2: u32 = 0x6b33_43cf;
/// The most significant octets of the versions of the drafts of RFC 9000.
const DRAFTS: u32 = 0xff00_0000;

/// Least number of round trips of the spin bit that are reported.
const FEW_SPINS: u64 = 3;

/// A connection of QUIC.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuicFlow {
    /// Its number, from 1, by its first packet.
    pub id: u64,
    /// The client.
    pub a: String,
    /// The server.
    pub b: String,
    /// The time of the first packet.
    pub start_s: f64,
    /// From the first to the last packet.
    pub duration_s: f64,
    /// The version of the last long header: `1`, `2`, or hexadecimal digits.
    pub version: String,
    /// The server refused the version that the client offered first.
    pub version_negotiation: bool,
    /// The server sent a Retry packet.
    pub retry: bool,
    /// Times of the handshake.
    pub handshake: QuicHandshake,
    /// Use of the spin bit.
    pub spin: Spin,
    /// Round trips of the spin bit.
    pub spin_rtt_ms: RoundTrips,
    /// Both directions.
    pub directions: QuicDirections,
}

/// Times of a handshake, from the client's first Initial packet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct QuicHandshake {
    /// Until the server's first Initial packet.
    pub answered_ms: Option<f64>,
    /// Until the client's first packet after it: a round trip after the client's last Initial packet
    /// before `answered_ms`. After a Retry or a negotiation of versions that is not its first.
    pub returned_ms: Option<f64>,
    /// Until the client's first packet with a short header.
    pub client_ready_ms: Option<f64>,
    /// Until the server's first packet with a short header.
    pub server_ready_ms: Option<f64>,
    /// Datagrams of the client before the server's first one.
    pub unanswered_datagrams: u64,
}

/// Use of the spin bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spin {
    /// It changes once per round trip.
    Used,
    /// It is constant.
    Constant,
    /// It changes faster than the path permits.
    Random,
    /// Too few packets, or no handshake to compare with.
    Unknown,
}

/// Packets of both ends.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuicDirections {
    /// Sent by the client.
    pub a_to_b: QuicOneWay,
    /// Sent by the server.
    pub b_to_a: QuicOneWay,
}

/// Packets of one end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct QuicOneWay {
    /// Datagrams.
    pub datagrams: u64,
    /// Octets of UDP payload.
    pub bytes: u64,
    /// These octets ÷ the time from the first to the last datagram.
    pub mbit_s: Option<f64>,
}

/// The connections of a capture.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    /// By the ends, the smaller one first.
    pairs: BTreeMap<(End, End), Pair>,
    /// By the destination connection ID, with its receiver and sender.
    ids: BTreeMap<(End, End, ConnectionId), usize>,
    list: Vec<Flow>,
    /// Datagrams that begin connections beyond the bound.
    pub(crate) omitted: u64,
}

/// The connections of a pair of ends.
#[derive(Debug, Default)]
struct Pair {
    /// The one whose packet passed last.
    last: usize,
    /// Bit `n` is set if one of their connection IDs has `n` octets: a short header omits the length.
    lengths: u32,
}

/// A connection ID (RFC 9000 §5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct ConnectionId {
    length: u8,
    octets: [u8; MOST_ID],
}

impl ConnectionId {
    fn of(octets: &[u8]) -> Option<Self> {
        let mut id = Self {
            length: u8::try_from(octets.len()).ok()?,
            octets: [0; MOST_ID],
        };
        id.octets.get_mut(..octets.len())?.copy_from_slice(octets);
        Some(id)
    }

    const fn is_empty(self) -> bool {
        self.length == 0
    }
}

#[derive(Debug)]
struct Flow {
    /// Connection IDs that are known.
    ids: u8,
    ends: [End; 2],
    start: Nanos,
    last: Nanos,
    version: u32,
    is_negotiated: bool,
    has_retry: bool,
    /// The client's last Initial packet before the server's first one.
    asked: Nanos,
    answered: Option<Nanos>,
    returned: Option<Nanos>,
    ready: [Option<Nanos>; 2],
    unanswered: u64,
    sides: [Side; 2],
}

#[derive(Debug, Default)]
struct Side {
    datagrams: u64,
    bytes: u64,
    first: Option<Nanos>,
    last: Nanos,
    /// Packets with a short header.
    short: u64,
    /// The spin bit, and when it changed last.
    spin: Option<(bool, Option<Nanos>)>,
    edges: u64,
    rtt: Histogram,
    least: Option<Nanos>,
}

/// The kind of a long header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Initial,
    Retry,
    Negotiation,
    Other,
}

/// The first header of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Header<'a> {
    Long {
        kind: Kind,
        version: u32,
        /// The connection IDs of the destination and of the source.
        ids: [ConnectionId; 2],
    },
    Short {
        spin: bool,
        /// The destination's connection ID and what follows.
        rest: &'a [u8],
    },
}

impl<'a> Header<'a> {
    fn read(octets: &'a [u8]) -> Option<Self> {
        let (first, rest) = octets.split_first()?;
        if first & LONG == 0 {
            return (first & FIXED != 0).then_some(Self::Short {
                spin: first & SPIN != 0,
                rest,
            });
        }
        let (version, mut rest) = rest.split_first_chunk()?;
        let version = u32::from_be_bytes(*version);
        let kind = match (version, first >> 4 & 3) {
            (0, _) => Kind::Negotiation,
            (V2, 1) | (V1 | DRAFTS..=0xff00_00ff, 0) => Kind::Initial,
            (V2, 0) | (V1 | DRAFTS..=0xff00_00ff, 3) => Kind::Retry,
            (V2 | V1 | DRAFTS..=0xff00_00ff, _) => Kind::Other,
            _ => return None,
        };
        let mut ids = [ConnectionId::default(); 2];
        for id in &mut ids {
            // A capture may end within the header.
            let Some((length, after)) = rest.split_first() else {
                break;
            };
            let Some((octets, after)) = after.split_at_checked(usize::from(*length)) else {
                break;
            };
            *id = ConnectionId::of(octets)?;
            rest = after;
        }
        Some(Self::Long { kind, version, ids })
    }
}

impl Flows {
    /// Adds a packet. Returns whether it belongs to a connection of QUIC.
    pub(crate) fn add(&mut self, packet: &Packet<'_>) -> bool {
        let ip = &packet.ip;
        if ip.protocol != UDP || ip.fragment == Fragment::Later {
            return false;
        }
        let Some(octets) = packet.octets.get(ip.header as usize..) else {
            return false;
        };
        let Some((&[s1, s2, t1, t2, ..], content)) = octets.split_first_chunk::<UDP_HEADER>()
        else {
            return false;
        };
        let source = (ip.source, u16::from_be_bytes([s1, s2]));
        let target = (ip.target, u16::from_be_bytes([t1, t2]));
        let length = ip.length.saturating_sub(ip.header + UDP_OCTETS);
        let Some(header) = Header::read(content) else {
            return false;
        };
        let key = (source.min(target), source.max(target));
        let time = from_picos(packet.time);
        let at = match self.find(source, target, &header, length) {
            Found::Known(at) => at,
            Found::No => return false,
            Found::New(version) => {
                if self.list.len() >= MOST {
                    self.omitted += 1;
                    return true;
                }
                self.list.push(Flow::new([source, target], time, version));
                self.list.len() - 1
            }
        };
        self.pairs.entry(key).or_default().last = at;
        self.learn(at, source, target, &header);
        if let Some(flow) = self.list.get_mut(at) {
            let from = usize::from(source != flow.ends[0]);
            flow.add(from, time, length, &header);
        }
        true
    }

    /// Finds the connection of a packet by its connection IDs, or else the last one of its ends.
    fn find(&self, source: End, target: End, header: &Header<'_>, length: u32) -> Found {
        let pair = self.pairs.get(&(source.min(target), source.max(target)));
        let known = |receiver, sender, id: ConnectionId| {
            let id = Some(id).filter(|id| !id.is_empty())?;
            self.ids.get(&(receiver, sender, id)).copied()
        };
        let by_id = match *header {
            Header::Long {
                ids: [to, from], ..
            } => known(target, source, to).or_else(|| known(source, target, from)),
            Header::Short { rest, .. } => pair.and_then(|pair| {
                let lengths = (1..=MOST_ID).filter(|length| pair.lengths >> length & 1 == 1);
                let mut ids = lengths.filter_map(|length| ConnectionId::of(rest.get(..length)?));
                ids.find_map(|id| known(target, source, id))
            }),
        };
        if let Some(at) = by_id {
            return Found::Known(at);
        }
        let last = pair.map(|pair| pair.last);
        if let Header::Long {
            kind: Kind::Initial,
            version,
            ids: [to, from],
        } = *header
            && length >= FIRST_DATAGRAM
        {
            // A client draws the first connection ID of the server. If the client has no ID and the capture
            // is one-sided, its packets after the handshake look the same.
            let is_drawn = to.length >= LEAST_DRAWN;
            let begins = |flow: &Flow| {
                flow.ends[0] == source && is_drawn && (!from.is_empty() || flow.is_answered())
            };
            if last.is_none_or(|at| self.list.get(at).is_some_and(begins)) {
                return Found::New(version);
            }
        }
        last.map_or(Found::No, Found::Known)
    }

    /// Records the connection IDs of a packet: that of its sender and, of a client's Initial packet, that
    /// of its receiver.
    fn learn(&mut self, at: usize, source: End, target: End, header: &Header<'_>) {
        let &Header::Long {
            kind,
            ids: [to, from],
            ..
        } = header
        else {
            return;
        };
        let Some(flow) = self.list.get_mut(at) else {
            return;
        };
        let is_opening = kind == Kind::Initial && source == flow.ends[0];
        let pair = self.pairs.entry((source.min(target), source.max(target)));
        let pair = pair.or_default();
        for (receiver, sender, id) in [
            (source, target, Some(from)),
            (target, source, is_opening.then_some(to)),
        ] {
            let Some(id) = id.filter(|id| !id.is_empty()) else {
                continue;
            };
            if flow.ids < MOST_IDS && !self.ids.contains_key(&(receiver, sender, id)) {
                flow.ids += 1;
                pair.lengths |= 1 << id.length;
                self.ids.insert((receiver, sender, id), at);
            }
        }
    }

    /// Ends the capture.
    pub(crate) fn end(self) -> Vec<QuicFlow> {
        let numbered = self.list.into_iter().zip(1..);
        numbered.map(|(flow, id)| flow.end(id)).collect()
    }
}

/// The connection of a packet.
enum Found {
    Known(usize),
    /// It begins one of this version.
    New(u32),
    No,
}

impl Flow {
    fn new(ends: [End; 2], start: Nanos, version: u32) -> Self {
        Self {
            ids: 0,
            ends,
            start,
            last: start,
            version,
            is_negotiated: false,
            has_retry: false,
            asked: start,
            answered: None,
            returned: None,
            ready: [None; 2],
            unanswered: 0,
            sides: Default::default(),
        }
    }

    /// Whether a packet of the server was captured.
    fn is_answered(&self) -> bool {
        self.sides[1].datagrams > 0
    }

    fn add(&mut self, from: usize, time: Nanos, length: u32, header: &Header<'_>) {
        self.last = self.last.max(time);
        let is_server = from == 1;
        self.unanswered += u64::from(!is_server && !self.is_answered());
        match *header {
            Header::Long {
                kind: Kind::Negotiation,
                ..
            } => self.is_negotiated |= is_server,
            Header::Long { kind, version, .. } => {
                self.version = version;
                self.has_retry |= is_server && kind == Kind::Retry;
                if kind == Kind::Initial {
                    if is_server {
                        self.answered.get_or_insert(time);
                    } else if self.answered.is_none() {
                        self.asked = time;
                    }
                }
            }
            Header::Short { .. } => {
                self.ready[from].get_or_insert(time);
            }
        }
        if !is_server && self.answered.is_some() {
            self.returned.get_or_insert(time);
        }
        self.sides[from].add(time, length, header);
    }

    fn end(self, id: u64) -> QuicFlow {
        let since = |time: Option<Nanos>| time.map(|time| millis(time - self.start));
        let whole = self.returned.map(|time| time - self.asked);
        let spins = self.sides.each_ref().map(|side| side.spin_use(whole));
        let used = (0..2)
            .filter(|side| spins[*side] == Spin::Used)
            .max_by_key(|side| self.sides[*side].edges);
        let spin = match used {
            Some(_) => Spin::Used,
            None if spins.contains(&Spin::Random) => Spin::Random,
            None if spins.contains(&Spin::Constant) => Spin::Constant,
            None => Spin::Unknown,
        };
        let [a, b] = self
            .ends
            .map(|(address, port)| std::net::SocketAddr::new(address, port));
        QuicFlow {
            id,
            a: a.to_string(),
            b: b.to_string(),
            start_s: seconds(self.start),
            duration_s: seconds(self.last - self.start),
            version: match self.version {
                V1 => "1".to_owned(),
                V2 => "2".to_owned(),
                other => format!("{other:08x}"),
            },
            version_negotiation: self.is_negotiated,
            retry: self.has_retry,
            handshake: QuicHandshake {
                answered_ms: since(self.answered),
                returned_ms: since(self.returned),
                client_ready_ms: since(self.ready[0]),
                server_ready_ms: since(self.ready[1]),
                unanswered_datagrams: self.unanswered,
            },
            spin,
            spin_rtt_ms: used
                .map_or_else(RoundTrips::default, |side| self.sides[side].round_trips()),
            directions: QuicDirections {
                a_to_b: self.sides[0].end(),
                b_to_a: self.sides[1].end(),
            },
        }
    }
}

impl Side {
    fn add(&mut self, time: Nanos, length: u32, header: &Header<'_>) {
        self.datagrams += 1;
        self.bytes += u64::from(length);
        self.first.get_or_insert(time);
        self.last = self.last.max(time);
        let &Header::Short { spin, .. } = header else {
            return;
        };
        self.short += 1;
        match self.spin {
            Some((known, _)) if known == spin => {}
            Some((_, before)) => {
                self.edges += 1;
                if let Some(before) = before {
                    let took = (time - before).max(0);
                    self.rtt
                        .record(u64::try_from(took / MICROSECOND).unwrap_or_default());
                    self.least = Some(self.least.map_or(took, |least| least.min(took)));
                }
                self.spin = Some((spin, Some(time)));
            }
            None => self.spin = Some((spin, None)),
        }
    }

    /// Whether the bit changes once per round trip: not faster than half of the handshake's.
    fn spin_use(&self, whole: Option<Nanos>) -> Spin {
        if self.edges == 0 {
            return if self.short > 1 {
                Spin::Constant
            } else {
                Spin::Unknown
            };
        }
        let median = self.rtt.percentile(50.0).unwrap_or_default();
        let median = i64::try_from(median).unwrap_or_default() * MICROSECOND;
        match whole {
            Some(whole) if 2 * median < whole => Spin::Random,
            Some(_) if self.edges > FEW_SPINS => Spin::Used,
            _ => Spin::Unknown,
        }
    }

    fn round_trips(&self) -> RoundTrips {
        let percentile = |p: f64| Some(self.rtt.percentile(p)? as f64 / 1e3);
        RoundTrips {
            min: self.least.map(millis),
            median: percentile(50.0),
            p95: percentile(95.0),
        }
    }

    fn end(&self) -> QuicOneWay {
        let time = self.first.map(|first| self.last - first);
        QuicOneWay {
            datagrams: self.datagrams,
            bytes: self.bytes,
            mbit_s: time
                .filter(|time| *time > 0)
                .map(|time| self.bytes as f64 * 8e3 / time as f64),
        }
    }
}
