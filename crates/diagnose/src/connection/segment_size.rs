//! How large a sender's segments are.

use crate::segment::{PSH, Segment};

/// The MSS until one is known (RFC 9293 §3.7.1).
const DEFAULT_MSS: i64 = 536;

/// The largest segment, and what is permitted.
#[derive(Debug, Default)]
pub(crate) struct SegmentSize {
    largest: i64,
    /// A segment was seen that did not end a write.
    has_full: bool,
    /// What the receiver permits.
    permitted: i64,
}

impl SegmentSize {
    pub(crate) fn permit(&mut self, octets: i64) {
        self.permitted = octets;
    }

    /// A segment with data.
    pub(crate) fn see(&mut self, segment: &Segment) {
        self.has_full |= !segment.has(PSH);
        self.largest = self.largest.max(i64::from(segment.payload));
    }

    /// Segments are as large as the receiver permits: an application writes more than one at a time.
    pub(crate) fn is_permitted(&self) -> bool {
        self.permitted > 0 && !is_below(self.largest, self.permitted)
    }

    /// The largest segment that was seen; while each of them ended a write, what the receiver permits.
    pub(crate) fn mss(&self) -> i64 {
        let permitted = if self.has_full { 0 } else { self.permitted };
        match self.largest.max(permitted) {
            0 => DEFAULT_MSS,
            mss => mss,
        }
    }
}

/// What the options of a TCP header may take at most (RFC 9293 §3.1).
const OPTIONS: i64 = 40;

/// Smaller than a full segment, whatever options it has.
pub(crate) fn is_below(length: i64, mss: i64) -> bool {
    length + OPTIONS < mss
}
