//! Puts the segments of a capture in order of time.
//!
//! Captures of several interfaces or processors are written in batches, which swaps neighbouring
//! packets: [`Nearby`] sorts them while reading. Merged, concatenated and multi-queue captures need
//! a sort of the whole file ([`sorting`]). If the clock was set back during the capture, the order
//! of the file is right and the times are wrong ([`clock`]). [`Witness`] distinguishes the two
//! cases.

mod clock;
mod record;
mod sorting;
mod store;

use std::collections::VecDeque;

pub(crate) use clock::{Clock, Witness};
pub(crate) use sorting::Sorting;

use crate::{
    segment::Segment,
    time::{MILLISECOND, Nanos},
};
use clock::advances;

/// The longest time that one connection may span (4.5 years), so that sums and small multiples of
/// times fit in 64 bits.
pub(crate) const LONGEST: Nanos = 1 << 57;

/// Segments that are held back.
const HELD: usize = 512;
/// Segments that are passed on at once. Reading and diagnosis are each larger than a processor's cache
/// of instructions together, and smaller or little larger alone: taking turns in batches keeps the
/// instructions of each in the cache.
const BATCH: usize = 256;
/// NTP corrects smaller offsets by slewing the clock, which never sets it back (RFC 5905 §10,
/// STEPT).
const STEP: Nanos = 128 * MILLISECOND;

/// A reordering buffer: the segments held back, sorted.
#[derive(Debug, Default)]
pub(crate) struct Nearby {
    held: VecDeque<Segment>,
    /// Segments at the front whose position is settled: they wait for their batch.
    settled: usize,
    /// The time of the last settled segment.
    last: Option<Nanos>,
    /// Segments that arrived too late to be put in order.
    pub(crate) too_late: u64,
    /// A sender's data advanced while times went back: the clock may have been set back.
    is_doubtful: bool,
    /// Segments whose time was years ahead of both neighbours in the file. They keep their position
    /// in the file.
    pub(crate) damaged: u64,
    /// The last two segments in the file.
    before: [Option<(u64, Nanos)>; 2],
}

impl Nearby {
    /// Whether all segments could be put in order, and none makes the order doubtful.
    pub(crate) const fn is_right(&self) -> bool {
        self.too_late == 0 && !self.is_doubtful
    }

    /// Adds a segment, and settles the earliest one if the buffer is full. Passes on a batch of settled
    /// ones.
    pub(crate) fn push(&mut self, segment: &Segment, take: impl FnMut(&Segment)) {
        let mut time = segment.time;
        if let Some(last) = self.last.filter(|last| time < *last) {
            self.too_late += 1;
            time = last;
        }
        self.mend(time);
        self.before = [self.before[1], Some((segment.number, time))];
        if self.held.back().is_none_or(|last| last.time <= time) {
            self.held.push_back(Segment { time, ..*segment });
        } else {
            let segment = Segment { time, ..*segment };
            self.is_doubtful |= self.continues(&segment);
            let at = self.held.partition_point(|one| one.time <= time);
            self.held.insert(at, segment);
        }
        if self.held.len() - self.settled > HELD {
            self.last = self.held.get(self.settled).map(|earliest| earliest.time);
            self.settled += 1;
        }
        if self.settled >= BATCH {
            self.pass(HELD, take);
        }
    }

    /// Moves the previous segment back to its position in the file if its time is damaged: it is far
    /// after `next`, the time of the segment after it.
    fn mend(&mut self, next: Nanos) {
        if let [former, Some((number, time))] = self.before
            && time.saturating_sub(next) > LONGEST
            && former.is_none_or(|(_, former)| former <= next)
            && self.held.back().is_some_and(|last| last.number == number)
            && let Some(last) = self.held.pop_back()
        {
            self.damaged += 1;
            let time = former.map_or(next, |(_, former)| former);
            let time = self.last.map_or(time, |given| given.max(time));
            let at = self.held.partition_point(|one| one.time <= time);
            self.held.insert(at, Segment { time, ..last });
            self.before[1] = Some((number, time));
        }
    }

    /// Whether the segment's sender advances although times go back: its last segment in the file
    /// and the one before that are later, the former by more than a step, and this segment
    /// continues the last.
    fn continues(&self, segment: &Segment) -> bool {
        let later = self.held.iter().rev();
        let later = later.take_while(|one| one.time > segment.time);
        let own = later.filter(|one| (one.source, one.target) == (segment.source, segment.target));
        let Some(last) = own.max_by_key(|one| one.number) else {
            return false;
        };
        let open = self.held.range(self.settled..);
        let earlier = open.filter(|one| one.number < last.number);
        let before = earlier.max_by_key(|one| one.number);
        last.time - segment.time > STEP
            && before.is_none_or(|before| before.time > segment.time)
            && advances(last, segment)
    }

    /// Passes the earliest segments on until `most` are held back.
    pub(crate) fn pass(&mut self, most: usize, take: impl FnMut(&Segment)) {
        let count = self.held.len().saturating_sub(most);
        self.held.range(..count).for_each(take);
        self.held.drain(..count);
        self.settled = 0;
    }
}
