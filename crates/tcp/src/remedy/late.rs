//! How late segments were that had been retransmitted for their duplicates: known only once the peer
//! reports a second copy, and then no longer to be seen.
//!
//! What is retransmitted for another reason (after a timeout, or by the last rules of NextSeg, RFC 6675
//! §4) comes twice without any reordering and is left out. So is what leaves a third time, as the first
//! segment of a recovery that follows another does (§5 (4.3)) while its second copy is on the way.

use std::collections::VecDeque;

use anabranch_wire::seq::Seq;

/// Segments remembered at most: more than a report takes to come back with any usual window.
const MOST: usize = 1024;

/// Segments that were retransmitted, oldest first.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// The number behind each, and, once it has arrived, how many segments sent later had come
    /// before it.
    list: VecDeque<(Seq, Option<u32>)>,
}

impl Arrivals {
    /// The segment before `end` is retransmitted.
    pub fn expect(&mut self, end: Seq) {
        if self.list.len() == MOST {
            self.list.pop_front();
        }
        self.list.push_back((end, None));
    }

    /// It leaves once more, or for another reason: a second copy will tell nothing.
    pub fn forget(&mut self, end: Seq) {
        self.take(end);
    }

    /// It has arrived, in one copy or the other.
    pub fn note(&mut self, end: Seq, length: u32) {
        let found = self.list.iter_mut().find(|(at, _)| *at == end);
        if let Some((_, known @ None)) = found {
            *known = Some(length);
        }
    }

    /// The peer reports it as a duplicate: how late it was.
    pub fn take(&mut self, end: Seq) -> Option<u32> {
        let index = self.list.iter().position(|(at, _)| *at == end)?;
        self.list.remove(index)?.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_once_and_the_oldest_are_forgotten() {
        let mut arrivals = Arrivals::default();
        let at = |n: u64| Seq::first(0) + n;
        for n in 0..=MOST as u64 {
            arrivals.expect(at(n));
            arrivals.note(at(n), 7);
        }
        assert_eq!(arrivals.take(at(0)), None);
        assert_eq!(arrivals.take(at(1)), Some(7));
        assert_eq!(arrivals.take(at(1)), None);
        // A third copy is in flight: the report may be of that.
        arrivals.expect(at(4000));
        arrivals.forget(at(4000));
        arrivals.note(at(4000), 9);
        assert_eq!(arrivals.take(at(4000)), None);
        // Not retransmitted for duplicates: it tells nothing.
        arrivals.note(at(5000), 9);
        assert_eq!(arrivals.take(at(5000)), None);
    }
}
