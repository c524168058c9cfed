//! The receiving half: what has come of each group, what its redundancy brings back, and when that is hopeless.
//!
//! On octets, XOR keeps a running sum in the room of one packet (Sato et al. §3.1); the other codes keep the
//! packets that redundancy to come may cover. On lengths both keep numbers alone, and bring back the same packets.
//!
//! What is brought back must fit the gap, its padding must be zeros and the checksum of all that the redundant
//! packet covers must be right ([`checksum`]); otherwise it is thrown away, and the redundant packet with it.
//!
//! A redundant packet is vouched for once all that it covers is there and sums up. Before that it may be anybody's: it
//! ends a hold, but moves nothing that later redundancy depends on ([`Shown`]).
//!
//! # Not implemented
//! - XOR has the sum of one group: redundancy that data of the next group has overtaken brings nothing back, unless it covers
//!   a single packet. It counts as lost.

mod rebuild;

use std::collections::VecDeque;

use super::stats::Stats;
use anabranch_core::body::Body;
use anabranch_erasure::{AnyCode, Code, xor::Sum};
use anabranch_wire::{
    Segment, Seq,
    redundant::{Hidden, Redundant, Tag, checksum},
};

/// A data packet that is there.
#[derive(Debug, Clone)]
struct Kept<B> {
    start: Seq,
    len: u32,
    share: u32,
    body: B,
    /// [`Open::turn`] of the sum that it was added to, if it was.
    turn: Option<u64>,
}

impl<B> Kept<B> {
    fn end(&self) -> Seq {
        self.start + u64::from(self.len)
    }
}

/// Which of a block's redundant packets came; however often the network doubles one, it repairs no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Which([u64; 4]);

impl Which {
    /// Whether that is news.
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
    /// Tells its sum from those before.
    turn: u64,
    /// First number seen of it.
    first: Option<Seq>,
    /// Packets seen, and their sum.
    count: u32,
    checksum: u32,
    sum: Sum,
    /// Packets known to be missing from it.
    missing: u32,
    /// Redundant packets of it that came.
    which: Which,
}

/// What redundancy says was sent although nothing of it has come, and nothing vouches for that yet. Data behind it confirms it.
#[derive(Debug, Clone, Copy)]
struct Shown {
    first: Seq,
    end: Seq,
    /// A group of which nothing has come.
    group: Option<Which>,
    count: u32,
}

/// What a redundant packet has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// All that it covers is there and sums up.
    Whole,
    /// Something that it covers is missing.
    Lacking,
    /// What it covers has been cut into other packets since, so that it says nothing.
    Foreign,
    /// It is not what it says.
    Refused,
}

/// What a packet means for acknowledgments that are held, or might be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Nothing,
    /// It had come before.
    Again,
    /// It was missing, and was retransmitted although redundancy to come might have brought it back.
    Resent,
    /// Something is missing that redundancy may bring back.
    Gap,
    /// More is missing from the group than it has redundancy for.
    SecondGap,
    /// The group is over, and something is missing from it.
    GroupOver,
    /// What is missing before this number is older than the group whose redundancy came, and that of its own did not.
    Passed(Seq),
}

/// A packet that was brought back.
#[derive(Debug)]
pub struct Recovered<B> {
    /// Its first number.
    pub start: Seq,
    /// Its content.
    pub body: B,
}

/// The most redundant packets that are kept for later.
const MOST_REDUNDANT: usize = 255;
/// The most packets, from the first that one of them covers to the last, that are looked at together.
const MOST_PLACES: u64 = 4_096;
/// Losses that one acknowledgment tells more than the one before: two in a row may be lost.
const MOST_TOLD: u32 = 2;

/// See the module.
#[derive(Debug)]
pub struct Receiver<B> {
    code: AnyCode,
    /// Behind the highest octet seen.
    top: Option<Seq>,
    kept: VecDeque<Kept<B>>,
    open: Open,
    shown: Option<Shown>,
    /// Redundant packets that a group had last.
    usual: u16,
    /// What is before this number matters to no redundant packet to come.
    floor: Seq,
    redundant: Vec<(Seq, Redundant<B>)>,
    hidden: Hidden,
    /// More of them, which no acknowledgment has told yet.
    untold: u32,
    /// See [`Self::trust`].
    secret: u32,
    edge: Seq,
}

impl<B: Body> Receiver<B> {
    /// With nothing received.
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

    /// Losses that only the layer saw, as the next acknowledgment tells them: a few more than the one before, so
    /// that three bits are enough where one or two acknowledgments are lost.
    #[must_use]
    pub fn tell(&mut self) -> Hidden {
        let news = self.untold.min(MOST_TOLD);
        self.untold -= news;
        self.hidden.add(news);
        self.hidden
    }

    /// Behind all that is known to have been sent: what has come, and what redundancy that came covers.
    #[must_use]
    pub fn top(&self) -> Seq {
        let shown = self.shown.map_or(Seq::START, |shown| shown.end);
        self.top.unwrap_or(Seq::START).max(shown)
    }

    /// What comes next is held against this: the connection's [`secret`](super::packet::secret), and the
    /// window's end, beyond which the peer sends nothing.
    pub const fn trust(&mut self, secret: u32, edge: Seq) {
        self.secret = secret;
        self.edge = edge;
    }

    /// A segment with payload arrives. `rcv_nxt`: the next number that TCP expects.
    pub fn on_data(&mut self, segment: &Segment<B>, rcv_nxt: Seq) -> Verdict {
        let start = self.top.unwrap_or(rcv_nxt).near(segment.seq);
        let len = segment.body.len();
        let end = start + u64::from(len);
        let top = *self.top.get_or_insert(rcv_nxt.min(start));
        if end > self.edge {
            // Nobody may send that, and TCP will not take it (RFC 9293 §3.10.7.4, first).
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
                // Its redundancy has overtaken it.
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
            // A block's hold ends with its group. The window slides on only as far as the sender's window lets it.
            let resent = news && !tag.is_some() && self.slides();
            return if resent { Verdict::Resent } else { verdict };
        }
        self.top = Some(end);
        let gap = start.since(top);
        if gap == 0 {
            return verdict;
        }
        if skipped {
            // A whole group is missing, its redundancy included, and perhaps some of this one as well.
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

    /// Data arrives at `start`, ahead of all before: what redundancy has shown before that was sent indeed, if nothing has
    /// contradicted it. Behind the highest octet known then.
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

    /// Notes that a packet is there, and adds it to its group's sum. Whether that is news.
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

    /// The most packets that are of use to redundancy to come: those of a group, of a block and the one before it, or of
    /// all windows that are looked at together.
    fn most_kept(&self) -> usize {
        match self.code {
            AnyCode::Xor(_) => self.code.most_sources() as usize,
            AnyCode::ReedSolomon(_) => 2 * self.code.most_sources() as usize,
            AnyCode::SlidingRlc(_) => usize::try_from(MOST_PLACES).unwrap_or(usize::MAX),
        }
    }

    /// Something of another group arrives, ahead of all before: the last one is over.
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
        // Redundancy that does not come was lost, and nobody else will notice.
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

    /// A redundant packet arrives. What it brings back is put into `recovered`.
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
            // The network has doubled it.
            return Verdict::Nothing;
        }
        if end <= self.floor {
            // It comes late, or all that it covers is there.
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
            // Nothing of its group has come.
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
        // Holes before what it covers stay.
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

    /// Notes that a redundant packet came, if it is the open group's. Whether that is news, and how many of them came.
    fn count_own(&mut self, (first, end): (Seq, Seq), key: u16) -> (bool, u32) {
        let slides = self.slides();
        let covers = |open: Seq| first <= open && (open < end || slides);
        if !self.open.first.is_none_or(covers) {
            return (false, 0);
        }
        (self.open.which.insert(key), self.open.which.count())
    }

    /// Octets that a redundant packet covers, if it can be right.
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

    /// What is before this number matters no more.
    fn forget_before(&mut self, seq: Seq) {
        let mut floor = seq;
        if self.slides() {
            // Sums with a hole in them may still be of use.
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

    /// Redundant packets that cover nothing that is missing are of no more use.
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

    /// Nothing is kept for ever, whatever comes or does not come.
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
