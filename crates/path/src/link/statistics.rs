//! What a link direction counts, within the window that the scenario measures.

use crate::window::Window;
use anabranch_core::{
    histogram::Histogram,
    units::{Duration, Instant},
};

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
    /// A packet began to be sent at `started`, when it arrived.
    #[inline]
    pub fn unqueued(&mut self, window: Window, started: Instant) {
        self.unqueued_packets += u64::from(window.contains(started));
    }
    /// A packet began to be sent at `started`, after it had waited.
    #[inline]
    pub fn queued(&mut self, window: Window, started: Instant, queue_delay: Duration) {
        if window.contains(started) {
            self.queue_delay.record(queue_delay.as_picos());
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
