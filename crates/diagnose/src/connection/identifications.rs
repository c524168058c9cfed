//! The sequence of the IP identifications of a sender's packets.
//!
//! Linux counts the packets of each connection, so that a gap shows packets that did not pass. Other hosts share one counter among
//! connections (Windows), so that a gap shows packets to others. Which of the two it is shows in pauses: a shared counter goes on.

use crate::{
    segment::{SYN, Segment},
    time::Nanos,
};

/// Larger steps are of a shared counter, or of random identifications.
const LONGEST: u16 = 64;
/// A pause shows lost packets if no packets to others passed in this multiple of its time: one more in ten pauses at most.
const QUIET: Nanos = 10;
/// Of the packets of a connection that counts them, one in ten leaves out others at most: lost ones.
const RARE: u32 = 9;
/// Segmentation offload gives a packet of more than an Ethernet MSS an identification for each segment, however small these are.
const ETHERNET: u32 = 1460;
const SMALLEST: u32 = 536;
/// Linux and BSD send with an initial hop limit of 64, Windows with 128 and one counter for all connections.
const LINUX_HOPS: u8 = 64;

/// The packet before.
#[derive(Debug, Clone, Copy)]
struct Last {
    id: u16,
    time: Nanos,
    /// Identifications that it took, at most.
    taken: u16,
}

/// The last identification, and the steps up to it.
#[derive(Debug, Default)]
pub(crate) struct Identifications {
    last: Option<Last>,
    steps: u32,
    jumps: u32,
    /// Steps that left out none.
    ones: u32,
    /// Packets that the last step left out, and the pause before it.
    missing: u16,
    pause: Nanos,
    /// The time before it, and packets that the steps in that time left out.
    watched: Nanos,
    foreign: i64,
    /// A packet has a hop limit that Linux does not send with.
    has_other_hops: bool,
    /// The SYN or SYN-ACK has 0: Linux sends these before it starts the connection's counter.
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
            // It passed late: an earlier step had left it out.
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

    /// The sender counts its packets: of random identifications one step in 500 is short.
    pub(crate) fn grow(&self) -> bool {
        self.steps >= 2 && self.steps > 4 * self.jumps
    }

    /// Packets of this connection that the last packet shows to be missing before it, at least `timer` ago.
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

    /// Other connections of the host take identifications between.
    pub(crate) fn share(&mut self) {
        self.is_shared = true;
    }
}
