//! Copies of a packet made by a mirror port, a bridge, or a capture on several interfaces.
//!
//! A sender retransmits at least a round trip after the original: duplicate acknowledgments, RACK
//! and timers all take longer (RFC 5681 §3.2, RFC 8985 §6, RFC 6298 §5). An equal packet that comes
//! sooner is a copy.

use std::collections::VecDeque;

use crate::{
    retransmission::need::is_before,
    segment::{FIN, SYN, Segment},
    time::{MILLISECOND, Nanos},
};

/// Longest delay of a copy, which waits for one port of a switch: 256 kB at 1 Gbit/s.
const LATEST: Nanos = 2 * MILLISECOND;
/// Longest delay of a copy with the identification of its original: a wireless link or a tunnel
/// made it. A sender may use the identification again for a retransmission (RFC 1122 §3.2.1.5),
/// which a timer starts after 200 ms at the earliest (Linux).
const LATEST_IDENTIFIED: Nanos = 100 * MILLISECOND;
/// Maximum number of packets among which the original of a copy is searched.
const MOST: usize = 256;
/// Maximum number of originals per copy in a direction that is mirrored: duplicates made by the
/// network are rarer.
const MIRRORED: u64 = 8;
/// Acknowledgments that must have come twice before others count as copies.
const FEW_PAIRS: u64 = 4;

/// A packet of which a copy may follow.
#[derive(Debug)]
struct Recent {
    segment: Segment,
    /// It acknowledged more than the packets before it, and has no data.
    is_advance: bool,
    copies: u32,
}

/// The latest packets of one sender, and counts of packets that came twice.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    recent: VecDeque<Recent>,
    /// The highest sequence number and acknowledgment: packets beyond them are new.
    next: Option<u32>,
    acknowledged: Option<u32>,
    /// The identification of the last packet.
    last_id: Option<u16>,
    /// Packets have different identifications.
    ids_differ: bool,
    /// Packets that take sequence numbers, and copies that cannot be retransmissions.
    originals: u64,
    mirrored: u64,
    /// The most copies of one such packet.
    most: u32,
    /// Acknowledgments that advance, and the number of them that came twice.
    advances: u64,
    pairs: u64,
}

impl Copies {
    /// Whether a segment is a copy of a recent one. Records it. `round_trip` is the minimum
    /// round-trip time of the whole path.
    pub(crate) fn is_copy(
        &mut self,
        segment: &Segment,
        round_trip: impl FnOnce() -> Option<Nanos>,
    ) -> bool {
        self.forget(segment.time - LATEST_IDENTIFIED);
        let found = self.find(segment);
        let is_copy = found.is_some_and(|at| {
            let since = segment.time - self.recent[at].segment.time;
            let is_early = since <= LATEST && self.is_mirrored();
            is_early || self.is_too_soon(segment, since, round_trip)
        });
        if let Some(original) = found.and_then(|at| self.recent.get_mut(at)) {
            original.copies += 1;
            if segment.time - original.segment.time <= LATEST {
                self.pairs += u64::from(original.is_advance);
                original.is_advance = false;
            }
            if is_copy && takes_numbers(segment) {
                self.mirrored += 1;
                self.most = self.most.max(original.copies);
            }
        }
        if !is_copy {
            self.add(segment);
        }
        is_copy
    }

    /// The latest packet equal to a segment. A segment with new data or a new acknowledgment equals
    /// none. A receiver without SACK repeats acknowledgments itself; at most as many of them count
    /// as copies as data packets have copies.
    fn find(&self, segment: &Segment) -> Option<usize> {
        let takes_numbers = takes_numbers(segment);
        let is_new = if takes_numbers {
            self.next.is_none_or(|next| is_before(next, end(segment)))
        } else {
            self.is_advance(segment)
        };
        if is_new {
            return None;
        }
        let mut recent = self.recent.iter();
        let most = self.most.max(1);
        let has_room =
            |one: &Recent| takes_numbers || self.is_identified(segment) || one.copies < most;
        recent.rposition(|one| is_equal(&one.segment, segment) && has_room(one))
    }

    fn is_advance(&self, segment: &Segment) -> bool {
        let last = self.acknowledged.zip(segment.ack);
        last.is_none_or(|(last, ack)| is_before(last, ack))
    }

    /// Whether an equal segment follows too soon for a retransmission or a second acknowledgment.
    fn is_too_soon(
        &self,
        segment: &Segment,
        since: Nanos,
        round_trip: impl FnOnce() -> Option<Nanos>,
    ) -> bool {
        // Only timers retransmit a SYN or FIN.
        if self.is_identified(segment) || (segment.has(SYN | FIN) && since <= LATEST) {
            return true;
        }
        // Without SACK, a receiver sends identical acknowledgments for the segments after a gap.
        let is_soon =
            || since <= round_trip().map_or(LATEST, |round_trip| LATEST.min(round_trip / 2));
        takes_numbers(segment) && is_soon()
    }

    /// Whether an equal identification proves a copy: a sender that counts its packets gives a
    /// retransmission another identification.
    fn is_identified(&self, segment: &Segment) -> bool {
        self.ids_differ && segment.id.is_some_and(|id| id != 0)
    }

    /// Whether the direction's packets are mirrored.
    fn is_mirrored(&self) -> bool {
        (self.mirrored > 0 && MIRRORED * self.mirrored >= self.originals)
            || (self.pairs >= FEW_PAIRS && 2 * self.pairs >= self.advances)
    }

    fn forget(&mut self, earliest: Nanos) {
        while let Some(one) = self.recent.front()
            && (one.segment.time < earliest || self.recent.len() >= MOST)
        {
            self.recent.pop_front();
        }
    }

    fn add(&mut self, segment: &Segment) {
        self.ids_differ |= self.last_id.is_some_and(|last| Some(last) != segment.id);
        self.last_id = segment.id;
        self.originals += u64::from(takes_numbers(segment));
        let is_advance = self.is_advance(segment);
        if is_advance {
            self.acknowledged = segment.ack;
        }
        let is_advance = is_advance && !takes_numbers(segment);
        self.advances += u64::from(is_advance);
        let end = end(segment);
        if self.next.is_none_or(|next| is_before(next, end)) {
            self.next = Some(end);
        }
        self.recent.push_back(Recent {
            segment: *segment,
            is_advance,
            copies: 0,
        });
    }
}

fn takes_numbers(segment: &Segment) -> bool {
    segment.payload > 0 || segment.has(SYN | FIN)
}

/// One past the segment's last sequence number.
fn end(segment: &Segment) -> u32 {
    let controls = u32::from(segment.has(SYN)) + u32::from(segment.has(FIN));
    segment
        .seq
        .wrapping_add(segment.payload)
        .wrapping_add(controls)
}

/// Whether two packets are equal except for fields that devices on the path change: hop limit, MSS.
fn is_equal(one: &Segment, other: &Segment) -> bool {
    // If the capture truncates packets, a VLAN tag on one of the two moves the cut.
    let have_options = one.has_all_options && other.has_all_options;
    one.seq == other.seq
        && one.payload == other.payload
        && one.ack == other.ack
        && one.flags == other.flags
        && one.window == other.window
        && one.id == other.id
        && (!have_options || (one.stamps == other.stamps && one.blocks() == other.blocks()))
}
