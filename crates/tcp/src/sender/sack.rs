//! Selective acknowledgments as they arrive (RFC 2018, RFC 2883).

use super::Sender;
use crate::{
    recovery::{AckSummary, dsack},
    refusal::Refusal,
    segment::SackBlock,
    seq::Seq,
};
use anabranch_core::body::Body;

impl<B: Body> Sender<B> {
    /// Takes the blocks of a SACK option (RFC 2018), and the duplicate that the first may report.
    pub(super) fn take_sack(&mut self, blocks: &[SackBlock], ack: Seq, summary: &mut AckSummary) {
        if self.cold.watch.is_some() {
            summary.duplicate = dsack::reported(blocks, ack).map(|(left, right)| left..right);
        }
        if across_each_other(blocks) {
            self.refuse_sack(Refusal::SackBlock);
        }
        for block in blocks {
            let left = ack.near(block.left);
            let right = ack.near(block.right);
            let across = left < ack && right > ack;
            if left >= right || right > self.nxt || left < self.queue.first_octet() || across {
                self.refuse_sack(Refusal::SackBlock);
                summary.duplicate = None;
            } else if left < ack {
                // A duplicate (RFC 2883), or older than what is acknowledged.
            } else {
                summary.new_sack |= self.board.sack(left, right, &mut summary.delivered);
            }
        }
    }

    #[cold]
    fn refuse_sack(&mut self, reason: Refusal) {
        self.stats.malformed += u64::from(reason.is_malformed());
        self.cold.refused.get_or_insert_default().count(reason);
    }
}

/// Whether blocks of one option share octets, other than the first as a duplicate within the second
/// (RFC 2883 §4). Each may be right by itself, so what they report is taken all the same.
fn across_each_other(blocks: &[SackBlock]) -> bool {
    let reaches = |from: u32, to: u32| to.wrapping_sub(from).cast_signed() > 0;
    let share = |a: &SackBlock, b: &SackBlock| reaches(a.left, b.right) && reaches(b.left, a.right);
    let within =
        |a: &SackBlock, b: &SackBlock| !reaches(a.left, b.left) && !reaches(b.right, a.right);
    blocks.iter().enumerate().any(|(place, later)| {
        blocks[..place].iter().enumerate().any(|(first, earlier)| {
            share(earlier, later) && !((first, place) == (0, 1) && within(earlier, later))
        })
    })
}
