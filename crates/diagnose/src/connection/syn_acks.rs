//! SYN-ACKs whose sequence number differs from the first: from a proxy, a second server, or an
//! older connection.
//!
//! The SYN-ACK that the peer acknowledges, or that the data continues, opens the direction.

use crate::segment::Segment;

/// Maximum number of stored SYN-ACKs.
const MOST: usize = 8;
/// Numbers further from a SYN-ACK belong to another connection.
pub(super) const NEAR: u32 = 1 << 24;

/// The SYN-ACKs that did not open a direction.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    others: Vec<Segment>,
}

impl Answers {
    pub(crate) fn keep(&mut self, segment: &Segment) {
        if self.others.len() < MOST {
            self.others.push(*segment);
        }
    }

    /// Returns the other SYN-ACK to which a number of data or of an acknowledgment belongs. `first`
    /// is the octet after the SYN-ACK that opened the direction.
    pub(crate) fn choose(&mut self, first: u32, number: u32) -> Option<Segment> {
        let from = |first: u32| number.wrapping_sub(first);
        let others = self.others.iter();
        let nearest = others.min_by_key(|one| from(one.seq.wrapping_add(1)));
        let nearest =
            *nearest.filter(|one| from(one.seq.wrapping_add(1)) < NEAR.min(from(first)))?;
        self.others.clear();
        Some(nearest)
    }
}
