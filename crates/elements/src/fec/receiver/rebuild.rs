//! What redundant packets bring back, and whether that is to be believed.

use super::{Kept, MOST_PLACES, Receiver, Recovered};
use crate::{
    body::Body,
    fec::{
        code::{AnyCode, Code, Cover, xor::Sum},
        packet::{Redundant, checksum},
        stats::Stats,
    },
    tcp::Seq,
};

impl<B: Body> Receiver<B> {
    /// Brings back what can be. Whether nothing is missing any more of what the packet covers.
    pub(super) fn bring_back(
        &mut self,
        (first, end): (Seq, Seq),
        packet: &Redundant<B>,
        recovered: &mut Vec<Recovered<B>>,
        stats: &mut Stats,
    ) -> bool {
        let from = self.kept.partition_point(|kept| kept.start < first);
        let to = self.kept.partition_point(|kept| kept.start < end);
        let there = to - from;
        let count = usize::from(packet.count);
        if there >= count {
            return true;
        }
        if let AnyCode::Xor(_) = self.code {
            // The running sum must be that of all the others.
            if there + 1 < count || self.open.count as usize + 1 != count {
                return false;
            }
            let size = u64::from(packet.size);
            let mut expected = first;
            for kept in self.kept.range(from..to) {
                if kept.start != expected {
                    break;
                }
                expected += size;
            }
            let len = size.min(end.since(expected));
            let len = u32::try_from(len).expect("a packet's length");
            let sum = packet.body.octets().map(|octets| {
                let mut sum = std::mem::take(&mut self.open.sum);
                sum.add(octets);
                sum
            });
            let body = sum.as_ref().map(Sum::octets);
            let Some(one) = candidate::<B>(expected, len, body) else {
                stats.redundant_refused += 1;
                return false;
            };
            let share = self.open.checksum.wrapping_add(one.share);
            if body.is_some() && share.wrapping_add(self.secret) != packet.checksum {
                stats.redundant_refused += 1;
                return false;
            }
            self.accept(one, recovered);
            return true;
        }
        self.redundant.push((first, packet.clone()));
        self.solve((first, end), packet, recovered, stats);
        let from = self.kept.partition_point(|kept| kept.start < first);
        let to = self.kept.partition_point(|kept| kept.start < end);
        to - from >= count
    }

    /// The codes that need all packets: asks the code for what the redundant packets settle together.
    fn solve(
        &mut self,
        (_, end): (Seq, Seq),
        newest: &Redundant<B>,
        recovered: &mut Vec<Recovered<B>>,
        stats: &mut Stats,
    ) {
        let size = u64::from(newest.size);
        let last = u32::from(newest.last().expect("its span is known"));
        let aligned = end + (size - u64::from(last));
        // Those that fit the same grid; the ends of all but the newest are whole packets.
        let fits = |(first, packet): &&(Seq, Redundant<B>)| {
            let far = aligned.since(*first);
            packet.size == newest.size && far.is_multiple_of(size) && far / size <= MOST_PLACES
        };
        let together: Vec<(Seq, Redundant<B>)> =
            self.redundant.iter().filter(fits).cloned().collect();
        let Some(base) = together.iter().map(|(first, _)| *first).min() else {
            return;
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
        // Only what some redundant packet vouches for: all that it covers is there and sums up.
        let mut vouched = vec![false; places];
        for (cover, (_, packet)) in covers.iter().zip(&together) {
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
                stats.redundant_refused += 1;
            }
        }
        candidates.retain(|(place, _)| vouched[*place]);
        for (_, one) in candidates {
            self.accept(one, recovered);
        }
    }

    /// The places that the code brings back, on octets with their content.
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

/// A packet as it comes out of the code: `len` octets with nothing but padding behind, or just a length.
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
    })
}
