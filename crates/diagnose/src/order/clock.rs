//! A capture whose clock was set back: segments keep the order of the file, and times continue from
//! the last one before a step.

use super::STEP;
use crate::{segment::Segment, time::Nanos};

/// Makes times monotonic.
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
