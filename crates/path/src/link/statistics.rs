//! What a link direction counts, within the window that the scenario measures.

use anabranch_core::{
    histogram::Histogram,
    units::{Duration, Instant},
};

/// The part of a run that is measured: after `start`, up to and with `end`. A run's first instant
/// belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    start: Instant,
    end: Instant,
    /// The first instant that counts, and the picoseconds from it to the last: one comparison tells
    /// whether an instant lies between. An empty window's lies past all that is asked about.
    first: u64,
    span: u64,
}

impl Window {
    /// From `start` to `end`.
    #[must_use]
    pub const fn new(start: Instant, end: Instant) -> Self {
        let first = match start.as_picos() {
            0 => 0,
            later => later + 1,
        };
        let (first, span) = match end.as_picos().checked_sub(first) {
            Some(span) => (first, span),
            None => (u64::MAX, 0),
        };
        Self {
            start,
            end,
            first,
            span,
        }
    }
    /// Whether it is measured.
    #[must_use]
    #[inline]
    pub fn contains(self, at: Instant) -> bool {
        at.as_picos().wrapping_sub(self.first) <= self.span
    }
    /// The measured part of a span.
    #[must_use]
    #[inline]
    pub fn overlap(self, from: Instant, to: Instant) -> Duration {
        to.min(self.end).saturating_since(from.max(self.start))
    }
    /// Its end.
    #[must_use]
    pub const fn end(self) -> Instant {
        self.end
    }
    /// Its start.
    #[must_use]
    pub const fn start(self) -> Instant {
        self.start
    }
    /// Its length.
    #[must_use]
    pub fn length(self) -> Duration {
        self.end.saturating_since(self.start)
    }
}

/// Counters of one direction of a link.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// Packets whose transmission ended in the window.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that the queue dropped.
    pub dropped_packets: u64,
    /// Packets that an impairment lost or damaged.
    pub lost_packets: u64,
    /// Packets that the queue or an impairment marked.
    pub marked_packets: u64,
    /// Packets that left after one that had come later (RFC 4737 §3.3, counted by arrival here);
    /// copies do not count.
    pub reordered_packets: u64,
    /// Packet-picoseconds of waiting.
    pub queue_time: u128,
    /// The most packets that ever waited at once.
    pub max_queue_packets: u32,
    /// Packets that did not wait.
    pub unqueued_packets: u64,
    /// Waiting times of those that did, in picoseconds.
    pub queue_delay: Histogram,
}

impl Statistics {
    /// A packet that came at `arrived` began to be sent at `started`.
    #[inline]
    pub fn waited(&mut self, window: Window, arrived: Instant, started: Instant) {
        if window.contains(started) {
            if started == arrived {
                self.unqueued_packets += 1;
            } else {
                self.queue_delay.record((started - arrived).as_picos());
            }
        }
    }
    /// A percentile of the waiting times of all packets that began to be sent, `p` in percent.
    #[must_use]
    pub fn queue_delay_percentile(&self, p: f64) -> Option<Duration> {
        let mut all = self.queue_delay.clone();
        all.record_many(0, self.unqueued_packets);
        all.percentile(p).map(Duration::from_picos)
    }
    /// A transmission ended.
    #[inline]
    pub fn sent(&mut self, window: Window, at: Instant, bytes: u32) {
        if window.contains(at) {
            self.sent_packets += 1;
            self.sent_bytes += u64::from(bytes);
        }
    }
    /// `packets` wait from `from` to `to`, and so when the window begins if that lies between.
    #[inline]
    pub fn waited_through(&mut self, window: Window, from: Instant, to: Instant, packets: usize) {
        if from <= window.start() && !window.overlap(from, to).is_zero() {
            self.most_waiting(packets);
        }
    }
    #[cold]
    fn most_waiting(&mut self, packets: usize) {
        let packets = u32::try_from(packets).unwrap_or(u32::MAX);
        self.max_queue_packets = self.max_queue_packets.max(packets);
    }
    /// `packets` wait at `at`.
    #[inline]
    pub fn queue_length(&mut self, window: Window, at: Instant, packets: usize) {
        if window.contains(at) {
            self.max_queue_packets = self
                .max_queue_packets
                .max(u32::try_from(packets).unwrap_or(u32::MAX));
        }
    }
}
