//! What this end sent on a path and has not been told the fate of.

use anabranch_core::units::{Duration, Instant};
use std::collections::VecDeque;

use crate::{
    pool::Pool,
    wire::{Place, Report},
};

/// Entries at most: 1 Gbit/s for 100 ms.
const ENTRIES: usize = 8_192;
/// Packets are kept for retransmission for this time and up to these octets.
const KEEP: Duration = Duration::from_secs(1);
const KEEP_OCTETS: usize = 4 << 20;
/// A packet is lost once so many later ones arrived (RFC 9002 §6.1.1).
const PACKET_THRESHOLD: u64 = 3;

/// A packet that may be retransmitted.
#[derive(Debug, Clone)]
pub struct Kept {
    /// Its place in its flow.
    pub place: Place,
    /// The packet.
    pub packet: Vec<u8>,
    /// How often it was retransmitted.
    pub attempts: u8,
    /// The lane that it waits in.
    pub lane: u8,
    /// It is retransmitted only if its path dies: other packets repair its loss.
    pub is_protected: bool,
}

/// Something sent.
#[derive(Debug, Clone)]
pub struct Sent {
    /// Its number.
    pub number: u64,
    /// When.
    pub at: Instant,
    /// Octets of the datagram.
    pub octets: usize,
    /// Its arrival is reported soon: not that of control messages, and perhaps not that of probes of the path MTU.
    pub expects_report: bool,
    /// The packet, where it can be retransmitted.
    pub kept: Option<Kept>,
}

/// What a report decided.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Sent packets that arrived, oldest first.
    pub arrived: Vec<Sent>,
    /// Those that were lost, oldest first.
    pub lost: Vec<Sent>,
    /// Octets of those that the report says nothing of any more.
    pub unknown: usize,
    /// Packets of these.
    pub forgotten: Vec<Kept>,
    /// When the highest number was sent, if it is higher than any before.
    pub advanced: Option<Instant>,
}

impl Outcome {
    fn clear(&mut self) {
        self.arrived.clear();
        self.lost.clear();
        self.forgotten.clear();
        (self.unknown, self.advanced) = (0, None);
    }
}

/// The packets outstanding on a path, by number.
#[derive(Debug, Default)]
pub struct Ledger {
    outstanding: VecDeque<Sent>,
    kept_octets: usize,
    /// So many of the oldest keep no packet.
    bare: usize,
    reported: Option<u64>,
}

impl Ledger {
    /// Adds what was sent. Gives octets that are no longer counted, for lack of room.
    pub fn add(&mut self, sent: Sent, pool: &mut Pool) -> usize {
        self.kept_octets += kept_octets(&sent);
        self.outstanding.push_back(sent);
        let mut dropped = 0;
        while self.outstanding.len() > ENTRIES {
            if let Some(oldest) = self.pop() {
                dropped += oldest.octets;
                if let Some(kept) = oldest.kept {
                    pool.put(kept.packet);
                }
            }
        }
        self.limit(pool);
        dropped
    }

    fn pop(&mut self) -> Option<Sent> {
        let oldest = self.outstanding.pop_front()?;
        self.kept_octets -= kept_octets(&oldest);
        self.bare = self.bare.saturating_sub(1);
        Some(oldest)
    }

    /// Drops the oldest packets that are kept while there are too many octets of them.
    fn limit(&mut self, pool: &mut Pool) {
        while self.kept_octets > KEEP_OCTETS
            && let Some(sent) = self.outstanding.get_mut(self.bare)
        {
            self.kept_octets -= kept_octets(sent);
            self.bare += 1;
            if let Some(kept) = sent.kept.take() {
                pool.put(kept.packet);
            }
        }
    }

    /// Octets that are kept.
    #[must_use]
    pub const fn kept_octets(&self) -> usize {
        self.kept_octets
    }

    /// Packets outstanding.
    #[must_use]
    pub fn len(&self) -> usize {
        self.outstanding.len()
    }

    /// Whether nothing is outstanding.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.outstanding.is_empty()
    }

    /// Takes a report in, and says in `outcome` what it decides.
    pub fn on_report(&mut self, report: &Report, outcome: &mut Outcome) {
        outcome.clear();
        let highest = report.highest;
        let is_news = self.reported.is_none_or(|before| highest > before);
        // Those that are too near to the highest to be presumed lost.
        let mut undecided = [None, None];
        while let Some(behind) = self
            .outstanding
            .front()
            .and_then(|sent| highest.checked_sub(sent.number))
            && let Some(sent) = self.pop()
        {
            if behind == 0 && is_news {
                outcome.advanced = Some(sent.at);
            }
            let arrived = match behind {
                0 => true,
                1..=64 => (report.received >> (behind - 1)) & 1 == 1,
                _ => false,
            };
            if arrived {
                outcome.arrived.push(sent);
            } else if behind < PACKET_THRESHOLD {
                undecided[usize::from(behind == 1)] = Some(sent);
            } else if behind <= 64 {
                outcome.lost.push(sent);
            } else {
                outcome.unknown += sent.octets;
                outcome.forgotten.extend(sent.kept);
            }
        }
        for sent in undecided.into_iter().rev().flatten() {
            self.kept_octets += kept_octets(&sent);
            self.outstanding.push_front(sent);
            self.bare = 0;
        }
        if outcome.advanced.is_some() {
            self.reported = Some(highest);
        }
    }

    /// When the oldest packet was sent that has a higher number than all that are reported.
    #[must_use]
    pub fn waiting(&self) -> Option<Instant> {
        let is_newer = |sent: &&Sent| self.reported.is_none_or(|reported| sent.number > reported);
        let mut newer = self.outstanding.iter().filter(is_newer);
        newer.find(|sent| sent.expects_report).map(|sent| sent.at)
    }

    /// Takes out the packets that are kept, for another path: those sent within a second.
    pub fn take_kept(&mut self, now: Instant) -> Vec<Kept> {
        self.kept_octets = 0;
        let recent = |sent: &Sent| now.saturating_since(sent.at) < KEEP;
        self.outstanding
            .iter_mut()
            .filter_map(|sent| sent.kept.take().filter(|_| recent(sent)))
            .collect()
    }

    /// Forgets all that is outstanding.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

fn kept_octets(sent: &Sent) -> usize {
    sent.kept.as_ref().map_or(0, |kept| kept.packet.len())
}
