//! The order of events: by (time, source), independent of the order in which they were pushed.
//!
//! There is one entry per FIFO source with a packet to deliver (a link's far end), per transmission
//! in progress, and per timer owner, so the heap stays small regardless of the number of packets in
//! flight. At equal times the source's class decides: transmissions end before packets arrive, and
//! packets arrive before timers fire. Both keys come from the scenario, so folding links into
//! arithmetic, which removes events, does not change the order.

use anabranch_core::units::Instant;

/// The class of an event's source, in the order of processing at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// A link group's timer: its decision at an instant precedes the arrivals of that instant.
    GroupTimer = 0,
    /// A served link's transmission (or pause) ends.
    Completion = 1,
    /// The packet at the head of a link's far end arrives.
    Arrival = 2,
    /// A workload starts a transfer.
    Spawn = 3,
    /// A middlebox's timer.
    MiddleboxTimer = 4,
    /// An endpoint's timer.
    AgentTimer = 5,
    /// A router's report about a packet reaches its sender.
    PathReport = 6,
}

/// A source: class and number within the class, in scenario order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source(u32);

const INDEX_BITS: u32 = 28;

impl Source {
    /// The `index`-th source of a class.
    ///
    /// A class has fewer than 2^28 sources: a scenario has at most a million flows. Debug builds
    /// check this.
    ///
    /// # Panics
    /// If there are 2^32 sources of a class.
    #[must_use]
    #[inline]
    pub fn new(class: Class, index: usize) -> Self {
        let index = u32::try_from(index).expect("fewer than 2^28 sources of a class");
        debug_assert!(
            index < 1 << INDEX_BITS,
            "fewer than 2^28 sources of a class"
        );
        Self(((class as u32) << INDEX_BITS) | index)
    }
    /// Its class.
    #[must_use]
    #[inline]
    pub fn class(self) -> Class {
        match self.0 >> INDEX_BITS {
            0 => Class::GroupTimer,
            1 => Class::Completion,
            2 => Class::Arrival,
            3 => Class::Spawn,
            4 => Class::MiddleboxTimer,
            5 => Class::AgentTimer,
            _ => Class::PathReport,
        }
    }
    /// Its number within the class.
    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        (self.0 & ((1 << INDEX_BITS) - 1)) as usize
    }
}

/// Time, source and place of an event, from the highest bits down. All are in one integer, so that
/// a comparison is a single comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry(u128);

impl Entry {
    /// Later than every entry.
    pub const NEVER: Self = Self(u128::MAX);

    /// An event of `source` at `time`.
    #[must_use]
    #[inline]
    pub fn new(time: Instant, source: Source) -> Self {
        Self::placed(time, source, 0)
    }
    /// The same with a place chosen by the owner, which decides between equal sources.
    #[must_use]
    #[inline]
    pub fn placed(time: Instant, source: Source, place: u32) -> Self {
        let low = (u64::from(source.0) << 32) | u64::from(place);
        Self((u128::from(time.as_picos()) << 64) | u128::from(low))
    }
    /// The time of the event.
    #[must_use]
    #[inline]
    pub fn time(self) -> Instant {
        Instant::from_picos((self.0 >> 64) as u64)
    }
    /// The source of the event.
    #[must_use]
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "32 of the lower bits")]
    pub fn source(self) -> Source {
        Source((self.0 >> 32) as u32)
    }
    /// The place given to [`Self::placed`].
    #[must_use]
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lowest 32 bits")]
    pub fn place(self) -> u32 {
        self.0 as u32
    }
}

const ARITY: usize = 4;

/// At most this many entries are fully in order. Most scenarios have no more, since links share
/// rings, and a step down the order costs a fifth of a comparison of four children.
const ORDERED: usize = ARITY + 1;

/// Entries, earliest first: sorted if there are at most [`ORDERED`], else a 4-ary heap.
///
/// Removing the earliest entry leaves a vacancy at the top, which the next push fills with one pass
/// down. Most events cause exactly one other event, so this saves the pass up.
#[derive(Debug, Default)]
pub struct EventQueue {
    /// The entries, followed by [`Entry::NEVER`] up to whole groups of children, so that the pass
    /// down always compares four.
    heap: Vec<Entry>,
    /// The number of entries, including a vacancy at the top.
    len: usize,
    vacant: bool,
}

impl EventQueue {
    /// The earliest entry; [`Entry::NEVER`] if there is none.
    #[must_use]
    #[inline]
    pub fn peek(&mut self) -> Entry {
        if self.vacant {
            self.close_vacancy();
        }
        self.heap.first().copied().unwrap_or(Entry::NEVER)
    }
    /// The same without changing the heap.
    #[must_use]
    pub fn earliest(&self) -> Entry {
        let skip = usize::from(self.vacant);
        // Below a vacancy the earliest is one of the first children.
        self.heap
            .iter()
            .skip(skip)
            .take(ARITY)
            .min()
            .copied()
            .unwrap_or(Entry::NEVER)
    }
    /// Adds an entry.
    #[inline]
    pub fn push(&mut self, entry: Entry) {
        if self.vacant {
            self.vacant = false;
            self.settle(entry);
        } else {
            self.sift_up(entry);
        }
    }
    /// Removes the earliest entry, which the preceding [`Self::peek`] returned.
    #[inline]
    pub fn pop(&mut self) {
        self.vacant = self.len > 0;
    }
    /// Replaces the earliest entry, which the preceding [`Self::peek`] returned.
    #[inline]
    pub fn replace_top(&mut self, entry: Entry) {
        self.settle(entry);
    }
    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len - usize::from(self.vacant)
    }
    /// Whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn sift_up(&mut self, entry: Entry) {
        let mut hole = self.len;
        self.len += 1;
        if hole == self.heap.len() {
            // The root alone, then groups of four children.
            let group = if hole == 0 { 1 } else { ARITY };
            self.heap.resize(hole + group, Entry::NEVER);
        }
        // With one child each, the heap is sorted.
        let arity = if self.len <= ORDERED { 1 } else { ARITY };
        while hole > 0 {
            let parent = (hole - 1) / arity;
            if self.heap[parent] <= entry {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = entry;
    }

    #[inline(never)]
    fn close_vacancy(&mut self) {
        self.vacant = false;
        self.len -= 1;
        let last = std::mem::replace(&mut self.heap[self.len], Entry::NEVER);
        if self.len % ARITY == 1 {
            // The last group is empty: the pass down would compare it.
            self.heap.truncate(self.len);
        }
        if self.len > ORDERED {
            self.sift_down(last);
        } else if self.len > 0 {
            self.heap.copy_within(1..self.len, 0);
            self.heap[self.len - 1] = last;
            if self.len == ORDERED {
                self.heap.sort_unstable();
            }
        }
    }

    /// Puts an entry in the place of the earliest, and moves it to its own.
    #[inline]
    fn settle(&mut self, entry: Entry) {
        if self.len > ORDERED {
            self.sift_down(entry);
            return;
        }
        let heap = self.heap.as_mut_slice();
        let mut hole = 0;
        while let Some([first, second]) = heap.get_mut(hole..hole + 2)
            && *second < entry
        {
            *first = *second;
            hole += 1;
        }
        debug_assert!(
            hole < heap.len(),
            "an entry is replaced, or there is a vacancy"
        );
        if let Some(place) = heap.get_mut(hole) {
            *place = entry;
        }
    }

    fn sift_down(&mut self, entry: Entry) {
        let heap = self.heap.as_mut_slice();
        let mut hole = 0;
        loop {
            let first = hole * ARITY + 1;
            let Some(&[a, b, c, d]) = heap.get(first..first + ARITY) else {
                break;
            };
            let (left, left_entry) = if b < a { (1, b) } else { (0, a) };
            let (right, right_entry) = if d < c { (3, d) } else { (2, c) };
            let (least, least_entry) = if right_entry < left_entry {
                (right, right_entry)
            } else {
                (left, left_entry)
            };
            if entry <= least_entry {
                break;
            }
            heap[hole] = least_entry;
            hole = first + least;
        }
        heap[hole] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_ordered_by_time_then_source() {
        let mut state = 42_u64;
        let mut entries: Vec<Entry> = (0..1000)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let class = [Class::Completion, Class::Arrival, Class::AgentTimer]
                    [(state >> 33) as usize % 3];
                Entry::new(
                    Instant::from_nanos((state >> 40) % 50),
                    Source::new(class, (state >> 50) as usize),
                )
            })
            .collect();
        let mut queue = EventQueue::default();
        for &entry in &entries {
            queue.push(entry);
        }
        entries.sort_unstable();
        for &expected in &entries {
            assert_eq!(queue.peek(), expected);
            queue.pop();
        }
        assert!(queue.is_empty());
        assert_eq!(queue.peek(), Entry::NEVER);
    }

    #[test]
    fn replacing_the_top_is_a_pop_and_a_push() {
        let entry = |t, i| Entry::new(Instant::from_nanos(t), Source::new(Class::Arrival, i));
        let mut queue = EventQueue::default();
        for i in 0..20_u32 {
            queue.push(entry(u64::from(10 * i), i as usize));
        }
        assert_eq!(queue.peek(), entry(0, 0));
        queue.replace_top(entry(45, 99));
        let mut times = Vec::new();
        while !queue.is_empty() {
            times.push(queue.peek().time());
            queue.pop();
        }
        assert!(times.is_sorted());
        assert_eq!(times.len(), 20);
    }

    /// Few entries are fully in order, more are a heap, and the number crosses the limit both ways.
    #[test]
    fn the_queue_agrees_with_a_sorted_set() {
        let entry = |t| Entry::new(Instant::from_nanos(t), Source::new(Class::Arrival, 0));
        let mut state = 7_u64;
        for most in [3, ORDERED + 2, 5_000] {
            let mut queue = EventQueue::default();
            let mut model = std::collections::BTreeSet::new();
            for step in 0..10_000_u64 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let new = entry((state >> 40) % 1_000 * 10_000 + step);
                let action = state >> 62;
                if model.is_empty() || action > 1 && model.len() < most {
                    queue.push(new);
                    model.insert(new);
                } else {
                    assert_eq!(Some(queue.peek()), model.pop_first());
                    if action == 1 {
                        queue.replace_top(new);
                        model.insert(new);
                    } else {
                        queue.pop();
                    }
                }
                assert_eq!(queue.len(), model.len());
                let earliest = model.first().copied().unwrap_or(Entry::NEVER);
                assert_eq!(queue.earliest(), earliest);
            }
        }
    }

    #[test]
    fn a_source_encodes_class_and_index() {
        for class in [
            Class::Completion,
            Class::Arrival,
            Class::Spawn,
            Class::MiddleboxTimer,
            Class::AgentTimer,
            Class::PathReport,
        ] {
            let source = Source::new(class, 123_456);
            assert_eq!((source.class(), source.index()), (class, 123_456));
        }
    }
}
