//! Checks whether a receiver can have sent a SACK block (RFC 2018 §3, RFC 2883 §4).
//!
//! A firewall that randomises sequence numbers but not the SACK option produces blocks anywhere in
//! the sequence space. A sender ignores such blocks, and so does the diagnosis. A block beyond the
//! captured data may also report data that the capture lost. Only a block beyond the receiver's
//! window, or of data that is first sent later, proves such a device.

use super::view::FURTHEST;

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
    /// The latest block beyond the captured data.
    claimed: Option<(i64, i64)>,
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
            self.claimed = Some((start, end));
        }
        if is_wrong || is_beyond {
            self.ignored += 1;
            return false;
        }
        self.used += 1;
        true
    }

    /// Processes data that is sent for the first time: a block that reported it earlier was wrong.
    pub(crate) fn send(&mut self, start: i64, end: i64) {
        let Some((from, to)) = self.claimed else {
            return;
        };
        let is_claimed = start < to && from < end;
        self.wrong += u64::from(is_claimed);
        if is_claimed || to <= start {
            self.claimed = None;
        }
    }
}
