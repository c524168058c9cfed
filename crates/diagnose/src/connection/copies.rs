//! Copies of a packet made by a mirror port, a bridge, or a capture on several interfaces.
//!
//! A sender retransmits at least a round trip after the original: duplicate acknowledgments, RACK
//! and timers all take longer (RFC 5681 §3.2, RFC 8985 §6, RFC 6298 §5). An equal packet that comes
//! sooner is a copy. So is one whose data just passed in other segments: with segmentation offload one
//! interface has a large segment, and another has it in parts.

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
    packet: Segment,
    /// It acknowledged more than the packets before it, and has no data.
    is_advance: bool,
    copies: u32,
}

impl Recent {
    /// Whether a packet is equal except for fields that devices on the path change: hop limit, MSS.
    fn is_equal(&self, other: &Segment) -> bool {
        let own = &self.packet;
        (own.seq, own.payload, own.flags, own.id)
            == (other.seq, other.payload, other.flags, other.id)
            && self.has_state_of(other)
    }

    /// Whether a sender in the same state sent both packets.
    fn has_state_of(&self, other: &Segment) -> bool {
        // If the capture truncates packets, a VLAN tag on one of the two moves the cut.
        let own = &self.packet;
        let have_options = own.has_all_options && other.has_all_options;
        (own.ack, own.window) == (other.ack, other.window)
            && (!have_options || (own.stamps == other.stamps && own.blocks() == other.blocks()))
    }
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
    /// Copies whose data is cut into segments otherwise.
    recut: u64,
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
        round_trip: impl Fn() -> Option<Nanos>,
    ) -> bool {
        self.forget(segment.time - LATEST_IDENTIFIED);
        let found = self.find(segment);
        let is_recut =
            || !self.is_new(segment) && self.is_recut(segment, segment.end(), &round_trip);
        if found.is_none() && is_recut() {
            self.recut += 1;
            return true;
        }
        let is_copy = found.is_some_and(|at| {
            let since = segment.time - self.recent[at].packet.time;
            let is_early = since <= LATEST && self.is_mirrored() && self.lacks_copies(at, segment);
            is_early || self.is_too_soon(segment, since, &round_trip)
        });
        if let Some(original) = found.and_then(|at| self.recent.get_mut(at)) {
            original.copies += 1;
            if segment.time - original.packet.time <= LATEST {
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
        if self.is_new(segment) {
            return None;
        }
        let takes_numbers = takes_numbers(segment);
        let mut recent = self.recent.iter();
        let most = self.most.max(1);
        let has_room =
            |one: &Recent| takes_numbers || self.is_identified(segment) || one.copies < most;
        recent.rposition(|one| one.is_equal(segment) && has_room(one))
    }

    /// Whether a segment has new data, or a new acknowledgment if it has no data.
    fn is_new(&self, segment: &Segment) -> bool {
        if takes_numbers(segment) {
            self.next.is_none_or(|next| is_before(next, segment.end()))
        } else {
            self.is_advance(segment)
        }
    }

    /// The part of a segment whose data did not just pass in other segments, if another part did.
    pub(crate) fn new_part(
        &self,
        segment: &Segment,
        round_trip: impl Fn() -> Option<Nanos>,
    ) -> Option<Segment> {
        let next = self.next?;
        let is_partly_new = is_before(segment.seq, next) && is_before(next, segment.end());
        if !is_partly_new || !self.is_mirrored() || !self.is_recut(segment, next, &round_trip) {
            return None;
        }
        let passed = next.wrapping_sub(segment.seq);
        Some(Segment {
            seq: next,
            payload: segment.payload.checked_sub(passed)?,
            ..*segment
        })
    }

    /// Whether the data of a segment up to `upto` just passed in other segments with the same
    /// acknowledgment and window.
    #[inline(never)]
    fn is_recut(
        &self,
        segment: &Segment,
        upto: u32,
        round_trip: &impl Fn() -> Option<Nanos>,
    ) -> bool {
        if segment.payload == 0 || segment.has(SYN) {
            return false;
        }
        let earliest = segment.time - soon(round_trip());
        let mut reached = segment.seq;
        for other in &self.recent {
            let packet = &other.packet;
            let has_next = packet.payload > 0
                && packet.time >= earliest
                && other.has_state_of(segment)
                && !is_before(reached, packet.seq)
                && is_before(reached, packet.end());
            if has_next {
                reached = packet.end();
            }
        }
        !is_before(reached, upto)
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
        round_trip: &impl Fn() -> Option<Nanos>,
    ) -> bool {
        // Only timers retransmit a SYN or FIN.
        if self.is_identified(segment) || (segment.has(SYN | FIN) && since <= LATEST) {
            return true;
        }
        // Without SACK, a receiver sends identical acknowledgments for the segments after a gap.
        takes_numbers(segment) && since <= soon(round_trip())
    }

    /// Whether an equal identification proves a copy: a sender that counts its packets gives a
    /// retransmission another identification.
    fn is_identified(&self, segment: &Segment) -> bool {
        self.ids_differ && segment.id.is_some_and(|id| id != 0)
    }

    /// Whether the direction's packets are mirrored.
    fn is_mirrored(&self) -> bool {
        let copies = self.mirrored + self.recut;
        (copies > 0 && MIRRORED * copies >= self.originals)
            || (self.pairs >= FEW_PAIRS && 2 * self.pairs >= self.advances)
    }

    /// Whether the original has fewer copies than others of a mirrored direction. On a short path a
    /// retransmission may follow as soon as a copy.
    fn lacks_copies(&self, at: usize, segment: &Segment) -> bool {
        let usual = self.mirrored.div_ceil(self.originals.max(1)).max(1);
        !takes_numbers(segment) || u64::from(self.recent[at].copies) < usual
    }

    fn forget(&mut self, earliest: Nanos) {
        while let Some(one) = self.recent.front()
            && (one.packet.time < earliest || self.recent.len() >= MOST)
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
        let end = segment.end();
        if self.next.is_none_or(|next| is_before(next, end)) {
            self.next = Some(end);
        }
        self.recent.push_back(Recent {
            packet: *segment,
            is_advance,
            copies: 0,
        });
    }
}

/// Longest delay of a copy that has no other sign than its time.
fn soon(round_trip: Option<Nanos>) -> Nanos {
    round_trip.map_or(LATEST, |round_trip| LATEST.min(round_trip / 2))
}

fn takes_numbers(segment: &Segment) -> bool {
    segment.payload > 0 || segment.has(SYN | FIN)
}
