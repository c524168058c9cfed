//! The receiving half: the received packets of each group, the recovery of missing ones, and its
//! failure.
//!
//! On octets, XOR stores a running sum in the memory of one packet (Sato et al. §3.1); the other
//! codes store the packets that later redundancy may cover. On lengths, both store only numbers,
//! and recover the same packets.
//!
//! A recovered packet must fit the gap, its padding must be zeros, and the checksum of all packets
//! that the redundant packet covers must be right ([`checksum`]). Otherwise both packets are
//! discarded.
//!
//! A redundant packet is verified once all packets that it covers are present and the checksum
//! matches. Before that it may be forged: it can end a hold, but does not change state on which
//! later redundancy depends ([`Shown`]).
//!
//! # Not implemented
//! - XOR stores the sum of a single group. Redundancy that was overtaken by data of the next group
//!   recovers no packet, unless it covers a single one, and counts as lost.

mod rebuild;

use std::collections::VecDeque;

use super::stats::Stats;
use anabranch_core::body::Body;
use anabranch_erasure::{AnyCode, Code, xor::Sum};
use anabranch_wire::{
    Segment, Seq,
    redundant::{Hidden, Redundant, Tag, checksum},
};

/// A data packet that is present.
#[derive(Debug, Clone)]
struct Kept<B> {
    start: Seq,
    len: u32,
    share: u32,
    body: B,
    /// [`Open::turn`] of the sum to which it was added, if any.
    turn: Option<u64>,
}

impl<B> Kept<B> {
    fn end(&self) -> Seq {
        self.start + u64::from(self.len)
    }
}

/// The set of a block's redundant packets that arrived. Duplicates made by the network do not
/// count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Which([u64; 4]);

impl Which {
    /// Adds a redundant packet. Returns whether it is new.
    fn insert(&mut self, key: u16) -> bool {
        let [which, _] = key.to_le_bytes();
        let (word, bit) = (&mut self.0[usize::from(which / 64)], 1 << (which % 64));
        let news = *word & bit == 0;
        *word |= bit;
        news
    }
    fn count(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}

/// The group whose data is arriving.
#[derive(Debug, Default)]
struct Open {
    tag: Tag,
    /// Distinguishes its sum from earlier ones.
    turn: u64,
    /// Its lowest number received.
    first: Option<Seq>,
    /// Packets received, and their sum.
    count: u32,
    checksum: u32,
    sum: Sum,
    /// Packets known to be missing.
    missing: u32,
    /// Its redundant packets that arrived.
    which: Which,
}

/// Data that redundancy reports as sent although none of it has arrived, and that is not verified
/// yet. Later data confirms it.
#[derive(Debug, Clone, Copy)]
struct Shown {
    first: Seq,
    end: Seq,
    /// Set for a group of which no data has arrived.
    group: Option<Which>,
    count: u32,
}

/// The outcome of a redundant packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// All packets that it covers are present, and the checksum matches.
    Whole,
    /// A packet that it covers is missing.
    Lacking,
    /// The covered data has since been segmented differently, so that the packet is unusable.
    Foreign,
    /// The packet is invalid.
    Refused,
}

/// The effect of a packet on acknowledgments that are held, or might be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No effect.
    Nothing,
    /// It had arrived before.
    Again,
    /// It was missing, and was retransmitted although later redundancy might have recovered it.
    Resent,
    /// Data is missing that redundancy may recover.
    Gap,
    /// More packets of the group are missing than it has redundancy for.
    SecondGap,
    /// The group has ended with packets missing.
    GroupOver,
    /// All gaps below this number belong to earlier groups, whose redundancy never arrived.
    Passed(Seq),
}

/// A recovered packet.
#[derive(Debug)]
pub struct Recovered<B> {
    /// Its first number.
    pub start: Seq,
    /// Its content.
    pub body: B,
}

/// Maximum number of stored redundant packets.
const MOST_REDUNDANT: usize = 255;
/// Longest span of packets, from the first one covered to the last, that is solved together.
const MOST_PLACES: u64 = 4_096;
/// Maximum number of new losses that one acknowledgment reports: two acknowledgments in a row may
/// be lost.
const MOST_TOLD: u32 = 2;

/// See the module.
#[derive(Debug)]
pub struct Receiver<B> {
    code: AnyCode,
    /// One past the highest octet seen.
    top: Option<Seq>,
    kept: VecDeque<Kept<B>>,
    open: Open,
    shown: Option<Shown>,
    /// Number of redundant packets of the last group.
    usual: u16,
    /// Data below this number is covered by no later redundant packet.
    floor: Seq,
    redundant: Vec<(Seq, Redundant<B>)>,
    hidden: Hidden,
    /// Further losses that no acknowledgment has reported yet.
    untold: u32,
    /// See [`Self::trust`].
    secret: u32,
    edge: Seq,
}

impl<B: Body> Receiver<B> {
    /// Creates a receiver without data.
    #[must_use]
    pub fn new(code: AnyCode) -> Self {
        Self {
            code,
            top: None,
            kept: VecDeque::new(),
            open: Open::default(),
            shown: None,
            usual: 1,
            floor: Seq::START,
            redundant: Vec::new(),
            hidden: Hidden::default(),
            untold: 0,
            secret: 0,
            edge: Seq::START,
        }
    }

    /// The count of losses that only the layer detected, for the next acknowledgment. It exceeds
    /// the previous count by only a few, so that three bits suffice if one or two acknowledgments
    /// are lost.
    #[must_use]
    pub fn tell(&mut self) -> Hidden {
        let news = self.untold.min(MOST_TOLD);
        self.untold -= news;
        self.hidden.add(news);
        self.hidden
    }

    /// One past all data known to have been sent: received data, and data covered by redundancy
    /// that arrived.
    #[must_use]
    pub fn top(&self) -> Seq {
        let shown = self.shown.map_or(Seq::START, |shown| shown.end);
        self.top.unwrap_or(Seq::START).max(shown)
    }

    /// Sets the values against which packets are verified: the connection's
    /// [`secret`](super::packet::secret), and the right edge of the window, beyond which the peer
    /// sends no data.
    pub const fn trust(&mut self, secret: u32, edge: Seq) {
        self.secret = secret;
        self.edge = edge;
    }

    /// Processes a segment with payload. `rcv_nxt` is the next number that TCP expects.
    pub fn on_data(&mut self, segment: &Segment<B>, rcv_nxt: Seq) -> Verdict {
        let start = self.top.unwrap_or(rcv_nxt).near(segment.seq);
        let len = segment.body.len();
        let end = start + u64::from(len);
        let top = *self.top.get_or_insert(rcv_nxt.min(start));
        if end > self.edge {
            // TCP does not accept data beyond the window (RFC 9293 §3.10.7.4, first).
            return Verdict::Nothing;
        }
        let tag = Tag::read(segment);
        let ahead = tag.is_some() && end > top;
        let top = if ahead { self.confirm(start) } else { top };
        let mut verdict = Verdict::Nothing;
        let mut skipped = false;
        if ahead && tag != self.open.tag {
            skipped = self.open.first.is_some() && tag != self.open.tag.next();
            verdict = self.begin_group(tag, start);
            if let Some(shown) = &mut self.shown
                && (shown.first..shown.end).contains(&start)
                && let Some(which) = shown.group.take()
            {
                // Its redundancy arrived before it.
                self.open.which = which;
            }
        }
        let news = self.keep(segment, start);
        if news && tag.is_some() && tag == self.open.tag {
            self.open.first = self.open.first.map(|first| first.min(start));
            if !ahead {
                // It was late, not lost.
                self.open.missing = self.open.missing.saturating_sub(1);
            }
        }
        if !ahead {
            // A block's hold ends with its group. A sliding window advances only as far as the
            // sender's window permits.
            let resent = news && !tag.is_some() && self.slides();
            return if resent { Verdict::Resent } else { verdict };
        }
        self.top = Some(end);
        let gap = start.since(top);
        if gap == 0 {
            return verdict;
        }
        if skipped {
            // A whole group is missing with its redundancy, and perhaps a part of this one.
            self.untold += u32::from(self.usual);
            return if self.slides() {
                Verdict::Gap
            } else {
                Verdict::GroupOver
            };
        }
        let packets = u32::try_from(gap.div_ceil(u64::from(len))).unwrap_or(u32::MAX);
        self.open.missing = self.open.missing.saturating_add(packets);
        if verdict != Verdict::Nothing {
            verdict
        } else if !self.slides() && self.open.missing > u32::from(self.usual) {
            Verdict::SecondGap
        } else {
            Verdict::Gap
        }
    }

    /// Handles data at `start`, after all earlier data. It confirms the data that redundancy
    /// reported as sent, unless that was contradicted. Returns one past the highest octet then
    /// known.
    fn confirm(&mut self, start: Seq) -> Seq {
        let top = self.top.unwrap_or(start);
        let Some(shown) = self.shown.filter(|shown| shown.end <= start) else {
            return top;
        };
        self.shown = None;
        if let Some(which) = shown.group
            && shown.first >= top
        {
            self.begin_group(self.open.tag.next(), shown.first);
            self.open.missing = shown.count;
            self.open.which = which;
        }
        let top = top.max(shown.end);
        self.top = Some(top);
        top
    }

    fn slides(&self) -> bool {
        matches!(self.code, AnyCode::SlidingRlc(_))
    }

    /// Stores a packet and adds it to its group's sum. Returns whether it is new.
    fn keep(&mut self, segment: &Segment<B>, start: Seq) -> bool {
        let len = segment.body.len();
        let end = start + u64::from(len);
        let place = self.kept.partition_point(|kept| kept.start < start);
        let next = self.kept.get(place).is_some_and(|next| next.start < end);
        if next || start < self.floor || place > 0 && self.kept[place - 1].end() > start {
            return false;
        }
        let octets = segment.body.octets();
        let share = octets.map_or(0, |octets| checksum(segment.seq, octets));
        let tag = Tag::read(segment);
        let mut turn = None;
        let body = if let AnyCode::Xor(_) = self.code {
            if tag.is_some() && tag == self.open.tag {
                turn = Some(self.open.turn);
                self.open.count += 1;
                self.open.checksum = self.open.checksum.wrapping_add(share);
                if let Some(octets) = octets {
                    self.open.sum.add(octets);
                }
            }
            B::default()
        } else {
            segment.body.clone()
        };
        let kept = Kept {
            start,
            len,
            share,
            body,
            turn,
        };
        self.kept.insert(place, kept);
        if self.kept.len() > self.most_kept() {
            self.kept.pop_front();
        }
        true
    }

    /// Maximum number of packets that later redundancy can use: the packets of a group, of a block
    /// and the previous one, or of all windows that are solved together.
    fn most_kept(&self) -> usize {
        match self.code {
            AnyCode::Xor(_) => self.code.most_sources() as usize,
            AnyCode::ReedSolomon(_) => 2 * self.code.most_sources() as usize,
            AnyCode::SlidingRlc(_) => usize::try_from(MOST_PLACES).unwrap_or(usize::MAX),
        }
    }

    /// Begins another group, at data beyond all earlier data. The previous group has ended.
    fn begin_group(&mut self, tag: Tag, start: Seq) -> Verdict {
        let Open {
            first,
            missing,
            which,
            turn,
            ..
        } = self.open;
        let redundant = which.count();
        if self.slides() {
            self.usual = u16::try_from(redundant.max(1)).unwrap_or(u16::MAX);
        }
        let lacks = match first {
            Some(_) => u32::from(self.usual).saturating_sub(redundant),
            None => 0,
        };
        // Missing redundant packets were lost, and only the layer detects this.
        self.untold += lacks;
        self.open.sum.clear();
        self.open = Open {
            tag,
            turn: turn + 1,
            first: Some(start),
            sum: std::mem::take(&mut self.open.sum),
            ..Open::default()
        };
        if lacks > 0 && missing > 0 && !self.slides() {
            Verdict::GroupOver
        } else {
            Verdict::Nothing
        }
    }

    /// Processes a redundant packet. Recovered packets are added to `recovered`.
    pub fn on_redundant(
        &mut self,
        packet: &Redundant<B>,
        rcv_nxt: Seq,
        recovered: &mut Vec<Recovered<B>>,
        stats: &mut Stats,
    ) -> Verdict {
        stats.redundant_received += 1;
        let top = *self.top.get_or_insert(rcv_nxt);
        let first = top.near(packet.first);
        let Some(span) = self
            .span(packet)
            .filter(|span| first + u64::from(*span) <= self.edge)
        else {
            stats.redundant_refused += 1;
            return Verdict::Nothing;
        };
        let end = first + u64::from(span);
        let twice = |(other, kept): &(Seq, Redundant<B>)| *other == first && kept.is_same(packet);
        if self.redundant.iter().any(twice) {
            // A duplicate made by the network.
            return Verdict::Nothing;
        }
        if end <= self.floor {
            // It is late, or all packets that it covers are present.
            self.count_own((first, end), packet.key);
            return Verdict::Nothing;
        }
        let before = recovered.len();
        let outcome = self.bring_back((first, end), packet, recovered, stats);
        if matches!(outcome, Outcome::Foreign | Outcome::Refused) {
            return Verdict::Nothing;
        }
        let whole = outcome == Outcome::Whole;
        let ahead = first >= top && !self.slides();
        let mut verdict = Verdict::Nothing;
        let (news, came);
        if ahead {
            // No data of its group has arrived.
            let mut which = match self.shown {
                Some(shown) if shown.first == first => shown.group.unwrap_or_default(),
                _ => Which::default(),
            };
            news = which.insert(packet.key);
            came = which.count();
            if whole {
                verdict = self.begin_group(self.open.tag.next(), first);
                self.open.missing = packet.count.into();
                self.open.which = which;
            } else {
                self.shown = Some(Shown {
                    first,
                    end,
                    group: Some(which),
                    count: packet.count.into(),
                });
            }
        } else {
            let known = self.top();
            if end > known {
                let tail = end.since(known).div_ceil(packet.size.into());
                let tail = u32::try_from(tail).unwrap_or(u32::MAX);
                self.open.missing = self.open.missing.saturating_add(tail);
            }
            (news, came) = self.count_own((first, end), packet.key);
            if !whole && end > top {
                let group = None;
                self.shown = Some(Shown {
                    first,
                    end,
                    group,
                    count: 0,
                });
            }
        }
        if whole {
            self.top = Some(top.max(end));
            self.shown = self.shown.filter(|shown| shown.end > end);
            if !self.slides() {
                self.usual = packet.key >> 8;
            }
        }
        let n = u32::try_from(recovered.len() - before).unwrap_or(u32::MAX);
        if n > 0 {
            stats.redundant_useful += 1;
            stats.recovered_packets += u64::from(n);
            self.untold += n;
            self.open.missing = self.open.missing.saturating_sub(n);
        }
        // Gaps before the covered range remain.
        let passed = rcv_nxt < first && recovered.iter().all(|one| one.start != rcv_nxt);
        if self.slides() {
            if passed {
                verdict = Verdict::GroupOver;
            }
        } else if !whole && news && came >= u32::from(packet.key >> 8) {
            verdict = Verdict::GroupOver;
        }
        if whole {
            self.forget_before(if self.slides() { first } else { end });
        }
        self.prune();
        if passed && verdict == Verdict::Nothing {
            verdict = Verdict::Passed(first);
        }
        verdict
    }

    /// Records a redundant packet if it belongs to the open group. Returns whether it is new, and
    /// how many have arrived.
    fn count_own(&mut self, (first, end): (Seq, Seq), key: u16) -> (bool, u32) {
        let slides = self.slides();
        let covers = |open: Seq| first <= open && (open < end || slides);
        if !self.open.first.is_none_or(covers) {
            return (false, 0);
        }
        (self.open.which.insert(key), self.open.which.count())
    }

    /// Octets that a redundant packet covers, if it is plausible.
    fn span(&self, packet: &Redundant<B>) -> Option<u32> {
        let size = u32::from(packet.size);
        let body = match self.code {
            AnyCode::ReedSolomon(_) => size.next_multiple_of(2),
            _ => size,
        };
        let (of, which) = (packet.key >> 8, packet.key & 0xff);
        let possible = packet.body.len() == body
            && u32::from(packet.count) <= self.code.most_sources()
            && match self.code {
                AnyCode::Xor(_) => (of, which) == (1, 0),
                AnyCode::ReedSolomon(_) => which < of,
                AnyCode::SlidingRlc(_) => true,
            };
        packet.span().filter(|_| possible)
    }

    /// Discards state below this number.
    fn forget_before(&mut self, seq: Seq) {
        let mut floor = seq;
        if self.slides() {
            // Redundant packets that cover a missing packet may still be of use.
            self.forget_whole();
            for (first, _) in &self.redundant {
                floor = floor.min(*first);
            }
        } else {
            self.redundant.retain(|(first, _)| *first >= seq);
        }
        self.floor = self.floor.max(floor);
        let gone = self.kept.partition_point(|kept| kept.start < self.floor);
        self.kept.drain(..gone);
    }

    /// Discards redundant packets that cover no missing packet.
    fn forget_whole(&mut self) {
        let kept = &self.kept;
        let whole = |first: Seq, packet: &Redundant<B>| {
            let end = first + u64::from(packet.span().unwrap_or(0));
            let from = kept.partition_point(|one| one.start < first);
            let to = kept.partition_point(|one| one.start < end);
            to - from >= usize::from(packet.count)
        };
        self.redundant
            .retain(|(first, packet)| !whole(*first, packet));
    }

    /// Bounds the number of stored redundant packets.
    fn prune(&mut self) {
        if self.slides() {
            self.forget_whole();
        }
        let surplus = self.redundant.len().saturating_sub(MOST_REDUNDANT);
        self.redundant.drain(..surplus);
    }
}

#[cfg(test)]
mod tests;
