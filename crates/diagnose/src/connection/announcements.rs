//! Announcements and packet patterns of one end of a connection, and the origin of a RST in its
//! name.

use serde::Serialize;

use crate::{
    segment::{RST, SYN, Segment},
    time::{MILLISECOND, Nanos, SECOND},
};

/// The origin of a RST.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The host in whose name it was sent.
    Host,
    /// A device on the path.
    Middlebox,
    /// Undecided: a single sign of a device proves nothing; or no other packet of that host was
    /// captured.
    Unknown,
}

/// A sign that a RST was not sent by the host in whose name it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sign {
    /// It travelled another number of hops.
    Hops,
    /// Its IP identification does not continue the host's.
    IpIdentification,
    /// It lacks the timestamps of the host's packets (RFC 7323 §3.2 requires them in a RST, too).
    NoTimestamps,
    /// Its sequence number is beyond the host's data and was not acknowledged by the peer (RFC 9293
    /// §3.5.2): a guess.
    Sequence,
    /// It answers a packet sooner than the host can.
    TooSoon,
    /// The host continues to send after it.
    GoesOn,
}

impl Sign {
    /// Signs of one kind may have one harmless cause: a stack that answers for a closed socket
    /// numbers packets differently and sends no options.
    const fn kind(self) -> u8 {
        match self {
            Self::Hops => 0,
            Self::IpIdentification | Self::NoTimestamps => 1,
            Self::Sequence => 2,
            Self::TooSoon => 3,
            Self::GoesOn => 4,
        }
    }
}

/// Largest usual displacement of packets; larger ones are rare (measurements of RFC 5236).
const LATE: Nanos = 3 * MILLISECOND;
/// Faster answers cannot be distinguished from the host's variation.
const LEAST_ANSWER: Nanos = MILLISECOND;
/// Packets of a host after which the pattern of its identifications is known.
const KNOWN: u32 = 4;
/// Maximum step between two packets of a connection: a host sends fewer packets to others in
/// between.
const MOST_STEP: u16 = 1024;
/// After a longer silence, a host with one counter for all packets may have sent more.
const LATELY: Nanos = SECOND;
/// Octets of a full segment on Ethernet. A RST within this distance may follow a last segment that
/// was not captured.
const FULL: u32 = 1460;
/// Initial hop limits of common systems.
const INITIAL: [u8; 4] = [32, 64, 128, 255];

/// The pattern of an end's identifications.
#[derive(Debug, Default, Clone)]
struct Numbering {
    last: Option<u16>,
    zeros: u32,
    steps: u32,
    jumps: u32,
}

impl Numbering {
    fn see(&mut self, id: u16) {
        self.zeros += u32::from(id == 0);
        if let Some(last) = self.last {
            match id.wrapping_sub(last) {
                1..=MOST_STEP => self.steps += 1,
                _ => self.jumps += 1,
            }
        }
        self.last = Some(id);
    }

    /// Whether another stack numbered a packet. Linux numbers a RST for a closed socket 0.
    fn excludes(&self, id: u16) -> bool {
        let Some(last) = self.last.filter(|_| id != 0) else {
            return false;
        };
        let seen = self.steps + self.jumps;
        if seen < KNOWN {
            false
        } else if self.zeros > seen {
            true
        } else {
            self.steps > 4 * self.jumps && !(1..=MOST_STEP).contains(&id.wrapping_sub(last))
        }
    }
}

/// The first RST in the name of an end.
#[derive(Debug, Clone)]
struct Reset {
    time: Nanos,
    hop_limit: u8,
    /// Signs other than the number of hops, each once.
    signs: Vec<Sign>,
}

/// Announcements and packet patterns of one end.
#[derive(Debug, Default, Clone)]
pub(crate) struct Announced {
    pub(crate) syns: u32,
    pub(crate) scale: Option<u8>,
    /// Its SYN lacks window scaling, and all options were captured.
    pub(crate) lacks_scale: bool,
    pub(crate) has_sack: bool,
    /// The control bits of its SYN.
    pub(crate) syn: anabranch_wire::Flags,
    pub(crate) fin: bool,
    pub(crate) rst: Option<u64>,
    reset: Option<Reset>,
    /// The hop limits of its other packets, and the hops that they imply, least and largest.
    limits: Option<(u8, u8)>,
    hops: Option<(u8, u8)>,
    numbering: Numbering,
    /// When its last packet passed.
    last: Option<Nanos>,
    /// Its packets after the SYN, and the number of them with timestamps.
    packets: u32,
    stamped: u32,
    /// One past its highest sequence number, and when it passed.
    next: Option<(u32, Nanos)>,
    /// Its last acknowledgment number.
    ack: Option<u32>,
    pub(crate) last_stamp: Option<u32>,
}

/// Hops implied by a hop limit, from the nearest initial limit.
fn hops(limit: u8) -> u8 {
    let initial = INITIAL.into_iter().find(|initial| *initial >= limit);
    initial.map_or(0, |initial| initial - limit)
}

fn widened(seen: Option<(u8, u8)>, value: u8) -> (u8, u8) {
    seen.map_or((value, value), |(low, high)| {
        (low.min(value), high.max(value))
    })
}

fn is_after(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
}

impl Announced {
    /// Records a RST in the name of this end. `peer` is the other end, `answer` this end's minimum
    /// response time.
    #[cold]
    pub(crate) fn see_rst(&mut self, segment: &Segment, peer: &Self, answer: Option<Nanos>) {
        if self.rst.is_some() {
            return;
        }
        self.rst = Some(segment.number);
        let is_sequence = self.next.zip(peer.ack).is_some_and(|((next, _), acked)| {
            is_after(segment.seq, next.wrapping_add(FULL))
                && segment.seq != acked
                && segment.seq != 0
        });
        let is_too_soon = answer
            .zip(peer.next)
            .is_some_and(|(answer, (next, passed))| {
                answer >= LEAST_ANSWER
                    && segment.ack == Some(next)
                    && segment.time - passed < answer / 2
            });
        let all = [
            (
                Sign::IpIdentification,
                self.last.is_some_and(|last| segment.time - last <= LATELY)
                    && segment.id.is_some_and(|id| self.numbering.excludes(id)),
            ),
            (
                Sign::NoTimestamps,
                self.packets > 0
                    && self.stamped == self.packets
                    && segment.stamps.is_none()
                    && segment.has_all_options,
            ),
            (Sign::Sequence, is_sequence),
            (Sign::TooSoon, is_too_soon),
        ];
        let signs = all.into_iter().filter(|(_, is_there)| *is_there);
        self.reset = Some(Reset {
            time: segment.time,
            hop_limit: segment.hop_limit,
            signs: signs.map(|(sign, _)| sign).collect(),
        });
    }

    /// Records another packet of this end.
    pub(crate) fn see_packet(&mut self, segment: &Segment) {
        debug_assert!(!segment.has(RST), "a RST shows no pattern");
        let is_syn = segment.has(SYN);
        // A SYN without ACK begins another connection, or repeats an attempt that a RST for a stray
        // packet did not end.
        let is_attempt = is_syn && segment.ack.is_none();
        if let Some(reset) = self.reset.as_mut().filter(|_| !is_attempt)
            && segment.time - reset.time > LATE
            && !reset.signs.contains(&Sign::GoesOn)
        {
            reset.signs.push(Sign::GoesOn);
        }
        self.last = Some(segment.time);
        self.limits = Some(widened(self.limits, segment.hop_limit));
        self.hops = Some(widened(self.hops, hops(segment.hop_limit)));
        if !is_syn {
            self.packets += 1;
            self.stamped += u32::from(segment.stamps.is_some());
        }
        // A SYN-ACK may be sent before the connection's counter starts (Linux gives it 0).
        if let Some(id) = segment.id.filter(|_| !is_syn) {
            self.numbering.see(id);
        }
        let next = segment.end();
        if self.next.is_none_or(|(known, _)| is_after(next, known)) {
            self.next = Some((next, segment.time));
        }
        self.ack = segment.ack.or(self.ack);
    }

    /// Signs that a device sent the first RST in the name of this end.
    pub(crate) fn reset_signs(&self) -> Vec<Sign> {
        let Some(reset) = &self.reset else {
            return Vec::new();
        };
        let is_outside = |range: Option<(u8, u8)>, value| {
            range.is_some_and(|(low, high)| value < low || value > high)
        };
        let is_other = is_outside(self.limits, reset.hop_limit)
            && is_outside(self.hops, hops(reset.hop_limit));
        let hops = is_other.then_some(Sign::Hops);
        hops.into_iter()
            .chain(reset.signs.iter().copied())
            .collect()
    }

    /// The origin of the first RST in the name of this end: a device if two independent signs
    /// indicate one.
    pub(crate) fn reset_origin(&self) -> Origin {
        let mut kinds: Vec<_> = self.reset_signs().into_iter().map(Sign::kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        match kinds.len() {
            0 if self.limits.is_some() => Origin::Host,
            0 | 1 => Origin::Unknown,
            _ => Origin::Middlebox,
        }
    }
}
