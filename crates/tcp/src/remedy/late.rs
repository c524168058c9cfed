//! Lateness of segments that were retransmitted after duplicates. A retransmission is known to be
//! spurious only once the peer reports a second copy, and the lateness can no longer be observed
//! then, so it is recorded here.
//!
//! Segments retransmitted for another reason (after a timeout, or by the last rules of NextSeg, RFC
//! 6675 §4) arrive twice without any reordering and are excluded. So are segments sent a third time
//! while their second copy is in flight, such as the first segment of a recovery that follows
//! another (§5 (4.3)).

use std::collections::VecDeque;

use anabranch_wire::seq::Seq;

/// Maximum number of recorded segments: more than are sent until a report arrives with any usual
/// window.
const MOST: usize = 1024;

/// Retransmitted segments, oldest first.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// One past the last octet of each segment, and, once it has arrived, the number of segments
    /// sent later that arrived before it.
    list: VecDeque<(Seq, Option<u32>)>,
}

impl Arrivals {
    /// Records a retransmission of the segment before `end`.
    pub fn expect(&mut self, end: Seq) {
        if self.list.len() == MOST {
            self.list.pop_front();
        }
        self.list.push_back((end, None));
    }

    /// Removes the segment, because it is sent once more or for another reason: a second copy would
    /// show nothing about reordering.
    pub fn forget(&mut self, end: Seq) {
        self.take(end);
    }

    /// Records the arrival of the segment's first copy, original or retransmission, and its
    /// lateness.
    pub fn note(&mut self, end: Seq, length: u32) {
        let found = self.list.iter_mut().find(|(at, _)| *at == end);
        if let Some((_, known @ None)) = found {
            *known = Some(length);
        }
    }

    /// Returns the lateness of a segment that the peer reports as a duplicate, and removes it.
    pub fn take(&mut self, end: Seq) -> Option<u32> {
        let index = self.list.iter().position(|(at, _)| *at == end)?;
        self.list.remove(index)?.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lateness_is_taken_once_and_the_oldest_are_dropped() {
        let mut arrivals = Arrivals::default();
        let at = |n: u64| Seq::first(0) + n;
        for n in 0..=MOST as u64 {
            arrivals.expect(at(n));
            arrivals.note(at(n), 7);
        }
        assert_eq!(arrivals.take(at(0)), None);
        assert_eq!(arrivals.take(at(1)), Some(7));
        assert_eq!(arrivals.take(at(1)), None);
        // A third copy is in flight: the report may be for that copy.
        arrivals.expect(at(4000));
        arrivals.forget(at(4000));
        arrivals.note(at(4000), 9);
        assert_eq!(arrivals.take(at(4000)), None);
        // Not retransmitted after duplicates: its lateness is not recorded.
        arrivals.note(at(5000), 9);
        assert_eq!(arrivals.take(at(5000)), None);
    }
}
