//! The sequence of the IP identifications of a sender's packets, and hosts that share one among
//! connections.

use std::net::IpAddr;

use crate::{
    segment::{End, SYN, Segment},
    time::Nanos,
};

/// Larger steps come from a shared counter or from random identifications.
const LONGEST: u16 = 64;
/// A gap at a pause shows lost packets if at most one packet to another host is expected in this
/// many such pauses.
const QUIET: Nanos = 10;
/// If a connection counts its packets, at most one step in ten has a gap, because of losses.
const RARE: u32 = 9;
/// Segmentation offload gives a packet larger than an Ethernet MSS one identification per segment,
/// however small the segments are.
const ETHERNET: u32 = 1460;
const SMALLEST: u32 = 536;
/// Linux and BSD send with an initial hop limit of 64. Windows sends with 128 and uses one counter
/// for all connections.
const LINUX_HOPS: u8 = 64;

/// The previous packet.
#[derive(Debug, Clone, Copy)]
struct Last {
    id: u16,
    time: Nanos,
    /// Maximum number of identifications that it took.
    taken: u16,
}

/// The last identification, and the steps up to it.
///
/// Linux counts the packets of each connection, so that a gap shows packets that did not pass.
/// Other hosts share one counter among connections (Windows), so that a gap shows packets to other
/// hosts. Pauses distinguish the two: a shared counter advances in them.
#[derive(Debug, Default)]
pub(crate) struct Identifications {
    last: Option<Last>,
    steps: u32,
    jumps: u32,
    /// Steps without a gap.
    ones: u32,
    /// Packets missing in the last step, and the pause before it.
    missing: u16,
    pause: Nanos,
    /// The time observed before that, and the packets missing in the steps of that time.
    watched: Nanos,
    foreign: i64,
    /// A packet has a hop limit that Linux does not use.
    has_other_hops: bool,
    /// The SYN or SYN-ACK has 0: Linux sends them before the connection's counter starts.
    starts_at_zero: bool,
    /// Packets of other connections show that the counter is the host's.
    is_shared: bool,
}

impl Identifications {
    pub(crate) fn see(&mut self, segment: &Segment) {
        let Some(id) = segment.id else {
            return;
        };
        let is_answer = segment.has(SYN) && segment.ack.is_some();
        self.starts_at_zero |= segment.has(SYN) && id == 0;
        if is_answer || (segment.has(SYN) && id == 0) {
            return;
        }
        self.has_other_hops |= segment.hop_limit > LINUX_HOPS;
        let taken = match segment.payload {
            0..=ETHERNET => 1,
            more => u16::try_from(more.div_ceil(SMALLEST)).unwrap_or(u16::MAX),
        };
        let this = Last {
            id,
            time: segment.time,
            taken,
        };
        let Some(last) = self.last.replace(this) else {
            return;
        };
        self.watched += self.pause;
        self.foreign += i64::from(self.missing);
        (self.missing, self.pause) = (0, 0);
        let step = id.wrapping_sub(last.id);
        if step == 0 || step > u16::MAX - LONGEST {
            // It passed late: an earlier step counted it as missing.
            self.steps += u32::from(step != 0);
            self.foreign = (self.foreign - 1).max(0);
            self.last = Some(last);
            return;
        }
        if step <= LONGEST {
            self.steps += 1;
            self.missing = step.saturating_sub(last.taken);
            self.ones += u32::from(self.missing == 0);
        } else {
            self.jumps += 1;
            self.foreign += i64::from(LONGEST);
        }
        self.pause = segment.time - last.time;
    }

    /// Whether the sender counts its packets: of random identifications, one step in 500 is short.
    pub(crate) fn grow(&self) -> bool {
        self.steps >= 2 && self.steps > 4 * self.jumps
    }

    /// Packets of this connection missing before the last packet, after a pause of at least
    /// `timer`.
    pub(crate) fn missing(&self, timer: Nanos) -> u16 {
        let is_quiet = (self.foreign + 1).saturating_mul(QUIET * self.pause) <= self.watched;
        let is_exclusive = self.starts_at_zero || is_quiet;
        let is_rare = self.ones > RARE * (self.steps + self.jumps - self.ones);
        let is_own = is_rare && is_exclusive && !self.is_shared && !self.has_other_hops;
        if self.grow() && is_own && self.pause >= timer {
            self.missing
        } else {
            0
        }
    }

    /// Records that other connections of the host use the same counter.
    pub(crate) fn share(&mut self) {
        self.is_shared = true;
    }
}

#[expect(
    clippy::disallowed_types,
    reason = "hosts are looked up and never iterated over"
)]
type Places = std::collections::HashMap<IpAddr, usize>;

/// Maximum number of stored hosts. When the table is full, all of them are discarded.
const MOST_HOSTS: usize = 1 << 14;
/// The largest step of a counter from one packet to the next.
const LONGEST_STEP: u16 = 64;
/// Steps between connections that indicate a shared counter: two separate counters are this close
/// in one of 1000 cases.
const FEW: u32 = 2;

/// The last packet of a host, and the number of steps from one connection to another.
#[derive(Debug)]
struct Host {
    id: u16,
    ends: (End, End),
    changes: u32,
    steps: u32,
}

/// The hosts of a capture.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    places: Places,
    hosts: Vec<Host>,
    /// The last two hosts: packets of two ends often alternate.
    recent: [Option<(IpAddr, usize)>; 2],
}

impl Counters {
    /// Records a packet. Returns whether its host shares one counter among its connections.
    pub(crate) fn see(&mut self, segment: &Segment) -> bool {
        let Some(id) = segment.id.filter(|id| *id != 0 && !segment.has(SYN)) else {
            return false;
        };
        let ends = (segment.source, segment.target);
        let at = self.place(id, ends);
        let Some(host) = self.hosts.get_mut(at) else {
            return false;
        };
        if host.ends != ends {
            host.changes += 1;
            host.steps += u32::from((1..=LONGEST_STEP).contains(&id.wrapping_sub(host.id)));
        }
        (host.id, host.ends) = (id, ends);
        host.steps >= FEW && 2 * host.steps > host.changes
    }

    /// The index of the host that sends from the first end.
    fn place(&mut self, id: u16, ends: (End, End)) -> usize {
        let address = ends.0.0;
        let [one, other] = self.recent;
        for known in [one, other].into_iter().flatten() {
            if known.0 == address {
                return known.1;
            }
        }
        if self.hosts.len() >= MOST_HOSTS {
            self.places.clear();
            self.hosts.clear();
            self.recent = [None; 2];
        }
        let next = self.hosts.len();
        let at = *self.places.entry(address).or_insert(next);
        if at == next {
            self.hosts.push(Host {
                id,
                ends,
                changes: 0,
                steps: 0,
            });
        }
        self.recent = [Some((address, at)), self.recent[0]];
        at
    }
}
