//! The size of a sender's segments.

use crate::{
    segment::{PSH, Segment},
    time::{MICROSECOND, Nanos},
};

/// The MSS until one is known (RFC 9293 §3.7.1).
const DEFAULT_MSS: i64 = 536;

/// Segments per epoch. The largest size of the epoch before last is discarded: the path's MTU may
/// shrink.
const EPOCH: u32 = 256;

/// Segments of a run follow each other within this time; a full one takes 120 µs at 100 Mbit/s.
const TOGETHER: Nanos = 200 * MICROSECOND;

/// Segments that follow each other without a gap. A network card may cut what the sender gave it
/// into other sizes than the MSS, so that the last one is smaller although more data waits.
#[derive(Debug, Default)]
struct Run {
    /// The frame number of the last segment.
    number: u64,
    next: u32,
    time: Nanos,
    octets: i64,
    is_ended: bool,
}

impl Run {
    fn see(&mut self, segment: &Segment) {
        let is_next = segment.seq == self.next && segment.time - self.time <= TOGETHER;
        if !is_next || self.is_ended {
            self.octets = 0;
        }
        self.octets += i64::from(segment.payload);
        self.next = segment.seq.wrapping_add(segment.payload);
        (self.number, self.time) = (segment.number, segment.time);
    }
}

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
    /// The size that the receiver permits, and that the sender's own SYN does: most senders' segments
    /// are no larger.
    permitted: i64,
    pub(crate) accepted: i64,
    run: Run,
}

impl SegmentSize {
    /// Records the size that the receiver permits.
    pub(crate) fn permit(&mut self, octets: i64) {
        self.permitted = octets;
        self.mss = self.find();
    }

    /// Records a segment with data.
    pub(crate) fn see(&mut self, segment: &Segment) {
        let octets = whole(segment);
        self.largest = self.largest.max(octets);
        if !segment.has(PSH) && !self.is_offloaded(segment) {
            self.seen += 1;
            if self.seen == EPOCH {
                self.seen = 0;
                self.full = [0, self.full[0]];
            }
            self.full[0] = self.full[0].max(octets);
        }
        self.mss = self.find();
        self.run.see(segment);
        self.run.is_ended = self.is_small(segment);
    }

    /// Whether a segment is several that the network card cuts apart. Linux sets PSH on each (since
    /// 5.4), so that the flag ends no write.
    pub(crate) fn is_offloaded(&self, segment: &Segment) -> bool {
        let octets = i64::from(segment.payload);
        match (self.permitted, self.full[0].max(self.full[1])) {
            (0, 0) => false,
            (0, full) => octets >= 2 * full && octets % full == 0,
            (permitted, _) => octets > permitted,
        }
    }

    /// Whether segments are as large as the receiver permits: an application writes more than one
    /// at a time.
    pub(crate) fn is_permitted(&self) -> bool {
        self.permitted > 0 && self.largest >= self.permitted
    }

    /// The largest segment that did not end a write; if there is none, the permitted size.
    fn find(&self) -> i64 {
        let [now, before] = self.full;
        match (now.max(before), self.permitted) {
            (0, 0) => self.largest,
            (0, permitted) => permitted,
            (mss, _) => mss,
        }
    }

    pub(crate) fn mss(&self) -> i64 {
        match self.mss {
            0 => DEFAULT_MSS,
            mss => mss,
        }
    }

    /// Whether a segment is smaller than a full one. The last one of a run of whole segments is not.
    pub(crate) fn is_small(&self, segment: &Segment) -> bool {
        let both = self.permitted.min(self.accepted);
        let is_whole = both > 0 && self.run.number == segment.number && self.run.octets % both == 0;
        whole(segment) < self.mss() && !is_whole
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
