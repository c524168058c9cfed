//! Puts segments of a capture in order of time, within a bounded distance.
//!
//! Captures of several interfaces or processors are written in batches, so that neighbours change places. A segment
//! that is later than [`Order`] looks back is used where it stands, at the time of the one before it. One with a time years away
//! is used at the nearest time that a capture may have.

use std::collections::VecDeque;

use crate::{segment::Segment, time::Nanos};

/// The longest time between a capture's first packet and another (4.5 years). Sums and small multiples of times then fit.
const FURTHEST: Nanos = 1 << 57;

/// Segments that are held back.
const HELD: usize = 512;

/// The segments that are held back, sorted.
#[derive(Debug, Default)]
pub(crate) struct Order {
    held: VecDeque<Segment>,
    /// The time of the first one in the file.
    first: Option<Nanos>,
    /// The time of the last one that was given out.
    last: Option<Nanos>,
    /// Segments that came too late to be put in order.
    pub(crate) too_late: u64,
}

impl Order {
    /// Takes a segment, and gives out the earliest if enough are held.
    pub(crate) fn push(&mut self, mut segment: Segment) -> Option<Segment> {
        let first = *self.first.get_or_insert(segment.time);
        let earliest = self.last.unwrap_or(first.saturating_sub(FURTHEST));
        let time = segment.time;
        segment.time = time.clamp(earliest, first.saturating_add(FURTHEST));
        self.too_late += u64::from(segment.time != time);
        let at = self.held.iter().rposition(|one| one.time <= segment.time);
        match at.map_or(0, |at| at + 1) {
            end if end == self.held.len() => self.held.push_back(segment),
            at => self.held.insert(at, segment),
        }
        if self.held.len() > HELD {
            self.pop()
        } else {
            None
        }
    }

    /// The earliest that is held.
    pub(crate) fn pop(&mut self) -> Option<Segment> {
        let segment = self.held.pop_front()?;
        self.last = Some(segment.time);
        Some(segment)
    }
}
