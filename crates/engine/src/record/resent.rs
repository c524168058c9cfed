//! Spurious retransmissions of a connection: retransmissions of which earlier transmissions brought
//! every octet to the receiver.
//!
//! [`Judge`](super::Judge) applies the same rule to a packet log; this module stores only
//! retransmissions. Neither the outcome of the retransmission nor later transmissions matter.
//! Octets that the receiver lacks and refuses, for example for an old timestamp (RFC 7323 §5), have
//! not been brought to it.
//! Octets rebuilt by error correction count as arrived with their first transmission.

use std::{collections::VecDeque, ops::Range};

use anabranch_wire::Seq;

/// Retransmissions that are stored after their octets are acknowledged: the original may still
/// arrive.
const MOST_ACKNOWLEDGED: usize = 4_096;

/// Retransmissions that have not proved spurious.
#[derive(Debug)]
pub struct Resent {
    /// Octets that no earlier transmission has delivered, by first octet. Insertions are near the
    /// back, removals near the front.
    open: VecDeque<Octets>,
    /// Retransmissions that [`Self::compare`] has not processed.
    fresh: Vec<Octets>,
    /// The number of the last retransmission.
    latest: u64,
    /// One past the highest octet of a retransmission.
    highest: Seq,
    /// The length of the longest retransmission.
    longest: u32,
}

impl Default for Resent {
    fn default() -> Self {
        Self {
            open: VecDeque::new(),
            fresh: Vec::new(),
            latest: 0,
            highest: Seq::START,
            longest: 0,
        }
    }
}

/// Octets of a retransmission: all, or a part without a gap.
#[derive(Debug, Clone, Copy)]
struct Octets {
    start: Seq,
    /// The number of the packet that carried them.
    number: u64,
    len: u32,
}

impl Octets {
    fn new(octets: &Range<Seq>, number: u64) -> Self {
        let len = octets.end.since(octets.start);
        Self {
            start: octets.start,
            number,
            len: u32::try_from(len).expect("octets of one segment"),
        }
    }

    fn range(self) -> Range<Seq> {
        self.start..self.start + u64::from(self.len)
    }
}

impl Resent {
    /// Records a retransmission of `octets`, of one segment, in the packet `number`; octets before
    /// `acknowledged` have been acknowledged.
    pub fn sent(&mut self, octets: Range<Seq>, number: u64, acknowledged: Seq) {
        // The bound counts octets that a receiver ahead of others has taken, too: beyond it the
        // number of spurious retransmissions may depend on the path.
        while self.open.len() >= MOST_ACKNOWLEDGED
            && let Some(&oldest) = self.open.front()
            && oldest.range().end <= acknowledged
        {
            self.open.pop_front();
            while self.remove_part_of(oldest) {}
        }
        self.latest = number;
        self.highest = self.highest.max(octets.end);
        if self.fresh.capacity() == 0 {
            // Mostly there is one.
            self.fresh.reserve_exact(1);
        }
        let octets = Octets::new(&octets, number);
        self.longest = self.longest.max(octets.len);
        self.fresh.push(octets);
    }

    /// Whether [`Self::compare`] has retransmissions to process.
    #[must_use]
    #[inline]
    pub fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Compares the latest retransmissions, at the time of sending, with the octets that the
    /// receiver is `missing`. Returns the number of spurious ones.
    pub fn compare(&mut self, missing: impl Fn(Range<Seq>) -> Vec<Range<Seq>>) -> u64 {
        let mut spurious = 0;
        let mut fresh = std::mem::take(&mut self.fresh);
        for sending in fresh.drain(..) {
            let gaps = missing(sending.range());
            spurious += u64::from(gaps.is_empty());
            for gap in gaps {
                self.insert(Octets::new(&gap, sending.number));
            }
        }
        self.fresh = fresh;
        spurious
    }

    fn insert(&mut self, octets: Octets) {
        let at = self
            .open
            .partition_point(|other| other.start <= octets.start);
        self.open.insert(at, octets);
    }

    /// Whether a retransmission was sent after the packet `number`.
    #[must_use]
    #[inline]
    pub const fn is_after(&self, number: u64) -> bool {
        number < self.latest
    }

    /// Records that the packet `number` brings `octets` to the receiver. Returns the number of
    /// retransmissions that this shows to be spurious.
    pub fn arrived(&mut self, octets: &Range<Seq>, number: u64) -> u64 {
        if octets.start >= self.highest {
            // New data beyond a gap.
            return 0;
        }
        let mut spurious = 0;
        let end = self.open.partition_point(|open| open.start < octets.end);
        for at in (self.near(octets.start)..end).rev() {
            let open = self.open[at];
            if open.number <= number || open.range().end <= octets.start {
                continue;
            }
            self.open.remove(at);
            // After the places that remain to be visited, or in this place.
            for left in without(&open.range(), octets) {
                self.insert(Octets::new(&left, open.number));
            }
            spurious += u64::from(self.part_of(open).is_none());
        }
        spurious
    }

    /// The first place whose octets may reach `start`.
    fn near(&self, start: Seq) -> usize {
        self.open
            .partition_point(|open| start.since(open.start) > u64::from(self.longest))
    }

    /// The place of missing octets of the same retransmission.
    fn part_of(&self, octets: Octets) -> Option<usize> {
        let first = self.near(octets.start);
        let near = self.open.range(first..);
        near.take_while(|open| open.start.since(octets.start) <= u64::from(self.longest))
            .position(|open| open.number == octets.number)
            .map(|at| first + at)
    }

    /// Removes a part of the same retransmission. Returns whether there was one.
    fn remove_part_of(&mut self, octets: Octets) -> bool {
        let at = self.part_of(octets);
        at.and_then(|at| self.open.remove(at)).is_some()
    }
}

/// The parts of `gap` before and after `octets`.
fn without(gap: &Range<Seq>, octets: &Range<Seq>) -> impl Iterator<Item = Range<Seq>> + use<> {
    let before = gap.start..gap.end.min(octets.start);
    let after = gap.start.max(octets.end)..gap.end;
    [before, after].into_iter().filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets(from: u64, to: u64) -> Range<Seq> {
        let first = Seq::first(u32::MAX - 50);
        first + from..first + to
    }

    fn acknowledged(to: u64) -> Seq {
        octets(to, to).start
    }

    /// A retransmission whose octets are all missing at the receiver.
    fn sent(resent: &mut Resent, (from, to): (u64, u64), number: u64) {
        resent.sent(octets(from, to), number, acknowledged(0));
        assert_eq!(resent.compare(|octets| vec![octets]), 0);
    }

    #[test]
    fn an_arrived_transmission_makes_every_later_one_spurious() {
        let mut resent = Resent::default();
        assert_eq!(resent.arrived(&octets(0, 100), 0), 0);
        sent(&mut resent, (0, 100), 5);
        sent(&mut resent, (0, 100), 9);
        assert!(resent.is_after(8));
        assert!(!resent.is_after(9));
        // The second is spurious because of the first; the first only if the original arrives.
        assert_eq!(resent.arrived(&octets(0, 100), 5), 1);
        assert_eq!(resent.arrived(&octets(0, 100), 9), 0);
        assert_eq!(resent.arrived(&octets(0, 100), 0), 1);
        assert_eq!(resent.arrived(&octets(0, 100), 0), 0);
    }

    #[test]
    fn a_retransmission_of_received_octets_is_spurious_at_once() {
        let mut resent = Resent::default();
        resent.sent(octets(0, 100), 3, acknowledged(0));
        resent.sent(octets(100, 200), 4, acknowledged(0));
        assert!(resent.has_fresh());
        let holds = |range: Range<Seq>| {
            let start = range.start.max(octets(150, 150).start);
            (start < range.end).then_some(start..range.end)
        };
        assert_eq!(resent.compare(|octets| Vec::from_iter(holds(octets))), 1);
        assert!(!resent.has_fresh());
        assert_eq!(resent.arrived(&octets(150, 200), 0), 1);
    }

    #[test]
    fn partial_arrivals_add_up() {
        let mut resent = Resent::default();
        sent(&mut resent, (100, 200), 9);
        assert_eq!(resent.arrived(&octets(0, 100), 1), 0);
        assert_eq!(resent.arrived(&octets(200, 300), 2), 0);
        assert_eq!(resent.arrived(&octets(120, 140), 3), 0);
        assert_eq!(resent.arrived(&octets(50, 125), 4), 0);
        assert_eq!(resent.arrived(&octets(150, 250), 5), 0);
        assert_eq!(resent.arrived(&octets(139, 151), 6), 1);
    }

    /// A long segment begins far before the arriving octets.
    #[test]
    fn a_long_segment_with_an_earlier_start_is_found() {
        let mut resent = Resent::default();
        sent(&mut resent, (0, 60_000), 1);
        sent(&mut resent, (50_000, 50_100), 2);
        assert_eq!(resent.arrived(&octets(0, 59_000), 0), 1);
        assert_eq!(resent.arrived(&octets(59_000, 60_000), 0), 1);
    }

    #[test]
    fn memory_is_bounded_by_the_outstanding_data() {
        let mut resent = Resent::default();
        for k in 0..100_000 {
            resent.sent(octets(k * 100, k * 100 + 100), k, acknowledged(k * 100));
            resent.compare(|octets| vec![octets]);
        }
        assert!(resent.open.len() <= MOST_ACKNOWLEDGED);
        let mut resent = Resent::default();
        for k in 0..10_000 {
            sent(&mut resent, (k * 100, k * 100 + 100), 10_000 + k);
        }
        for k in 0..10_000 {
            assert_eq!(resent.arrived(&octets(k * 100, k * 100 + 100), k), 1);
        }
    }
}
