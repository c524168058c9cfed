//! A plain link: busy-until arithmetic.
//!
//! The departure of a packet is fixed when it is queued, because nothing can overtake it and the
//! rate never changes. The queue is exact: the ring holds the start of transmission of each waiting
//! packet, and packets that have started by the time of an arrival do not count.

use anabranch_core::{
    ring::Ring,
    units::{
        Duration, Instant, Rate, SerializationDelay,
        text::{Limit, MAX_DURATION},
    },
};

use super::statistics::Statistics;
use crate::window::Window;

/// The latest end of a run. A transmission due later never starts, so the times of a queue of any
/// length fit the clock.
const HORIZON: Instant = Instant::START.saturating_add(MAX_DURATION);

/// One direction of a plain link. The fields that every packet touches fit a cache line.
#[derive(Debug)]
pub struct PlainLink {
    sent_packets: u64,
    serialization: SerializationDelay,
    delay: Duration,
    busy_until: Instant,
    // Not beside the packets: adding to both at once takes longer.
    sent_bytes: u64,
    unqueued_packets: u64,
    limit: Limit,
    /// Allocated when a packet first waits; on most links none does.
    queue: Option<Box<Waiting>>,
}

/// State that only waiting packets touch.
#[derive(Debug, Default)]
struct Waiting {
    /// Start of transmission and size of each waiting packet, in order.
    packets: Ring<(Instant, u32)>,
    bytes: u64,
    statistics: Statistics,
}

/// Outcome for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives at the far end.
    Arrives {
        /// Time of arrival.
        at: Instant,
        /// Time in the queue.
        queue_delay: Duration,
    },
    /// The queue was full.
    Dropped,
}

impl PlainLink {
    /// Creates an idle link. If `rate` is `None`, transmission takes no time. `limit` bounds the
    /// packets or bytes that wait.
    #[must_use]
    pub fn new(rate: Option<Rate>, delay: Duration, limit: Limit) -> Self {
        Self {
            serialization: rate.map_or(SerializationDelay::NONE, SerializationDelay::at),
            delay,
            busy_until: Instant::START,
            sent_packets: 0,
            sent_bytes: 0,
            unqueued_packets: 0,
            limit,
            queue: None,
        }
    }

    /// Propagation delay.
    #[must_use]
    pub const fn delay(&self) -> Duration {
        self.delay
    }

    /// Accepts or drops a packet that arrives. Calls must come in order of time.
    #[expect(
        clippy::inline_always,
        reason = "measured: a call per packet and link costs half as much again"
    )]
    #[inline(always)]
    pub fn enqueue(&mut self, window: Window, now: Instant, size: u32) -> Fate {
        let queue_delay = if self.busy_until <= now {
            // Nothing waits: the case of most packets on most links.
            self.busy_until = now + self.serialization.of(size);
            self.unqueued_packets += u64::from(window.contains(now));
            Duration::ZERO
        } else {
            let start = self.busy_until;
            let queue = self.queue.get_or_insert_default();
            if !queue.join(self.limit, window, now, start, size) {
                return Fate::Dropped;
            }
            if start < HORIZON {
                self.busy_until = start + self.serialization.of(size);
            }
            start - now
        };
        if window.contains(self.busy_until) {
            self.sent_packets += 1;
            self.sent_bytes += u64::from(size);
        }
        Fate::Arrives {
            at: self.busy_until + self.delay,
            queue_delay,
        }
    }

    /// Counters, including accepted packets that are not sent yet.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        Statistics {
            sent_packets: self.sent_packets,
            sent_bytes: self.sent_bytes,
            unqueued_packets: self.unqueued_packets,
            ..self
                .queue
                .as_ref()
                .map(|queue| queue.statistics.clone())
                .unwrap_or_default()
        }
    }
    /// Counters without the packets still to be sent at `now`, for a run that ends early. The
    /// packet that is being sent counts.
    #[must_use]
    pub fn statistics_by(&self, window: Window, now: Instant) -> Statistics {
        let mut statistics = self.statistics();
        let waiting = self.queue.iter().flat_map(|queue| queue.packets.iter());
        for &(start, size) in waiting.filter(|(start, _)| *start > now) {
            if window.contains(start) {
                statistics.sent_packets = statistics.sent_packets.saturating_sub(1);
                statistics.sent_bytes = statistics.sent_bytes.saturating_sub(size.into());
            }
            let ahead = u128::from(window.overlap(now, start).as_picos());
            statistics.queue_time = statistics.queue_time.saturating_sub(ahead);
        }
        statistics
    }
    /// Packets dropped.
    #[must_use]
    pub fn dropped_packets(&self) -> u64 {
        self.queue
            .as_ref()
            .map_or(0, |queue| queue.statistics.dropped_packets)
    }
    /// Packets sent by `now`, without those accepted and yet to be sent.
    #[must_use]
    pub fn sent_by(&self, window: Window, now: Instant) -> u64 {
        // Accepted packets leave in order: a transmission ends when the next one starts.
        let starts = self.queue.iter().flat_map(|queue| queue.packets.iter());
        let ends = starts
            .map(|&(start, _)| start)
            .chain(std::iter::once(self.busy_until))
            .filter(|end| *end > now && window.contains(*end));
        self.sent_packets.saturating_sub(ends.count() as u64)
    }
    /// Packets and bytes that wait just before `now`, which must not be before the last arrival. A
    /// packet whose transmission begins at `now` still waits, as at a served link that has not
    /// handled its events of `now`.
    #[must_use]
    pub fn queue_before(&self, now: Instant) -> (usize, u64) {
        self.waiting(|start| start >= now)
    }
    /// Packets and bytes that wait after all events of `now`.
    #[must_use]
    pub fn queue(&self, now: Instant) -> (usize, u64) {
        self.waiting(|start| start > now)
    }
    fn waiting(&self, waits: impl Fn(Instant) -> bool) -> (usize, u64) {
        let packets = self.queue.iter().flat_map(|queue| queue.packets.iter());
        let rest = packets.filter(|(start, _)| waits(*start));
        rest.fold((0, 0), |(packets, bytes), &(_, size)| {
            (packets + 1, bytes + u64::from(size))
        })
    }
}

impl Waiting {
    /// Counts a packet that joins before the window begins and still waits at its beginning, with
    /// the earlier packets that do.
    #[cold]
    fn waits_into(&mut self, window: Window, now: Instant, start: Instant) {
        let begins = window.start();
        if now <= begins && begins < start && !window.length().is_zero() {
            let waiting = self.packets.iter().filter(|(start, _)| *start > begins);
            let waiting = waiting.count();
            self.statistics.waited_through(window, now, start, waiting);
        }
    }

    /// Queues a packet that waits from `now` to `start`; returns `false` if there is no room.
    #[inline(never)]
    fn join(
        &mut self,
        limit: Limit,
        window: Window,
        now: Instant,
        start: Instant,
        size: u32,
    ) -> bool {
        while let Some(&(begun, size)) = self.packets.front()
            && begun <= now
        {
            self.packets.pop_front();
            self.bytes -= u64::from(size);
        }
        let bytes = self.bytes + u64::from(size);
        if !limit.admits(self.packets.len() as u64, bytes) {
            self.statistics.dropped_packets += u64::from(window.contains(now));
            return false;
        }
        self.packets.push_back((start, size));
        self.bytes = bytes;
        self.statistics
            .queue_length(window, now, self.packets.len());
        if !window.contains(now) {
            self.waits_into(window, now, start);
        }
        self.statistics.queued(window, start, start - now);
        self.statistics.queue_time += u128::from(window.overlap(now, start).as_picos());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Detects a run that ends early and counts packets that its links had not sent yet.
    #[test]
    fn an_early_end_excludes_packets_that_still_wait() {
        let rate = Rate::new(12_000_000).expect("positive");
        let mut link = PlainLink::new(Some(rate), Duration::ZERO, Limit::Unlimited);
        let window = Window::new(Instant::START, Instant::from_millis(1000));
        for _ in 0..10 {
            // A millisecond each.
            link.enqueue(window, Instant::START, 1500);
        }
        // Three have been sent, and the fourth is being sent.
        let early = link.statistics_by(window, Instant::from_nanos(3_500_000));
        assert_eq!((early.sent_packets, early.sent_bytes), (4, 6000));
        // Packet-milliseconds of waiting by then: 1 + 2 + 3, and 3.5 for each of the six others.
        assert_eq!(early.queue_time, 27 * 1_000_000_000);
        let whole = link.statistics_by(window, window.end());
        assert_eq!(whole.sent_bytes, link.statistics().sent_bytes);
        assert_eq!(whole.queue_time, link.statistics().queue_time);
    }

    /// 65,535 octets at 1 bit/s take six days. A thousand of them take sixteen years, beyond the
    /// clock's 213 days. Packets that start within a run arrive on time, and the others arrive
    /// after its end.
    #[test]
    fn a_queue_may_be_longer_than_the_clock() {
        let rate = Rate::new(1).expect("positive");
        let delay = Duration::from_secs(1);
        let mut link = PlainLink::new(Some(rate), delay, Limit::Unlimited);
        let window = Window::new(Instant::START, HORIZON);
        let packet = Duration::from_secs(8 * 65_535);
        let mut latest = Instant::START;
        for number in 1..=1000 {
            let fate = link.enqueue(window, Instant::START, 65_535);
            let Fate::Arrives { at, .. } = fate else {
                panic!("the queue has no limit")
            };
            let due = Instant::START
                .saturating_add(packet.saturating_mul(number))
                .saturating_add(delay);
            assert!(
                at >= latest && (at == due || at > HORIZON),
                "{number}: {at:?}"
            );
            assert!(due > HORIZON || at == due, "{number}: {at:?}");
            latest = at;
        }
        let sent = HORIZON.as_picos() / packet.as_picos();
        assert_eq!(link.statistics().sent_packets, sent);
        assert_eq!(link.queue(Instant::START).0, 999);
    }
}
