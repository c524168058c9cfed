//! Duplicates reported by the peer (RFC 2883 §4, §5).
//!
//! # Differs from Linux
//! - Nothing known.
//!
//! # Not implemented
//! - Distinguishing duplicates made by the network from spurious retransmissions (RFC 3708 §3).
//!   [`undo`](super::undo) does ignore duplicates of segments that were never retransmitted.

use anabranch_wire::{segment::SackBlock, seq::Seq};

/// Returns the duplicate that the first of `blocks` reports, if it is one: it lies below the
/// cumulative acknowledgment, or within the second block.
#[must_use]
pub fn reported(blocks: &[SackBlock], ack: Seq) -> Option<(Seq, Seq)> {
    let first = blocks.first()?;
    let (left, right) = (ack.near(first.left), ack.near(first.right));
    if left >= right {
        return None;
    }
    if left < ack {
        return Some((left, right.min(ack)));
    }
    let second = blocks.get(1)?;
    let inside = ack.near(second.left) <= left && right <= ack.near(second.right);
    inside.then_some((left, right))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ack: u64, blocks: &[(u32, u32)]) -> Option<(u32, u32)> {
        let blocks: Vec<SackBlock> = blocks
            .iter()
            .map(|&(left, right)| SackBlock { left, right })
            .collect();
        reported(&blocks, Seq::first(0) + ack).map(|(left, right)| (left.wire(), right.wire()))
    }

    /// The examples of RFC 2883 §4.1 to §4.3 and §5, with its numbers.
    #[test]
    fn rfc_2883_examples() {
        // §4.1, a full segment twice, all before it acknowledged.
        assert_eq!(of(4000, &[(3000, 3500)]), Some((3000, 3500)));
        assert_eq!(of(4000, &[(3000, 3500), (4500, 5000)]), Some((3000, 3500)));
        assert_eq!(of(4000, &[(5000, 5500), (5000, 6000)]), Some((5000, 5500)));
        // §4.2, parts of segments.
        assert_eq!(of(1500, &[(500, 1000)]), Some((500, 1000)));
        assert_eq!(of(2500, &[(1000, 1500)]), Some((1000, 1500)));
        assert_eq!(of(1000, &[(1500, 2000), (1500, 3000)]), Some((1500, 2000)));
        // §4.3, parts of two blocks are reported of one.
        assert_eq!(of(500, &[(2000, 2500), (1500, 3000)]), Some((2000, 2500)));
        // No duplicate at all.
        assert_eq!(of(500, &[(1500, 2000), (1000, 1200)]), None);
        assert_eq!(of(500, &[(1000, 1500)]), None);
        assert_eq!(of(500, &[]), None);
        // Impossible.
        assert_eq!(of(4000, &[(3500, 3000)]), None);
    }
}
