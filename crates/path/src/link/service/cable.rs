//! Upstream of a cable modem (DOCSIS): a packet waits until its bytes are requested and granted.
//!
//! The CMTS builds a MAP every `map_interval`. It grants time in an interval that begins `map_lead`
//! later. A modem requests all bytes that wait, in a contention slot or with a segment that it
//! sends anyway (piggyback). Packets that arrive while a request is outstanding are covered by the
//! next request. Requests thus overlap, and a busy modem sends at `rate` without gaps.
//!
//! # Differs from the source
//! - The media acquisition delay of 2 to 8 ms is not confirmed (docs/design/039-media.md).
//! - A grant begins with the interval of its MAP; a CMTS places it anywhere in the interval.
//! - Contention slots are dense: the modem picks a time from its backoff window, not a slot.
//! - Collisions are drawn with a probability; other modems are not modelled.
//!
//! # Not implemented
//! - Unsolicited and proactive grants, token buckets, MAC headers (`rate` counts IP packets),
//!   channel bonding.

use std::collections::VecDeque;

use anabranch_core::{
    parameters::Count,
    quantity,
    registry::{Meta, Source},
    rng::Stream,
    units::{Duration, Fraction, Instant, Rate},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Fixed, Service, clock::Recurring};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "cable",
    title: "Cable upstream (DOCSIS)",
    summary: "The upstream of a cable modem: requests by contention or piggyback, MAPs, grants.",
    sources: &[
        Source {
            id: "DOCSIS 3.1 MULPI (CM-SP-MULPIv3.1-I19, CableLabs 2019)",
            items: &["§7.2.1", "§7.2.2", "Annex B"],
        },
        Source {
            id: "White, Sundaresan, Briscoe, Low Latency DOCSIS: Technology Overview (CableLabs 2019)",
            items: &["media acquisition delay"],
        },
    ],
};

quantity! {
    /// A time of requests and grants.
    RequestTime, Duration, Duration::ZERO, Duration::from_secs(1)
}

quantity! {
    /// Length of a MAP interval.
    MapInterval, Duration, Duration::from_micros(100), Duration::from_millis(100)
}

impl RequestTime {
    /// # Panics
    /// If `us` is above a second; in a `const` this is a compile error.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        assert!(us <= 1_000_000, "0..1 s");
        Self(Duration::from_micros(us))
    }
}

impl MapInterval {
    /// # Panics
    /// If `us` is outside 100 to 100,000; in a `const` this is a compile error.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        assert!(us >= 100 && us <= 100_000, "100 us..100 ms");
        Self(Duration::from_micros(us))
    }
}

/// Parameters of a modem's upstream. Defaults describe an OFDMA channel of DOCSIS 3.1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Interval between MAPs, and the length of the interval that each describes (2 ms).
    pub map_interval: MapInterval,
    /// Time from the building of a MAP to the start of its interval: scheduling (200 µs), the
    /// downstream path, and the modem's processing (757 µs with frames of 135 µs).
    pub map_lead: RequestTime,
    /// Time from the sending of a request to its receipt by the CMTS: three OFDMA frames and
    /// propagation.
    pub request_delay: RequestTime,
    /// Window from which the modem picks the time of a request in contention.
    pub backoff: RequestTime,
    /// Probability that a request in contention collides.
    pub collision: Fraction,
    /// Maximum number of doublings of the window, one after each collision.
    pub doublings: Count<16>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            map_interval: MapInterval::from_micros(2_000),
            map_lead: RequestTime::from_micros(1_200),
            request_delay: RequestTime::from_micros(450),
            backoff: RequestTime::from_micros(2_000),
            collision: Fraction::ZERO,
            doublings: Count::new(4),
        }
    }
}

/// Maximum number of collisions of a request. Without it, a collision probability of 1 would never
/// end.
const MOST_COLLISIONS: u32 = 16;

/// State of a modem's upstream.
#[derive(Debug)]
pub struct Cable {
    sender: Fixed,
    collision: f64,
    backoff: Duration,
    doublings: u32,
    request_delay: Duration,
    map_lead: Duration,
    /// Times at which MAPs are built, and the starts of their intervals.
    maps: Recurring,
    intervals: Recurring,
    stream: Stream,
    /// Number of requests in contention.
    requests: u64,
    /// When the packet to be sent joined the queue.
    arrived: Instant,
    /// Time of the last request, which covers all earlier arrivals.
    requested: Option<Instant>,
    /// Starts and ends of transmissions without a gap that end after the arrival of the last
    /// requested packet.
    bursts: VecDeque<(Instant, Instant)>,
    /// When the packet in transmission begins to leave.
    begun: Instant,
}

impl Cable {
    /// Creates the upstream of a modem that is granted `rate`.
    #[must_use]
    pub fn new(params: &Params, rate: Rate, stream: Stream) -> Self {
        let map_interval = params.map_interval.get();
        let map_lead = params.map_lead.get();
        let phase = map_interval.mul_f64(stream.at(0).uniform());
        Self {
            sender: Fixed::new(Some(rate)),
            collision: params.collision.get(),
            backoff: params.backoff.get(),
            doublings: params.doublings.get(),
            request_delay: params.request_delay.get(),
            map_lead,
            maps: Recurring::new(map_interval, phase),
            intervals: Recurring::new(map_interval, phase + map_lead),
            stream,
            requests: 0,
            arrived: Instant::START,
            requested: None,
            bursts: VecDeque::new(),
            begun: Instant::START,
        }
    }

    /// Start of the interval whose MAP answers a request sent at `sent`.
    fn granted(&self, sent: Instant) -> Instant {
        let known = sent.saturating_add(self.request_delay);
        self.maps.at_or_after(known).saturating_add(self.map_lead)
    }

    /// When a contention request gets through for bytes that wait from `from` on.
    fn contend(&mut self, from: Instant) -> Instant {
        self.requests += 1;
        let mut draw = self.stream.at(self.requests);
        let mut from = from;
        for collisions in 0..MOST_COLLISIONS {
            let doublings = collisions.min(self.doublings);
            let window = self.backoff.saturating_mul(1 << doublings);
            let sent = from.saturating_add(draw.uniform_duration(window));
            if self.collision <= 0.0 || !draw.chance(self.collision) {
                return sent;
            }
            // The modem retries after the MAP that should have contained the grant.
            from = self.granted(sent);
        }
        from
    }

    /// Start of the next segment at or after `from`, if the modem sends one anyway.
    fn piggyback(&mut self, from: Instant) -> Option<Instant> {
        while self.bursts.front().is_some_and(|(_, end)| *end <= from) {
            self.bursts.pop_front();
        }
        // A grant does not extend beyond its interval: a burst has one segment in each interval.
        let next = self.intervals.at_or_after(from);
        let segment = |&(start, end): &(Instant, Instant)| {
            if from <= start {
                return Some(start);
            }
            (next < end).then_some(next)
        };
        self.bursts.iter().find_map(segment)
    }

    /// When a packet that joined the queue at `arrived` may leave.
    fn grant(&mut self, arrived: Instant) -> Instant {
        let requested = match self.requested {
            Some(requested) if arrived <= requested => requested,
            _ => {
                let alone = self.contend(arrived);
                self.piggyback(arrived)
                    .map_or(alone, |with| with.min(alone))
            }
        };
        self.requested = Some(requested);
        self.granted(requested)
    }
}

impl Service for Cable {
    fn arrived(&mut self, at: Instant) {
        self.arrived = at;
    }
    fn finish(&mut self, now: Instant, bits: u64) -> Instant {
        self.begun = now.max(self.grant(self.arrived));
        let end = self.sender.finish(self.begun, bits);
        match self.bursts.back_mut() {
            Some((_, until)) if *until == self.begun => *until = end,
            _ => self.bursts.push_back((self.begun, end)),
        }
        end
    }
    fn capacity(&self, from: Instant, to: Instant) -> f64 {
        self.sender.capacity(from, to)
    }
    fn interrupt(&mut self, since: Instant, now: Instant) -> u64 {
        let from = since.max(self.begun);
        self.bursts.clear();
        if now <= from {
            return 0;
        }
        super::whole_bits(self.capacity(from, now))
    }
}
