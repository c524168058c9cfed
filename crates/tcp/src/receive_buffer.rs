//! Reassembly and the receive buffer: data received, in order or not, and not yet read.
//!
//! In-order data is only counted (if the application takes all data at once) or queued for reading.
//! Out-of-order data is stored as disjoint intervals in a sorted deque: new data is inserted near
//! its back and repairs near its front, where insertion is cheap.

use std::{collections::VecDeque, ops::Range};

use anabranch_core::body::Body;
use anabranch_wire::{segment::SackBlock, seq::Seq};

/// Octets that arrived beyond a gap. The last interval also has the number of a FIN if `end` is one
/// past that of its last octet.
#[derive(Debug)]
struct Interval<B> {
    start: Seq,
    end: Seq,
    body: B,
}

impl<B: Body> Interval<B> {
    /// One past the last octet.
    fn data_end(&self) -> Seq {
        self.start + u64::from(self.body.len())
    }
}

/// The ends of an interval.
type Block = (Seq, Seq);

/// Below every interval.
const NONE: Block = (Seq::START, Seq::START);

/// The receive buffer; see the module.
#[derive(Debug)]
pub struct ReceiveBuffer<B> {
    intervals: VecDeque<Interval<B>>,
    /// The intervals reported last, latest first (RFC 2018 §4); [`NONE`] for none. Those below the
    /// first of `intervals` have been taken.
    recent: [Block; 4],
    /// A duplicate to report once (RFC 2883 §4).
    duplicate: Option<(Seq, Seq)>,
    ready: VecDeque<B>,
    unread: u64,
    /// Octets in `intervals`.
    beyond: u64,
}

impl<B> Default for ReceiveBuffer<B> {
    fn default() -> Self {
        Self {
            intervals: VecDeque::new(),
            recent: [NONE; 4],
            duplicate: None,
            ready: VecDeque::new(),
            unread: 0,
            beyond: 0,
        }
    }
}

impl<B: Body> ReceiveBuffer<B> {
    /// Octets in order that the application has not read.
    #[must_use]
    pub const fn unread(&self) -> u64 {
        self.unread
    }
    /// Whether data has arrived beyond a gap.
    #[must_use]
    pub fn has_gaps(&self) -> bool {
        !self.intervals.is_empty()
    }

    /// Octets beyond gaps.
    #[must_use]
    pub const fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Octets of the next piece to read.
    #[must_use]
    pub fn first_unread(&self) -> u64 {
        self.ready.front().map_or(0, |body| u64::from(body.len()))
    }

    /// One past the last number beyond a gap.
    #[must_use]
    pub fn end(&self) -> Option<Seq> {
        self.intervals.back().map(|interval| interval.end)
    }

    /// Queues octets in order for the application.
    pub fn push_ready(&mut self, body: B) {
        if !body.is_empty() {
            self.unread += u64::from(body.len());
            self.ready.push_back(body);
        }
    }

    /// Returns at most `max` octets in order.
    pub fn read(&mut self, max: u64) -> B {
        let mut out = B::default();
        let mut left = u32::try_from(max.min(self.unread)).unwrap_or(u32::MAX);
        while left > 0
            && let Some(mut front) = self.ready.pop_front()
        {
            if front.len() > left {
                let rest = front.slice(left, front.len() - left);
                front = front.slice(0, left);
                self.ready.push_front(rest);
            }
            left -= front.len();
            self.unread -= u64::from(front.len());
            if out.is_empty() {
                out = front;
            } else {
                out.append(&front);
            }
        }
        out
    }

    /// Returns at most `max` octets in order, which stay unread.
    #[must_use]
    pub fn peek(&self, max: u64) -> B {
        let mut out = B::default();
        let mut left = u32::try_from(max.min(self.unread)).unwrap_or(u32::MAX);
        for body in &self.ready {
            let len = body.len().min(left);
            if len == 0 {
                break;
            }
            left -= len;
            if out.is_empty() {
                out = body.slice(0, len);
            } else {
                out.append(&body.slice(0, len));
            }
        }
        out
    }

    /// Stores `body`, which begins at `start`, beyond the next expected number. Returns `false` if
    /// nothing of it is new. Stored data takes precedence over a new copy, so that a stream once
    /// received never changes.
    pub fn insert(&mut self, start: Seq, body: &B) -> bool {
        let end = start + u64::from(body.len());
        // Most data follows all that has arrived.
        match self.intervals.back_mut() {
            Some(last) if last.end == start => {
                last.end = end;
                last.body.append(body);
                let block = (last.start, end);
                self.beyond += end.since(start);
                self.report(block);
                start < end
            }
            Some(last) if last.end > start => self.insert_between(start, end, body),
            _ => {
                let body = body.clone();
                self.intervals.push_back(Interval { start, end, body });
                self.beyond += end.since(start);
                self.report((start, end));
                start < end
            }
        }
    }

    /// [`Self::insert`] below the end of the last interval.
    fn insert_between(&mut self, start: Seq, end: Seq, body: &B) -> bool {
        // First interval that ends at or after `start`; all up to `last` touch the new data.
        let first = self.intervals.partition_point(|i| i.end < start);
        let mut last = first;
        let mut at = start;
        let mut merged: Option<Interval<B>> = None;
        let mut new = false;
        while let Some(interval) = self.intervals.get_mut(last)
            && interval.start <= end
        {
            if interval.start <= start && interval.end >= end {
                let block = (interval.start, interval.end);
                self.report(block);
                return false;
            }
            let gap = part(body, start, at, interval.start.max(at));
            new |= !gap.is_empty();
            self.beyond += u64::from(gap.len());
            at = at.max(interval.end);
            let this = std::mem::replace(
                interval,
                Interval {
                    start,
                    end: start,
                    body: B::default(),
                },
            );
            merged = Some(match merged {
                None if gap.is_empty() => this,
                None => {
                    let start = this.start - u64::from(gap.len());
                    let mut body = gap;
                    body.append(&this.body);
                    Interval {
                        start,
                        end: this.end,
                        body,
                    }
                }
                Some(mut whole) => {
                    whole.body.append(&gap);
                    whole.body.append(&this.body);
                    whole.end = this.end;
                    whole
                }
            });
            last += 1;
        }
        let tail = part(body, start, at, end.max(at));
        new |= !tail.is_empty();
        self.beyond += u64::from(tail.len());
        let block;
        match merged {
            None => {
                block = (start, end);
                self.intervals.insert(
                    first,
                    Interval {
                        start,
                        end,
                        body: tail,
                    },
                );
            }
            Some(mut whole) => {
                whole.end += u64::from(tail.len());
                whole.body.append(&tail);
                block = (whole.start, whole.end);
                self.intervals[first] = whole;
                if last > first + 1 {
                    self.intervals.drain(first + 1..last);
                }
            }
        }
        self.report(block);
        new
    }

    /// Stores a FIN beyond the next expected number. Returns `false` if it is stored already, or if
    /// data beyond it contradicts it.
    pub fn insert_fin(&mut self, fin: Seq) -> bool {
        let new = self.end().is_none_or(|end| end <= fin);
        if new {
            match self.intervals.back_mut() {
                Some(last) if last.end == fin => last.end = fin + 1,
                _ => self.intervals.push_back(Interval {
                    start: fin,
                    end: fin + 1,
                    body: B::default(),
                }),
            }
        }
        if let Some(block) = self.around(fin) {
            self.report(block);
        }
        new
    }

    /// Removes the data that now follows `rcv_nxt` without a gap: the octets, and one past the last
    /// octet's number.
    pub fn take(&mut self, rcv_nxt: Seq) -> Option<(B, Seq)> {
        let mut taken = None;
        while let Some(front) = self.intervals.front()
            && front.start <= rcv_nxt
        {
            let Some(front) = self.intervals.pop_front() else {
                break;
            };
            let end = front.data_end();
            self.beyond -= end.since(front.start);
            if end > rcv_nxt {
                taken = Some((part(&front.body, front.start, rcv_nxt, end), end));
                break;
            }
        }
        if self.intervals.is_empty() {
            self.recent = [NONE; 4];
        }
        taken
    }

    /// Records the interval `this` as the latest. It replaces the blocks that it has grown from.
    fn report(&mut self, this: Block) {
        if self.recent[0].0 == this.0 {
            let rest = self.recent[0].1..this.1;
            self.recent[0].1 = this.1;
            if !self.recent[1..].iter().any(|other| rest.contains(&other.0)) {
                return;
            }
        }
        let mut kept = [this, NONE, NONE, NONE];
        let mut n = 1;
        for other in self.recent {
            if n < 4 && other != NONE && !(this.0 <= other.0 && other.0 < this.1) {
                kept[n] = other;
                n += 1;
            }
        }
        self.recent = kept;
    }

    /// The blocks that can be reported, latest first.
    fn latest(&self) -> impl Iterator<Item = Block> {
        let first = self.intervals.front().map_or(Seq::END, |first| first.start);
        let recent = self.recent.into_iter();
        recent.filter(move |block| block.0 >= first)
    }

    /// The interval around `seq`.
    fn around(&self, seq: Seq) -> Option<Block> {
        let i = self.intervals.partition_point(|i| i.end <= seq);
        let interval = self.intervals.get(i).filter(|i| i.start <= seq)?;
        Some((interval.start, interval.end))
    }

    /// Whether `start..end` extends one of the two blocks that changed last, or there are fewer
    /// than two.
    #[must_use]
    pub fn grows_latest(&self, start: Seq, end: Seq) -> bool {
        let mut latest = self.latest();
        let mut touches = || {
            latest
                .next()
                .is_none_or(|block| block.0 <= end && start <= block.1)
        };
        touches() || touches()
    }

    /// Whether `start..end` touches no stored interval: it is a separate block.
    #[must_use]
    pub fn stands_alone(&self, start: Seq, end: Seq) -> bool {
        let first = self.intervals.partition_point(|i| i.end < start);
        self.intervals.get(first).is_none_or(|i| i.start > end)
    }

    /// Whether all of `from..to` has arrived.
    #[must_use]
    pub fn holds(&self, from: Seq, to: Seq) -> bool {
        let [latest, ..] = self.recent;
        let is_latest = latest.0 <= from && to <= latest.1;
        (is_latest && from < to) || self.around(from).is_some_and(|block| block.1 >= to)
    }

    /// The parts of `from..to` that have not arrived.
    #[must_use]
    pub fn missing(&self, from: Seq, to: Seq) -> Vec<Range<Seq>> {
        let (mut missing, mut at) = (Vec::new(), from);
        let first = self.intervals.partition_point(|i| i.end <= from);
        for interval in self.intervals.range(first..) {
            if interval.start >= to {
                break;
            }
            if at < interval.start {
                missing.push(at..interval.start);
            }
            at = at.max(interval.end);
        }
        if at < to {
            missing.push(at..to);
        }
        missing
    }

    /// Reports octets received twice with the next acknowledgment (RFC 2883 §4).
    pub const fn note_duplicate(&mut self, start: Seq, end: Seq) {
        self.duplicate = Some((start, end));
    }

    /// Returns at most `room` blocks for an acknowledgment: a duplicate if there is one, then the
    /// latest, then those reported before it (RFC 2018 §4). `skip` is the number of latest blocks
    /// to omit.
    pub fn sack_blocks(&mut self, room: usize, skip: usize) -> (u8, [SackBlock; 4]) {
        let mut blocks = [SackBlock::default(); 4];
        let mut n = 0;
        let room = room.min(4);
        if let Some((start, end)) = self.duplicate.take()
            && room > 0
        {
            blocks[0] = SackBlock {
                left: start.wire(),
                right: end.wire(),
            };
            n = 1;
        }
        let first = self.intervals.front().map_or(Seq::END, |first| first.start);
        for (left, right) in self.recent.into_iter().skip(skip) {
            if usize::from(n) >= room {
                break;
            }
            if left >= first {
                blocks[usize::from(n)] = SackBlock {
                    left: left.wire(),
                    right: right.wire(),
                };
                n += 1;
            }
        }
        (n, blocks)
    }

    /// Discards the data after a gap.
    pub fn forget_gaps(&mut self) {
        self.intervals.clear();
        self.recent = [NONE; 4];
        self.duplicate = None;
        self.beyond = 0;
    }

    /// Discards all data; nothing more will be read.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The octets of `body`, which begins at `start`, from `from` up to `to`.
fn part<B: Body>(body: &B, start: Seq, from: Seq, to: Seq) -> B {
    let len = to.since(from);
    if len == 0 {
        return B::default();
    }
    let fits = "a part of a body is as short as a body";
    body.slice(
        u32::try_from(from.since(start)).expect(fits),
        u32::try_from(len).expect(fits),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::body::Octets;
    use proptest::prelude::*;

    fn stream(from: u64, to: u64) -> Octets {
        Octets((from..to).map(|i| (i % 251) as u8).collect())
    }

    proptest! {
        #[test]
        fn octets_are_held_or_missing(
            writes in proptest::collection::vec((1_u64..200, 1_u64..40), 0..12),
            from in 1_u64..220, len in 1_u64..60,
        ) {
            let first = Seq::first(u32::MAX - 90);
            let mut buffer = ReceiveBuffer::default();
            for (start, len) in writes {
                buffer.insert(first + start, &stream(start, start + len));
            }
            let (from, to) = (first + from, first + from + len);
            prop_assert_eq!(buffer.holds(from, to), buffer.missing(from, to).is_empty());
        }
    }

    #[test]
    fn only_the_two_blocks_that_changed_last_are_the_latest() {
        let first = Seq::first(7);
        let mut buffer = ReceiveBuffer::default();
        let mut insert = |from: u64, to: u64| {
            let grows = buffer.grows_latest(first + from, first + to);
            buffer.insert(first + from, &stream(from, to));
            grows
        };
        // With no, one and two other blocks.
        assert!(insert(10, 20));
        assert!(insert(30, 40));
        assert!(!insert(50, 60));
        // The last block, the one before it, the one before that.
        assert!(insert(60, 65));
        assert!(insert(40, 45));
        assert!(!insert(20, 25));
        // Now the first block has changed last, and the third is older than the second.
        assert!(insert(45, 50));
        assert!(insert(25, 30));
    }

    proptest! {
        #[test]
        fn any_order_of_arrival_yields_the_stream(
            segments in proptest::collection::vec((1_u64..200, 1_u64..40), 1..60),
        ) {
            let first = Seq::first(u32::MAX - 50);
            let mut buffer = ReceiveBuffer::default();
            let mut seen = [false; 300];
            let index = |at: u64| usize::try_from(at).unwrap();
            for (start, len) in segments {
                let new = seen[index(start)..index(start + len)].iter().any(|s| !s);
                seen[index(start)..index(start + len)].fill(true);
                prop_assert_eq!(buffer.insert(first + start, &stream(start, start + len)), new);
                let (n, blocks) = buffer.sack_blocks(4, 0);
                prop_assert!(n >= 1);
                // The first block holds the segment just received (RFC 2018 §4).
                let block = blocks[0];
                prop_assert!(block.left.wrapping_sub((first + start).wire()).cast_signed() <= 0);
                prop_assert!(block.right.wrapping_sub((first + start + len).wire()).cast_signed() >= 0);
                for (i, block) in blocks[..usize::from(n)].iter().enumerate() {
                    for other in &blocks[..i] {
                        prop_assert_ne!(block.left, other.left);
                    }
                }
            }
            for i in buffer.intervals.iter().zip(buffer.intervals.iter().skip(1)) {
                prop_assert!(i.0.end < i.1.start);
            }
            let mut at = 1;
            let mut next = first + 1;
            loop {
                while let Some((body, end)) = buffer.take(next) {
                    let end_at = at + end.since(next);
                    prop_assert_eq!(body, stream(at, end_at));
                    prop_assert!(seen[index(at)..index(end_at)].iter().all(|s| *s));
                    (at, next) = (end_at, end);
                }
                if !buffer.has_gaps() {
                    break;
                }
                prop_assert!(!seen[index(at)]);
                at += 1;
                next += 1;
            }
        }
    }

    #[test]
    fn reading_stops_at_the_requested_length() {
        let mut buffer = ReceiveBuffer::default();
        buffer.push_ready(stream(0, 10));
        buffer.push_ready(stream(10, 20));
        assert_eq!(buffer.read(15), stream(0, 15));
        assert_eq!(buffer.unread(), 5);
        assert_eq!(buffer.read(u64::MAX), stream(15, 20));
        assert_eq!(buffer.read(1), stream(0, 0));
    }

    #[test]
    fn a_fin_is_reported_but_not_delivered() {
        let first = Seq::first(0);
        let mut buffer = ReceiveBuffer::default();
        assert!(buffer.insert_fin(first + 20));
        assert!(!buffer.insert_fin(first + 20));
        buffer.insert(first + 10, &stream(10, 20));
        let (n, blocks) = buffer.sack_blocks(4, 0);
        let whole = SackBlock {
            left: 10,
            right: 21,
        };
        assert_eq!((n, blocks[0]), (1, whole));
        assert_eq!(buffer.beyond(), 10);
        assert_eq!(buffer.take(first + 10), Some((stream(10, 20), first + 20)));
        assert!(!buffer.has_gaps());
    }

    #[test]
    fn data_beyond_a_fin_contradicts_it() {
        let first = Seq::first(0);
        let mut buffer = ReceiveBuffer::default();
        buffer.insert(first + 10, &stream(10, 20));
        assert!(!buffer.insert_fin(first + 15));
        assert_eq!(buffer.take(first + 10), Some((stream(10, 20), first + 20)));
    }

    #[test]
    fn a_duplicate_is_reported_once_and_first() {
        let first = Seq::first(0);
        let mut buffer = ReceiveBuffer::default();
        buffer.insert(first + 10, &stream(10, 20));
        buffer.note_duplicate(first + 1, first + 5);
        let (n, blocks) = buffer.sack_blocks(3, 0);
        assert_eq!((n, blocks[0]), (2, SackBlock { left: 1, right: 5 }));
        assert_eq!(buffer.sack_blocks(3, 0).0, 1);
    }
}
