//! A capture whose clock was set back, as opposed to joined files.

use std::cmp::Ordering;

use super::STEP;
use crate::{
    segment::{End, SYN, Segment},
    time::Nanos,
};

/// Makes times monotonic: segments keep the order of the file, and times continue from the last one
/// before a step.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    latest: Option<Nanos>,
    /// The offset added to the capture's times, and the one before the last step.
    offset: Nanos,
    before: Nanos,
    /// The last segment was the first after a step.
    is_new: bool,
    /// How often the clock was set back.
    pub(crate) steps: u64,
    /// Segments whose time was damaged.
    pub(crate) damaged: u64,
}

impl Clock {
    /// Returns the segment with its time on a clock that was not set back.
    pub(crate) fn place(&mut self, mut segment: Segment) -> Segment {
        let latest = *self.latest.get_or_insert(segment.time);
        // A single segment with a damaged time is no step: the next one fits without it.
        if std::mem::take(&mut self.is_new) && segment.time.saturating_add(self.before) >= latest {
            self.offset = self.before;
            self.steps = self.steps.saturating_sub(1);
            self.damaged += 1;
        }
        let mut time = segment.time.saturating_add(self.offset);
        if latest.saturating_sub(time) > STEP {
            self.before = self.offset;
            self.offset = latest.saturating_sub(segment.time);
            self.steps += 1;
            self.is_new = true;
            time = latest;
        }
        segment.time = time.max(latest);
        self.latest = Some(segment.time);
        segment
    }
}

#[expect(
    clippy::disallowed_types,
    reason = "directions are looked up and never iterated over"
)]
type Directions = std::collections::HashMap<(End, End), Progress>;

/// Maximum number of stored directions.
const MOST: usize = 1 << 14;

/// The last segment of a direction.
#[derive(Debug, Clone, Copy)]
struct Progress {
    time: Nanos,
    /// Time of the previous segment in the file, of any direction: a segment that is ahead of both
    /// neighbours has a damaged time.
    before: Option<Nanos>,
    next: u32,
    ack: Option<u32>,
}

/// Compares the segments of each direction whose times go back.
///
/// A sender's sequence numbers ascend with time. If they ascend in the order of the file while
/// times go back, the clock was set back. If they go back with the times, earlier packets were
/// written later.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    directions: Directions,
    last: Option<Nanos>,
    /// Pairs of segments that indicate a clock that was set back, and joined files.
    clock: u64,
    files: u64,
}

impl Witness {
    /// Processes the next segment in the order of the file.
    pub(crate) fn see(&mut self, segment: &Segment) {
        let key = (segment.source, segment.target);
        let progress = Progress {
            before: self.last.replace(segment.time),
            ..Progress::of(segment)
        };
        if self.directions.len() >= MOST && !self.directions.contains_key(&key) {
            self.directions.clear();
        }
        let before = self.directions.insert(key, progress);
        // A SYN starts a new sequence.
        let before = before.filter(|_| !segment.has(SYN));
        if let Some(before) = before
            && before.time.saturating_sub(segment.time) > STEP
            && before.before.is_none_or(|time| time > segment.time)
        {
            match progress.beyond(before) {
                Ordering::Greater => self.clock += 1,
                Ordering::Equal => {}
                Ordering::Less => self.files += 1,
            }
        }
    }

    /// Whether the clock was set back.
    pub(crate) fn is_clock(&self) -> bool {
        self.clock > self.files
    }
}

impl Progress {
    fn of(segment: &Segment) -> Self {
        Self {
            time: segment.time,
            before: None,
            next: segment.end(),
            ack: segment.ack,
        }
    }

    /// Compares the sequence numbers with another segment's; if they are equal, the
    /// acknowledgments.
    fn beyond(self, before: Self) -> Ordering {
        let distance = |from: u32, to: u32| to.wrapping_sub(from).cast_signed().cmp(&0);
        let acks = before.ack.zip(self.ack);
        let by_ack = acks.map_or(Ordering::Equal, |(before, now)| distance(before, now));
        distance(before.next, self.next).then(by_ack)
    }
}

/// Whether a segment of the same direction continues another.
pub(super) fn advances(before: &Segment, segment: &Segment) -> bool {
    !segment.has(SYN) && Progress::of(segment).beyond(Progress::of(before)).is_gt()
}
