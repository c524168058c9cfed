//! The two ends of a UDP flow: a sender that follows the clock, and a receiver that counts (RFC
//! 768).
//!
//! There is no return traffic, so nothing slows the sender down and nothing is retransmitted. Both
//! ends know the time at which the n-th datagram is sent, so the receiver measures the exact delay
//! of each without a timestamp in it: it computes the times of a pace, and draws or reads the times
//! of other workloads a second time.
//!
//! # Not implemented
//! Frames of several datagrams, fragmentation, RTP and its feedback (RFC 3550).

use std::collections::VecDeque;

use anabranch_core::{
    body::Body,
    histogram::Histogram,
    packet::Ecn,
    reordering::Arrival,
    units::{Duration, Instant},
};
use anabranch_path::host::Departing;
use anabranch_tcp::Stats;
use anabranch_wire::Transport;

use anabranch_scenario::workload::{Pace, Sendings, sendings::Sending};

/// The datagrams of a UDP flow.
#[derive(Debug, Clone)]
pub struct Datagrams {
    /// Times and sizes.
    pub timing: Timing,
    /// Bytes of the headers around each payload.
    pub headers: u32,
}

/// Times and sizes of datagrams.
#[derive(Debug, Clone)]
pub enum Timing {
    /// Evenly spaced from the flow's start on.
    Paced(Pace),
    /// In sequence, as drawn or recorded.
    Listed(Box<Sendings>),
}

/// The datagrams of a UDP flow in sequence.
#[derive(Debug, Clone)]
pub struct Schedule {
    timing: Timing,
    /// The start of the flow.
    since: Instant,
    sent: u64,
}

impl Schedule {
    /// Starts at `since`; listed datagrams have absolute times.
    #[must_use]
    pub const fn new(timing: Timing, since: Instant) -> Self {
        Self {
            timing,
            since,
            sent: 0,
        }
    }
}

impl Iterator for Schedule {
    type Item = Sending;

    fn next(&mut self) -> Option<Sending> {
        match &mut self.timing {
            Timing::Paced(pace) => {
                let at = self.since.saturating_add(pace.after(self.sent));
                let payload = pace.payload(self.sent);
                self.sent += 1;
                (at < Instant::NEVER).then_some(Sending { at, payload })
            }
            Timing::Listed(sendings) => sendings.next(),
        }
    }
}

/// One end of a UDP flow.
#[derive(Debug)]
pub enum UdpEnd {
    /// Sends.
    Source(Source),
    /// Receives.
    Sink(Sink),
}

/// The end that sends.
#[derive(Debug)]
pub struct Source {
    schedule: Schedule,
    headers: u32,
    /// `None` before the start and after the end.
    next: Option<Sending>,
    sent: u64,
    /// Payload bytes.
    sent_bytes: u64,
}

/// The end that receives.
#[derive(Debug)]
pub struct Sink {
    departures: Departures,
    received: u64,
    /// Payload bytes; duplicates count once.
    delivered: u64,
    delay: OneWayDelay,
}

/// The departure times of datagrams, as known to the receiver.
#[derive(Debug)]
enum Departures {
    /// At a pace since then.
    Paced(Pace, Instant),
    /// From a list.
    Listed(Box<Followed>),
}

/// The receiver's position in a list.
#[derive(Debug)]
struct Followed {
    sendings: Sendings,
    /// The number of the datagram at the front of `times`.
    first: u64,
    /// [`Instant::NEVER`] for a datagram that has arrived.
    times: VecDeque<Instant>,
}

/// The most missing datagrams whose times are stored; the delay of one that arrives later is not
/// measured.
const REMEMBERED: usize = 1 << 14;

impl Departures {
    /// Returns the departure time of a datagram; each can be queried once.
    fn of(&mut self, number: u64) -> Option<Instant> {
        match self {
            Self::Paced(pace, since) => Some(since.saturating_add(pace.after(number))),
            Self::Listed(followed) => followed.of(number),
        }
    }
}

impl Followed {
    fn of(&mut self, number: u64) -> Option<Instant> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        while self.times.len() <= place {
            let sending = self.sendings.next()?;
            self.times.push_back(sending.at);
        }
        let at = std::mem::replace(&mut self.times[place], Instant::NEVER);
        while self.times.front() == Some(&Instant::NEVER) || self.times.len() > REMEMBERED {
            self.times.pop_front();
            self.first += 1;
        }
        (at < Instant::NEVER).then_some(at)
    }
}

/// One-way delays of datagrams (RFC 7679); duplicates count once.
#[derive(Debug, Clone, Default)]
pub struct OneWayDelay {
    /// Picoseconds.
    sum: u128,
    /// Picoseconds.
    spread: Histogram<7>,
}

impl OneWayDelay {
    /// Records a delay.
    pub fn record(&mut self, delay: Duration) {
        self.sum += u128::from(delay.as_picos());
        self.spread.record(delay.as_picos());
    }
    /// The mean in milliseconds; `None` without arrivals.
    #[must_use]
    pub fn mean_ms(&self) -> Option<f64> {
        let count = self.spread.count();
        (count > 0).then(|| self.sum as f64 / count as f64 / 1e9)
    }
    /// A percentile, `p` in percent, within 0.4 %.
    #[must_use]
    pub fn percentile(&self, p: f64) -> Option<Duration> {
        self.spread.percentile(p).map(Duration::from_picos)
    }
}

/// Both ends of a flow whose first datagram is sent at `start`.
pub(super) fn udp_ends(datagrams: Datagrams, start: Instant) -> [UdpEnd; 2] {
    let Datagrams { timing, headers } = datagrams;
    let departures = match &timing {
        Timing::Paced(pace) => Departures::Paced(pace.clone(), start),
        Timing::Listed(sendings) => Departures::Listed(Box::new(Followed {
            sendings: Sendings::clone(sendings),
            first: 0,
            times: VecDeque::new(),
        })),
    };
    let source = Source {
        schedule: Schedule::new(timing, start),
        headers,
        next: None,
        sent: 0,
        sent_bytes: 0,
    };
    let sink = Sink {
        departures,
        received: 0,
        delivered: 0,
        delay: OneWayDelay::default(),
    };
    [UdpEnd::Source(source), UdpEnd::Sink(sink)]
}

impl UdpEnd {
    /// The time of the next datagram.
    pub(super) const fn timer(&self) -> Instant {
        match self {
            Self::Source(source) => match source.next {
                Some(sending) => sending.at,
                None => Instant::NEVER,
            },
            Self::Sink(_) => Instant::NEVER,
        }
    }
    /// Starts the flow.
    pub(super) fn start(&mut self) {
        if let Self::Source(source) = self {
            source.next = source.schedule.next();
        }
    }
    /// Stops the application.
    pub(super) const fn stop(&mut self) {
        if let Self::Source(source) = self {
            source.next = None;
        }
    }
    /// Returns the next due datagram, if any, and the payload bytes sent before it.
    pub(super) fn poll_transmit<B: Body>(&mut self, now: Instant) -> Option<(u64, Departing<B>)> {
        let Self::Source(source) = self else {
            return None;
        };
        let payload = source.next.filter(|sending| sending.at <= now)?.payload;
        let offset = source.sent_bytes;
        source.next = source.schedule.next();
        source.sent += 1;
        source.sent_bytes += u64::from(payload);
        let departing = Departing {
            transport: Transport::Datagram(B::filler(payload)),
            size: source.headers + payload,
            ecn: Ecn::NotEct,
            dscp: 0,
        };
        Some((offset, departing))
    }
    /// Records a datagram. `arrival` is its observation, if it is measured.
    pub(super) fn on_datagram(
        &mut self,
        now: Instant,
        number: u64,
        payload: u32,
        arrival: Option<Arrival>,
    ) {
        let Self::Sink(sink) = self else {
            return;
        };
        sink.received += 1;
        if arrival.is_some_and(|arrival| arrival.duplicate) {
            return;
        }
        sink.delivered += u64::from(payload);
        if arrival.is_some()
            && let Some(sent) = sink.departures.of(number)
        {
            sink.delay.record(now.saturating_since(sent));
        }
    }
    /// Payload bytes that arrived; duplicates count once.
    pub(super) const fn delivered_bytes(&self) -> u64 {
        match self {
            Self::Source(_) => 0,
            Self::Sink(sink) => sink.delivered,
        }
    }
    /// Its counters.
    pub(super) fn stats(&self) -> Stats {
        match self {
            Self::Source(source) => Stats {
                sent_packets: source.sent,
                sent_bytes: source.sent_bytes + source.sent * u64::from(source.headers),
                ..Stats::default()
            },
            Self::Sink(sink) => Stats {
                received_packets: sink.received,
                delivered_bytes: sink.delivered,
                ..Stats::default()
            },
        }
    }
    /// The delays of datagrams that arrived in the measured time.
    pub(super) const fn one_way_delay(&self) -> Option<&OneWayDelay> {
        match self {
            Self::Source(_) => None,
            Self::Sink(sink) => Some(&sink.delay),
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_core::{body::Length, units::Rate};

    use super::*;

    fn paced(pace: Pace) -> Datagrams {
        Datagrams {
            timing: Timing::Paced(pace),
            headers: 28,
        }
    }

    /// 2,666.67 ns apart. Detects a sender that accumulates rounded intervals.
    #[test]
    fn the_sender_follows_its_schedule() {
        let rate = Rate::new(3_000_000_000).expect("positive");
        let pace = Pace::new(rate, 1000).expect("slow enough");
        let start = Instant::START + Duration::from_millis(5);
        let [mut source, _] = udp_ends(paced(pace.clone()), start);
        source.start();
        for number in 0..3000 {
            let now = source.timer();
            assert_eq!(now, start + pace.after(number));
            let (offset, departing) = source.poll_transmit::<Length>(now).expect("it is due");
            assert_eq!((offset, departing.size), (1000 * number, 1028));
            assert!(source.poll_transmit::<Length>(now).is_none());
        }
        source.stop();
        assert_eq!(source.timer(), Instant::NEVER);
    }
}
