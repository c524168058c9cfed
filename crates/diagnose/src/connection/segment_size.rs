//! How large a sender's segments are.

use crate::segment::{PSH, Segment};

/// The MSS until one is known (RFC 9293 §3.7.1).
const DEFAULT_MSS: i64 = 536;

/// Segments after which the largest of them is forgotten, once more: the path's MTU may become smaller.
const EPOCH: u32 = 256;

/// The largest segment, and what is permitted.
#[derive(Debug, Default)]
pub(crate) struct SegmentSize {
    largest: i64,
    /// The largest of those that did not end a write, in this epoch and the one before: they are full.
    full: [i64; 2],
    seen: u32,
    /// What follows from them: it is asked for at each packet.
    mss: i64,
    /// What the receiver permits.
    permitted: i64,
}

impl SegmentSize {
    pub(crate) fn permit(&mut self, octets: i64) {
        self.permitted = octets;
        self.mss = self.find();
    }

    /// A segment with data.
    pub(crate) fn see(&mut self, segment: &Segment) {
        let octets = whole(segment);
        self.largest = self.largest.max(octets);
        if !segment.has(PSH) {
            self.seen += 1;
            if self.seen == EPOCH {
                self.seen = 0;
                self.full = [0, self.full[0]];
            }
            self.full[0] = self.full[0].max(octets);
        }
        self.mss = self.find();
    }

    /// Segments are as large as the receiver permits: an application writes more than one at a time.
    pub(crate) fn is_permitted(&self) -> bool {
        self.permitted > 0 && self.largest >= self.permitted
    }

    /// The largest segment that did not end a write; while each of them did, what the receiver permits.
    fn find(&self) -> i64 {
        let [now, before] = self.full;
        match now.max(before) {
            0 => self.largest.max(self.permitted),
            mss => mss,
        }
    }

    pub(crate) fn mss(&self) -> i64 {
        match self.mss {
            0 => DEFAULT_MSS,
            mss => mss,
        }
    }

    /// Smaller than a full segment.
    pub(crate) fn is_small(&self, segment: &Segment) -> bool {
        whole(segment) < self.mss()
    }
}

/// Octets of payload, and of SACK blocks, which take their place.
fn whole(segment: &Segment) -> i64 {
    let blocks = segment.blocks().len();
    let taken = if blocks == 0 { 0 } else { 4 + 8 * blocks };
    i64::from(segment.payload) + i64::try_from(taken).unwrap_or(0)
}
