//! Checks numbers that no end of the connection may have sent: leaps, SACK blocks, and further SYN-ACKs.

use std::collections::VecDeque;

use super::sender_view::FURTHEST;
use crate::segment::Segment;

/// A leap that needs no confirmation. Larger windows are rare, and a random number is this close in
/// 1 of 256 cases.
const SHORT: i64 = 1 << 24;

/// The target of the last leap: a segment or acknowledgment whose number is further away than a window.
///
/// A sender has at most a window outstanding (RFC 9293 §3.8.6). A number further away belongs to
/// another connection between the same ends, or is damaged, or follows a gap in the capture. After
/// a gap, the next segment continues at the new number.
#[derive(Debug, Default)]
pub(crate) struct Leap {
    to: Option<i64>,
}

impl Leap {
    /// Whether the number `at` is accepted if the highest one before is `next`.
    pub(crate) fn is_accepted(&mut self, at: i64, next: i64, window: i64) -> bool {
        let longest = SHORT.max(2 * window);
        let is_short = at - next <= longest;
        let is_confirmed = self.to.is_some_and(|to| (at - to).abs() <= longest);
        self.to = (!is_short && !is_confirmed).then_some(at);
        is_short || is_confirmed
    }
}

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

/// Checks whether a receiver can have sent a SACK block (RFC 2018 §3, RFC 2883 §4).
///
/// A firewall that randomises sequence numbers but not the SACK option produces blocks anywhere in
/// the sequence space. A sender ignores such blocks, and so does the diagnosis. A block beyond the
/// captured data may also report data that the capture lost. Such a device is proved only by a block
/// beyond the receiver's window, of data that is first sent later, or of data that the cumulative
/// acknowledgment never reaches although later data is acknowledged.
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

/// Minimum number of wrong blocks: the first loss alone causes three duplicate acknowledgments (RFC
/// 5681 §3.2).
const FEW: u64 = 3;

/// Whether so many wrong blocks, beside those that were used, show a device that rewrites the sequence numbers,
/// but not those of the blocks.
pub(crate) const fn are_randomised(wrong: u64, used: u64) -> bool {
    wrong >= FEW && wrong > used
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

/// Maximum number of stored SYN-ACKs.
const MOST_ANSWERS: usize = 8;
/// Numbers further from a SYN-ACK belong to another connection.
pub(super) const NEAR: u32 = 1 << 24;

/// SYN-ACKs whose sequence number differs from the first: from a proxy, a second server, or an
/// older connection. The one that the peer acknowledges, or that the data continues, opens the
/// direction.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(super) others: Vec<Segment>,
}

impl Answers {
    pub(crate) fn keep(&mut self, segment: &Segment) {
        if self.others.len() < MOST_ANSWERS {
            self.others.push(*segment);
        }
    }

    /// Returns the other SYN-ACK to which a number of data or of an acknowledgment belongs. `first`
    /// is the octet after the SYN-ACK that opened the direction.
    #[cold]
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
