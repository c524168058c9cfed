//! Counters of a link direction, within the scenario's measurement window.

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
    /// Bytes of these packets.
    pub sent_bytes: u64,
    /// Packets dropped by the queue.
    pub dropped_packets: u64,
    /// Packets lost or damaged by an impairment.
    pub lost_packets: u64,
    /// Packets marked by the queue or by an impairment.
    pub marked_packets: u64,
    /// Packets that left after a packet that had arrived later (RFC 4737 §3.3, by arrival at this
    /// link). Copies do not count.
    pub reordered_packets: u64,
    /// Packet-picoseconds of waiting.
    pub queue_time: u128,
    /// Maximum number of packets waiting at once.
    pub max_queue_packets: u32,
    /// Packets that did not wait.
    pub unqueued_packets: u64,
    /// Waiting times of the packets that waited, in picoseconds.
    pub queue_delay: Histogram,
}

impl Statistics {
    /// Counts a packet whose transmission began on arrival, at `started`.
    #[inline]
    pub fn unqueued(&mut self, window: Window, started: Instant) {
        self.unqueued_packets += u64::from(window.contains(started));
    }
    /// Counts a packet whose transmission began at `started` after a wait.
    #[inline]
    pub fn queued(&mut self, window: Window, started: Instant, queue_delay: Duration) {
        if window.contains(started) {
            self.queue_delay.record(queue_delay.as_picos());
        }
    }
    /// Percentile `p`, in percent, of the waiting times of all packets whose transmission began.
    #[must_use]
    pub fn queue_delay_percentile(&self, p: f64) -> Option<Duration> {
        let mut all = self.queue_delay.clone();
        all.record_many(0, self.unqueued_packets);
        all.percentile(p).map(Duration::from_picos)
    }
    /// Counts a transmission that ended.
    #[inline]
    pub fn sent(&mut self, window: Window, at: Instant, bytes: u32) {
        if window.contains(at) {
            self.sent_packets += 1;
            self.sent_bytes += u64::from(bytes);
        }
    }
    /// Counts `packets` that wait from `from` to `to` towards the maximum, if the window begins in
    /// between.
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
    /// Counts `packets` that wait at `at` towards the maximum.
    #[inline]
    pub fn queue_length(&mut self, window: Window, at: Instant, packets: usize) {
        if window.contains(at) {
            self.max_queue_packets = self
                .max_queue_packets
                .max(u32::try_from(packets).unwrap_or(u32::MAX));
        }
    }
}
