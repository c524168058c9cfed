//! The size of a sender's segments.

use crate::segment::{PSH, Segment};

/// The MSS until one is known (RFC 9293 §3.7.1).
const DEFAULT_MSS: i64 = 536;

/// Segments per epoch. The largest size of the epoch before last is discarded: the path's MTU may
/// shrink.
const EPOCH: u32 = 256;

/// The largest segment, and the permitted size.
#[derive(Debug, Default)]
pub(crate) struct SegmentSize {
    largest: i64,
    /// The largest segment that did not end a write, and so was full, in this epoch and the
    /// previous one.
    full: [i64; 2],
    seen: u32,
    /// The MSS derived from them, stored because each packet queries it.
    mss: i64,
    /// The size that the receiver permits.
    permitted: i64,
}

impl SegmentSize {
    pub(crate) fn permit(&mut self, octets: i64) {
        self.permitted = octets;
        self.mss = self.find();
    }

    /// Records a segment with data.
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

    /// Whether segments are as large as the receiver permits: an application writes more than one
    /// at a time.
    pub(crate) fn is_permitted(&self) -> bool {
        self.permitted > 0 && self.largest >= self.permitted
    }

    /// The largest segment that did not end a write; if there is none, the permitted size.
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

    /// Whether a segment is smaller than a full one.
    pub(crate) fn is_small(&self, segment: &Segment) -> bool {
        whole(segment) < self.mss()
    }
}

/// Octets of payload, and of SACK blocks, which displace payload; the octets of a QUIC packet.
fn whole(segment: &Segment) -> i64 {
    if let Some(quic) = segment.quic {
        return i64::from(segment.payload) + i64::from(quic.overhead);
    }
    let blocks = segment.blocks().len();
    let taken = if blocks == 0 { 0 } else { 4 + 8 * blocks };
    i64::from(segment.payload) + i64::try_from(taken).unwrap_or(0)
}
