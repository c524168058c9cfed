//! Checks whether a receiver can have sent a SACK block (RFC 2018 §3, RFC 2883 §4).
//!
//! A firewall that randomises sequence numbers but not the SACK option produces blocks anywhere in
//! the sequence space. A sender ignores such blocks, and so does the diagnosis. A block beyond the
//! captured data may also report data that the capture lost. Such a device is proved only by a block
//! beyond the receiver's window, of data that is first sent later, or of data that the cumulative
//! acknowledgment never reaches although later data is acknowledged.

use std::collections::VecDeque;

use super::sender_view::FURTHEST;

/// Maximum number of blocks beyond the captured data that are stored. Beyond it, the oldest are
/// discarded.
const MOST_CLAIMS: usize = 64;

/// A SACK block, and the state when it passed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// The acknowledgment number of its segment.
    pub(crate) una: i64,
    /// One past the highest octet that was sent.
    pub(crate) next: i64,
    /// A D-SACK block by its position.
    pub(crate) is_duplicate: bool,
    /// Data of this direction was captured.
    pub(crate) has_data: bool,
}

/// Counts of SACK blocks, and the bounds that a receiver observes.
#[derive(Debug, Default)]
pub(crate) struct SackCheck {
    /// Blocks that were used.
    pub(crate) used: u64,
    /// Blocks that were ignored.
    pub(crate) ignored: u64,
    /// Ignored blocks that no receiver of this data would send.
    pub(crate) wrong: u64,
    /// The right edge of the receiver's window.
    edge: Option<i64>,
    /// The sequence number of the SYN: no block is below it.
    origin: Option<i64>,
    /// The blocks beyond the captured data.
    claims: VecDeque<Claim>,
}

/// A block of data that the capture lacks.
#[derive(Debug, Clone, Copy)]
struct Claim {
    start: i64,
    end: i64,
    /// One past the highest octet that was captured before the block.
    next: i64,
}

impl SackCheck {
    /// Records a window of the receiver.
    pub(crate) fn announce(&mut self, edge: i64) {
        self.edge = Some(self.edge.map_or(edge, |known| known.max(edge)));
    }

    /// Records that the SYN was captured. A receiver reports a second copy of it as a duplicate.
    pub(crate) fn begin(&mut self) {
        self.origin = Some(-1);
    }

    /// Counts a block. Returns whether a receiver can have sent it: it covers sent data above the
    /// acknowledgment, or reports a duplicate.
    pub(crate) fn is_possible(&mut self, block: &Block) -> bool {
        let &Block { start, end, .. } = block;
        let origin = self.origin.unwrap_or(block.una - FURTHEST);
        let edge = self.edge.unwrap_or(block.una + FURTHEST).max(block.next);
        let is_above = start > block.una || block.is_duplicate;
        let is_wrong = end <= start || !is_above || start < origin || end > edge;
        let is_beyond = !is_wrong && block.has_data && end > block.next;
        self.wrong += u64::from(is_wrong);
        if is_beyond {
            if self.claims.len() >= MOST_CLAIMS {
                self.claims.pop_front();
            }
            let next = block.next;
            self.claims.push_back(Claim { start, end, next });
        }
        if is_wrong || is_beyond {
            self.ignored += 1;
            return false;
        }
        self.used += 1;
        true
    }

    /// Processes data that is sent for the first time: a block that reported it earlier was wrong.
    /// Blocks about the same loss count as one: after a timeout, a sender may retransmit data that the
    /// receiver has and the capture lost.
    pub(crate) fn send(&mut self, start: i64, end: i64) {
        let mut claims = self.claims.iter();
        let is_claimed = |one: &&Claim| start < one.end && one.start < end;
        if let Some(&wrong) = claims.find(is_claimed) {
            self.wrong += 1;
            self.claims.retain(|one| one.next != wrong.next);
        }
    }

    /// Ends the connection. Data that the receiver had reported would have been acknowledged with the
    /// data sent after the report.
    pub(crate) fn finish(&mut self, una: i64) {
        let claims = self.claims.drain(..);
        let wrong = claims.filter(|one| one.next < una && una < one.end);
        self.wrong += u64::try_from(wrong.count()).unwrap_or(u64::MAX);
    }
}
