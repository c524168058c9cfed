//! Recovery of packets from redundant packets, and its verification.

use std::ops::Range;

use super::{Kept, MOST_PLACES, Outcome, Receiver, Recovered};
use crate::stats::Stats;
use anabranch_core::body::Body;
use anabranch_erasure::{AnyCode, Code, Cover, xor::Sum};
use anabranch_wire::{
    Seq,
    redundant::{Redundant, checksum},
};

impl<B: Body> Receiver<B> {
    /// Recovers packets with a redundant packet.
    pub(super) fn bring_back(
        &mut self,
        (first, end): (Seq, Seq),
        packet: &Redundant<B>,
        recovered: &mut Vec<Recovered<B>>,
        stats: &mut Stats,
    ) -> Outcome {
        let outcome = self.outcome((first, end), packet);
        if outcome != Outcome::Lacking {
            stats.redundant_refused += u64::from(outcome == Outcome::Refused);
            return outcome;
        }
        if let AnyCode::Xor(_) = self.code {
            return self.take_from_sum((first, end), packet, recovered, stats);
        }
        self.redundant.push((first, packet.clone()));
        if self.solve_with((first, end), packet, recovered, stats) {
            self.outcome((first, end), packet)
        } else {
            Outcome::Refused
        }
    }

    /// The indices in `kept` of the packets that begin in `first..end`.
    fn places(&self, first: Seq, end: Seq) -> Range<usize> {
        let before = |edge: Seq| self.kept.partition_point(|kept| kept.start < edge);
        before(first)..before(end)
    }

    /// Compares the present packets of the covered range with the redundant packet.
    fn outcome(&self, (first, end): (Seq, Seq), packet: &Redundant<B>) -> Outcome {
        let places = self.places(first, end);
        let (there, count) = (places.len(), usize::from(packet.count));
        if there < count {
            return Outcome::Lacking;
        }
        let (mut expected, mut sum) = (first, self.secret);
        for kept in self.kept.range(places) {
            let is_last = kept.end() == end;
            if kept.start != expected || !is_last && kept.len != u32::from(packet.size) {
                return Outcome::Foreign;
            }
            expected = kept.end();
            sum = sum.wrapping_add(kept.share);
        }
        if there > count || expected != end {
            Outcome::Foreign
        } else if packet.body.octets().is_some() && sum != packet.checksum {
            Outcome::Refused
        } else {
            Outcome::Whole
        }
    }

    /// XOR: recovers the one packet that the running sum lacks. The sum must be of exactly the
    /// other covered packets, which is no longer the case once data of another group has arrived.
    fn take_from_sum(
        &mut self,
        (first, end): (Seq, Seq),
        packet: &Redundant<B>,
        recovered: &mut Vec<Recovered<B>>,
        stats: &mut Stats,
    ) -> Outcome {
        let places = self.places(first, end);
        let there = places.len();
        let covered = || self.kept.range(places.clone());
        let summed = covered().filter(|kept| kept.turn == Some(self.open.turn));
        let alone = there == 0;
        let exact = self.open.count as usize == there && summed.count() == there;
        if there + 1 != usize::from(packet.count) || !(alone || exact) {
            return Outcome::Lacking;
        }
        let size = u64::from(packet.size);
        let mut expected = first;
        for kept in covered() {
            if kept.start != expected {
                break;
            }
            expected += size;
        }
        let len = size.min(end.since(expected));
        let len = u32::try_from(len).expect("a packet's length");
        let (sum, checksum) = if alone {
            (Sum::default(), 0)
        } else {
            (self.open.sum.clone(), self.open.checksum)
        };
        let sum = packet.body.octets().map(|octets| {
            let mut sum = sum;
            sum.add(octets);
            sum
        });
        let body = sum.as_ref().map(Sum::octets);
        let one = candidate::<B>(expected, len, body).filter(|one| {
            let sum = checksum.wrapping_add(one.share).wrapping_add(self.secret);
            body.is_none() || sum == packet.checksum
        });
        let Some(one) = one else {
            stats.redundant_refused += 1;
            return Outcome::Refused;
        };
        self.accept(one, recovered);
        Outcome::Whole
    }

    /// The codes that need all packets. Returns `false` if the newest redundant packet is invalid
    /// and was discarded.
    fn solve_with(
        &mut self,
        place: (Seq, Seq),
        newest: &Redundant<B>,
        recovered: &mut Vec<Recovered<B>>,
        stats: &mut Stats,
    ) -> bool {
        let denied = self.solve(place, newest, recovered);
        if denied.is_empty() {
            return true;
        }
        stats.redundant_refused += 1;
        let is_newest =
            |(first, packet): &(Seq, Redundant<B>)| *first == place.0 && packet.is_same(newest);
        // A forged packet makes every solution that uses it wrong. Either the newest packet is
        // forged, or an earlier one is.
        let olds: Vec<_> = denied
            .iter()
            .filter(|one| !is_newest(one))
            .cloned()
            .collect();
        let suspect = |one: &(Seq, Redundant<B>)| {
            olds.iter()
                .any(|(first, packet)| one.0 == *first && one.1.is_same(packet))
        };
        let before = self.redundant.clone();
        self.redundant.retain(|one| !suspect(one));
        if olds.len() == denied.len() {
            return true;
        }
        let again = self.solve(place, newest, recovered);
        if again.is_empty() && !olds.is_empty() {
            return true;
        }
        self.redundant = before;
        self.redundant.retain(|one| !is_newest(one));
        false
    }

    /// Solves for the packets that the redundant packets determine together. Returns the redundant
    /// packets whose checksum contradicts the solution.
    fn solve(
        &mut self,
        (at, end): (Seq, Seq),
        newest: &Redundant<B>,
        recovered: &mut Vec<Recovered<B>>,
    ) -> Vec<(Seq, Redundant<B>)> {
        let size = u64::from(newest.size);
        let last = newest.last().map_or(newest.size, |last| last).into();
        let aligned = end + (size - u64::from(last));
        // Only redundant packets on the same grid of packet sizes; all but the newest end with a
        // whole packet.
        let fits = |(first, packet): &&(Seq, Redundant<B>)| {
            let far = aligned.since(*first);
            let apart = packet.size == newest.size && far.is_multiple_of(size);
            // All redundant packets of a block have its checksum, which excludes packets of another
            // block.
            let others = !self.slides() && *first == at && packet.checksum != newest.checksum;
            apart && far / size <= MOST_PLACES && !others
        };
        let together: Vec<(Seq, Redundant<B>)> =
            self.redundant.iter().filter(fits).cloned().collect();
        let Some(base) = together.iter().map(|(first, _)| *first).min() else {
            return Vec::new();
        };
        let places = usize::try_from(aligned.since(base) / size).expect("few");
        let length = |place: usize| {
            if place + 1 == places {
                last
            } else {
                u32::from(newest.size)
            }
        };
        let mut sources: Vec<Option<&Kept<B>>> = vec![None; places];
        for kept in &self.kept {
            let at = kept.start.since(base);
            let place = usize::try_from(at / size).unwrap_or(usize::MAX);
            if kept.start >= base
                && at.is_multiple_of(size)
                && place < places
                && kept.len == length(place)
            {
                sources[place] = Some(kept);
            }
        }
        let covers: Vec<Cover> = together
            .iter()
            .map(|(first, packet)| Cover {
                first: usize::try_from(first.since(base) / size).expect("few"),
                count: packet.count.into(),
                key: if self.slides() {
                    packet.key
                } else {
                    packet.key & 0xff
                },
                of: packet.key >> 8,
            })
            .collect();
        let octets: Option<Vec<&[u8]>> = together.iter().map(|(_, p)| p.body.octets()).collect();
        let found = self.found(&sources, &covers, octets.as_deref());
        let mut candidates: Vec<(usize, Kept<B>)> = found
            .into_iter()
            .filter_map(|(place, octets)| {
                let start = base + place as u64 * size;
                candidate(start, length(place), octets.as_deref()).map(|one| (place, one))
            })
            .collect();
        // Only packets are accepted that a redundant packet verifies: all packets that it covers
        // are present, and its checksum matches.
        let mut vouched = vec![false; places];
        let mut denied = Vec::new();
        for (cover, (first, packet)) in covers.iter().zip(&together) {
            let mut sum = Some(0_u32);
            for place in cover.places() {
                let known = sources.get(place).copied().flatten().map(|kept| kept.share);
                let share = known.or_else(|| {
                    let found = candidates.iter().find(|(other, _)| *other == place);
                    found.map(|(_, one)| one.share)
                });
                sum = sum.zip(share).map(|(sum, share)| sum.wrapping_add(share));
            }
            let Some(sum) = sum else { continue };
            if packet.body.octets().is_none() || sum.wrapping_add(self.secret) == packet.checksum {
                vouched[cover.places()].fill(true);
            } else {
                denied.push((*first, packet.clone()));
            }
        }
        candidates.retain(|(place, _)| vouched[*place]);
        for (_, one) in candidates {
            self.accept(one, recovered);
        }
        denied
    }

    /// The places that the code recovers; on octets with their content.
    fn found(
        &self,
        sources: &[Option<&Kept<B>>],
        covers: &[Cover],
        bodies: Option<&[&[u8]]>,
    ) -> Vec<(usize, Option<Vec<u8>>)> {
        let Some(bodies) = bodies else {
            let present: Vec<_> = sources.iter().map(Option::is_some).collect();
            let found = self.code.recoverable(&present, covers);
            return found.into_iter().map(|place| (place, None)).collect();
        };
        let sources: Vec<_> = sources
            .iter()
            .map(|kept| kept.and_then(|kept| kept.body.octets()))
            .collect();
        let redundant: Vec<_> = covers.iter().copied().zip(bodies.iter().copied()).collect();
        let found = self.code.decode(&sources, &redundant);
        found
            .into_iter()
            .map(|(place, octets)| (place, Some(octets)))
            .collect()
    }

    fn accept(&mut self, one: Kept<B>, recovered: &mut Vec<Recovered<B>>) {
        let place = self.kept.partition_point(|kept| kept.start < one.start);
        recovered.push(Recovered {
            start: one.start,
            body: one.body.clone(),
        });
        self.kept.insert(place, one);
    }
}

/// A packet decoded by the code: `len` octets followed by zeros, or only a length.
fn candidate<B: Body>(start: Seq, len: u32, octets: Option<&[u8]>) -> Option<Kept<B>> {
    let (share, body) = match octets {
        None => (0, B::from_octets(&[], len)),
        Some(octets) => {
            let (content, padding) = octets.split_at_checked(len as usize)?;
            if padding.iter().any(|octet| *octet != 0) {
                return None;
            }
            (
                checksum(start.wire(), content),
                B::from_octets(content, len),
            )
        }
    };
    Some(Kept {
        start,
        len,
        share,
        body,
        turn: None,
    })
}
