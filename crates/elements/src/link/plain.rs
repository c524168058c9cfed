//! A plain link: busy-until arithmetic.
//!
//! The departure of a packet is fixed when it is queued, since nothing can overtake it and the rate
//! never changes. The queue is exact: the ring holds when each waiting packet starts, and those
//! that have started by the time a packet arrives do not count.

use std::collections::VecDeque;

use anabranch_core::units::{Duration, Instant, Rate, SerializationDelay, text::Limit};

use super::statistics::{Statistics, Window};

/// One direction of a plain link.
#[derive(Debug)]
pub struct PlainLink {
    serialization: SerializationDelay,
    delay: Duration,
    limit: Limit,
    busy_until: Instant,
    /// When each waiting packet starts to be sent, in order, and its size.
    waiting: VecDeque<(Instant, u32)>,
    waiting_bytes: u64,
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
    /// counts what waits.
    #[must_use]
    pub fn new(rate: Option<Rate>, delay: Duration, limit: Limit, window: Window) -> Self {
        Self {
            serialization: rate.map_or(SerializationDelay::NONE, SerializationDelay::at),
            delay,
            limit,
            busy_until: Instant::START,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            window,
            statistics: Statistics::default(),
        }
    }

    /// A packet arrives. Calls must come in order of time.
    #[inline]
    pub fn enqueue(&mut self, now: Instant, size: u32) -> Fate {
        let queue_delay = if self.busy_until <= now {
            // Nobody waits: the way of most packets on most links.
            if !self.waiting.is_empty() {
                self.waiting.clear();
                self.waiting_bytes = 0;
            }
            self.busy_until = now + self.serialization.of(size);
            self.statistics.unqueued_packets += u64::from(self.window.contains(now));
            Duration::ZERO
        } else {
            let start = self.busy_until;
            if !self.wait(now, start, size) {
                return Fate::Dropped;
            }
            self.busy_until = start + self.serialization.of(size);
            start - now
        };
        self.statistics.sent(self.window, self.busy_until, size);
        Fate::Arrives {
            at: self.busy_until + self.delay,
            queue_delay,
        }
    }

    /// A packet is to wait from `now` to `start`; `false` if there is no room.
    fn wait(&mut self, now: Instant, start: Instant, size: u32) -> bool {
        while let Some(&(begun, size)) = self.waiting.front()
            && begun <= now
        {
            self.waiting.pop_front();
            self.waiting_bytes -= u64::from(size);
        }
        let bytes = self.waiting_bytes + u64::from(size);
        if !self.limit.admits(self.waiting.len() as u64, bytes) {
            self.statistics.dropped_packets += u64::from(self.window.contains(now));
            return false;
        }
        self.waiting.push_back((start, size));
        self.waiting_bytes = bytes;
        self.statistics
            .queue_length(self.window, now, self.waiting.len());
        self.statistics.waited(self.window, now, start);
        self.statistics.queue_time += u128::from(self.window.overlap(now, start).as_picos());
        true
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
    /// Packets sent by `now`, without those accepted and yet to be sent.
    #[must_use]
    pub fn sent_by(&self, now: Instant) -> u64 {
        let in_service = u64::from(self.busy_until > now && self.busy_until <= self.window.end());
        let waiting = self.queue(now).0 as u64;
        self.statistics
            .sent_packets
            .saturating_sub(waiting + in_service)
    }
    /// Packets and bytes that wait at `now`, which must not be before the last arrival.
    #[must_use]
    pub fn queue(&self, now: Instant) -> (usize, u64) {
        let started = self.waiting.partition_point(|&(start, _)| start <= now);
        let rest = self.waiting.range(started..);
        (rest.len(), rest.map(|&(_, size)| u64::from(size)).sum())
    }
}
