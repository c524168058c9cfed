//! A plain link: busy-until arithmetic.
//!
//! The departure of a packet is fixed when it is queued, since nothing can overtake it and the rate
//! never changes. The queue is exact: the ring holds when each waiting packet starts, and those
//! that have started by the time a packet arrives do not count.

use std::collections::VecDeque;

use anabranch_core::units::{Duration, Instant, Rate, SerializationDelay};

use super::statistics::{Statistics, Window};

/// One direction of a plain link.
#[derive(Debug)]
pub struct PlainLink {
    serialization: SerializationDelay,
    delay: Duration,
    limit: u32,
    busy_until: Instant,
    /// When each waiting packet starts to be sent, in order.
    starts: VecDeque<Instant>,
    window: Window,
    statistics: Statistics,
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives at the far end.
    Arrives {
        /// When.
        at: Instant,
        /// How long it waited.
        queue_delay: Duration,
    },
    /// The queue was full.
    Dropped,
}

impl PlainLink {
    /// A link with nothing on it. `rate` `None` means that a packet takes no time to send; `limit`
    /// is in packets that wait.
    #[must_use]
    pub fn new(rate: Option<Rate>, delay: Duration, limit: u32, window: Window) -> Self {
        Self {
            serialization: rate.map_or(SerializationDelay::NONE, SerializationDelay::at),
            delay,
            limit,
            busy_until: Instant::START,
            starts: VecDeque::new(),
            window,
            statistics: Statistics::default(),
        }
    }

    /// A packet arrives. Calls must come in order of time.
    #[inline]
    pub fn enqueue(&mut self, now: Instant, size: u32) -> Fate {
        let start = if self.busy_until <= now {
            self.starts.clear();
            now
        } else {
            while self.starts.front().is_some_and(|&start| start <= now) {
                self.starts.pop_front();
            }
            if self.starts.len() >= self.limit as usize {
                if self.window.contains(now) {
                    self.statistics.dropped_packets += 1;
                }
                return Fate::Dropped;
            }
            self.starts.push_back(self.busy_until);
            self.statistics.queue_length(self.window, now, self.starts.len());
            self.busy_until
        };
        let queue_delay = start - now;
        self.busy_until = start + self.serialization.of(size);
        self.statistics.waited(self.window, now, start);
        self.statistics.queue_time += u128::from(self.window.overlap(now, start).as_picos());
        self.statistics.sent(self.window, self.busy_until, size);
        Fate::Arrives { at: self.busy_until + self.delay, queue_delay }
    }

    /// Whether a packet of any size is certain to arrive later than it was sent.
    #[must_use]
    pub fn takes_time(&self) -> bool {
        self.serialization != SerializationDelay::NONE || !self.delay.is_zero()
    }
    /// What it counted.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }
    /// What it measures.
    #[must_use]
    pub fn window(&self) -> Window {
        self.window
    }
    /// Packets that wait at `now`.
    #[must_use]
    pub fn queue_packets(&self, now: Instant) -> usize {
        self.starts.len() - self.starts.partition_point(|&start| start <= now)
    }
}
