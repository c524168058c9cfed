//! Which retransmissions of a connection prove spurious: their data arrived by another sending.
//!
//! A receiver that gets octets twice does not know why: the network duplicates packets, error correction rebuilds them,
//! and senders retransmit. Only the last makes a retransmission spurious, and each retransmission is spurious once.

use std::{collections::VecDeque, ops::Range};

use anabranch_tcp::Seq;

/// Retransmissions that are remembered although their octets are acknowledged: the original may still arrive.
const MOST_ACKNOWLEDGED: usize = 4_096;
/// No segment is longer.
const LONGEST: u64 = 65_535;

/// Retransmissions that have not proved spurious.
#[derive(Debug, Default)]
pub struct Resent {
    /// By first octet, then in order of sending. New ones come near the back, and leave near the front.
    open: VecDeque<Sending>,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
struct Sending {
    start: Seq,
    len: u32,
}

impl Sending {
    fn end(self) -> Seq {
        self.start + u64::from(self.len)
    }
}

impl Resent {
    /// A retransmission of `octets`, of one segment, leaves; what ends at or before `acknowledged` has been acknowledged.
    pub fn sent(&mut self, octets: Range<Seq>, acknowledged: Seq) {
        while self.open.len() >= MOST_ACKNOWLEDGED
            && let Some(oldest) = self.open.front()
            && oldest.end() <= acknowledged
        {
            self.open.pop_front();
        }
        let sending = Sending {
            start: octets.start,
            len: u32::try_from(octets.end.since(octets.start)).unwrap_or(u32::MAX),
        };
        let at = self.behind(octets.start);
        self.open.insert(at, sending);
    }

    /// Where those end that start at or before `start`.
    fn behind(&self, start: Seq) -> usize {
        self.open.partition_point(|sending| sending.start <= start)
    }

    /// A segment with `octets` arrives that brings nothing new. Whether that shows a retransmission to be spurious.
    pub fn arrived_twice(&mut self, octets: Range<Seq>) -> bool {
        let before = self
            .open
            .partition_point(|sending| sending.start < octets.end);
        let near = self
            .open
            .partition_point(|sending| octets.start.since(sending.start) > LONGEST);
        let found = (near..before).find(|at| {
            let sending = self.open.get(*at);
            sending.is_some_and(|sending| sending.end() > octets.start)
        });
        found.is_some_and(|at| self.open.remove(at).is_some())
    }
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

    #[test]
    fn each_retransmission_is_spurious_once() {
        let mut resent = Resent::default();
        assert!(!resent.arrived_twice(octets(0, 100)));
        resent.sent(octets(0, 100), acknowledged(0));
        resent.sent(octets(0, 100), acknowledged(0));
        assert!(resent.arrived_twice(octets(0, 100)));
        assert!(resent.arrived_twice(octets(0, 100)));
        assert!(!resent.arrived_twice(octets(0, 100)));
    }

    #[test]
    fn octets_that_were_not_retransmitted_prove_nothing() {
        let mut resent = Resent::default();
        resent.sent(octets(100, 200), acknowledged(0));
        assert!(!resent.arrived_twice(octets(0, 100)));
        assert!(!resent.arrived_twice(octets(200, 300)));
        // Segments may be cut anew, and reach across 2^32.
        assert!(resent.arrived_twice(octets(150, 250)));
        assert!(!resent.arrived_twice(octets(100, 200)));
    }

    /// A long segment begins far before the octets that arrive.
    #[test]
    fn a_segment_that_begins_earlier_is_found() {
        let mut resent = Resent::default();
        resent.sent(octets(0, 60_000), acknowledged(0));
        resent.sent(octets(50_000, 50_100), acknowledged(0));
        assert!(resent.arrived_twice(octets(59_000, 60_000)));
        assert!(resent.arrived_twice(octets(50_000, 50_100)));
    }

    #[test]
    fn memory_is_bounded_by_what_is_outstanding() {
        let mut resent = Resent::default();
        for k in 0..100_000 {
            resent.sent(octets(k * 100, k * 100 + 100), acknowledged(k * 100));
        }
        assert!(resent.open.len() <= MOST_ACKNOWLEDGED);
        let mut resent = Resent::default();
        for k in 0..100_000 {
            resent.sent(octets(k * 100, k * 100 + 100), acknowledged(0));
        }
        for k in 0..100_000 {
            assert!(resent.arrived_twice(octets(k * 100, k * 100 + 100)));
        }
    }
}
