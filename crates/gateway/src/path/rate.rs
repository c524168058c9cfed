//! How fast a path is sent on: a rate that follows what arrives, by delivery rate, growth of the delay and loss.
//!
//! Once per round trip the rate changes. It doubles at the start, and later grows by a twelfth while the path's queue is short. It
//! falls to a part of the measured delivery rate when the queue has grown or much was lost.
//!
//! # Not implemented
//! - ECN marks of the path.
//! - Random loss is distinguished from congestion only by its amount and by the delay.

use anabranch_core::units::{Duration, Instant};

/// Octets per second at first, at least and at most.
const INITIAL: f64 = 1e6;
const LEAST: f64 = 8e3;
const MOST: f64 = 2e9;
/// The queue that the rate aims for.
const TARGET_S: f64 = 0.010;
/// Loss that counts as congestion whatever the delay.
const MUCH_LOSS: f64 = 0.2;
/// Fewer lost datagrams in a round say nothing of its loss.
const LOSSES_LEAST: u32 = 5;
/// A delay that changes by so much is another clock.
const CLOCK_STEP_S: f64 = 5.0;
/// Octets in flight that are always allowed.
const LEAST_FLIGHT: f64 = 14_720.0;
/// How far sending may catch up after a time without packets, or by ten packets (RFC 6928), whichever is more.
const CATCH_UP: Duration = Duration::from_millis(2);
/// The same where packets waited for the pace, and then for the host's processor: the path was idle for lack of it alone.
const CATCH_UP_BACKLOG: Duration = Duration::from_millis(50);
/// Base delays are forgotten after one to two of these.
const BASE_LIFE: Duration = Duration::from_secs(10);
const MIN_ROUND: Duration = Duration::from_millis(20);

/// One round of measurement.
#[derive(Debug, Clone, Copy)]
struct Round {
    since: Instant,
    sent: usize,
    arrived: usize,
    lost: usize,
    losses: u32,
    least_queue_s: f64,
}

/// The controller of a path.
#[derive(Debug, Clone)]
pub struct RateControl {
    rate: f64,
    in_flight: usize,
    is_starting: bool,
    next: Instant,
    base_s: [f64; 2],
    base_since: Instant,
    delay_s: Option<f64>,
    round: Round,
    is_congested: bool,
}

impl Default for RateControl {
    fn default() -> Self {
        Self {
            rate: INITIAL,
            in_flight: 0,
            is_starting: true,
            next: Instant::START,
            base_s: [f64::INFINITY; 2],
            base_since: Instant::START,
            delay_s: None,
            round: Round::new(Instant::START),
            is_congested: false,
        }
    }
}

impl Round {
    const fn new(since: Instant) -> Self {
        Self {
            since,
            sent: 0,
            arrived: 0,
            lost: 0,
            losses: 0,
            least_queue_s: f64::INFINITY,
        }
    }
}

impl RateControl {
    /// Octets per second.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// Octets in flight.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The one-way delay in seconds, smoothed, with the offset of the clocks, which all paths share.
    #[must_use]
    pub const fn delay_s(&self) -> Option<f64> {
        self.delay_s
    }

    /// When the next packet may leave by the pace; `None` while too much is in flight for the time until reports are handled.
    #[must_use]
    pub fn ready(&self, feedback: Option<Duration>) -> Option<Instant> {
        let window = self.rate * 2.0 * feedback.map_or(0.2, Duration::as_secs_f64);
        ((self.in_flight as f64) < window.max(LEAST_FLIGHT)).then_some(self.next)
    }

    /// A datagram leaves, after the pace held packets back or not. Those that the pace does not hold back count nevertheless.
    pub fn on_sent(&mut self, octets: usize, was_held_back: bool, now: Instant) {
        self.in_flight += octets;
        self.round.sent += octets;
        let pause = if was_held_back {
            CATCH_UP_BACKLOG
        } else {
            CATCH_UP
        };
        let catch_up = pause.max(Duration::from_secs_f64(LEAST_FLIGHT / self.rate));
        let earliest = Instant::START + now.saturating_since(Instant::START + catch_up);
        let from = self.next.max(earliest);
        self.next = from + Duration::from_secs_f64(octets as f64 / self.rate);
    }

    /// A datagram arrived with this one-way delay in seconds.
    pub fn on_arrived(&mut self, octets: usize, delay_s: Option<f64>, now: Instant) {
        self.in_flight = self.in_flight.saturating_sub(octets);
        self.round.arrived += octets;
        let Some(sample) = delay_s else { return };
        // No queue is that long: a clock has been stopped or set.
        if self
            .delay_s
            .is_some_and(|before| (sample - before).abs() > CLOCK_STEP_S)
        {
            self.forget_delay();
        }
        if now.saturating_since(self.base_since) > BASE_LIFE {
            self.base_s = [self.base_s[1], f64::INFINITY];
            self.base_since = now;
        }
        self.base_s[1] = self.base_s[1].min(sample);
        let base = self.base_s[0].min(self.base_s[1]);
        self.delay_s = Some(
            self.delay_s
                .map_or(sample, |before| before + (sample - before) / 8.0),
        );
        self.round.least_queue_s = self.round.least_queue_s.min(sample - base);
    }

    /// A datagram was lost.
    pub fn on_lost(&mut self, octets: usize) {
        self.in_flight = self.in_flight.saturating_sub(octets);
        self.round.lost += octets;
        self.round.losses += 1;
    }

    /// Whether the last round met congestion. What is lost then is left for the inner sender to see (RFC 9265 §3).
    #[must_use]
    pub const fn is_congested(&self) -> bool {
        self.is_congested
    }

    /// The clocks' difference is measured anew.
    pub fn forget_delay(&mut self) {
        self.delay_s = None;
        self.base_s = [f64::INFINITY; 2];
        self.round.least_queue_s = f64::INFINITY;
    }

    /// Nothing is in flight any more.
    pub fn clear_flight(&mut self) {
        self.in_flight = 0;
    }

    /// Octets of which nothing will be learned.
    pub fn on_unknown(&mut self, octets: usize) {
        self.in_flight = self.in_flight.saturating_sub(octets);
    }

    /// Ends a round where one is over, and says whether.
    pub fn on_report(&mut self, srtt: Option<Duration>, now: Instant) -> bool {
        let length = srtt.unwrap_or(MIN_ROUND).max(MIN_ROUND);
        let past = now.saturating_since(self.round.since);
        if past < length {
            return false;
        }
        let round = std::mem::replace(&mut self.round, Round::new(now));
        let delivery = round.arrived as f64 / past.as_secs_f64();
        let decided = round.arrived + round.lost;
        let loss = if decided == 0 {
            0.0
        } else {
            round.lost as f64 / decided as f64
        };
        let is_busy = round.sent as f64 > 0.6 * self.rate * past.as_secs_f64();
        let is_queue_long = round.least_queue_s.is_finite() && round.least_queue_s > TARGET_S;
        let is_loss_much = round.losses >= LOSSES_LEAST && loss > MUCH_LOSS;
        self.is_congested = decided > 0 && (is_queue_long || is_loss_much);
        if self.is_congested {
            self.is_starting = false;
            self.rate = (0.9 * delivery).max(0.5 * self.rate);
        } else if is_busy {
            self.rate *= if self.is_starting {
                2.0
            } else {
                1.0 + 1.0 / 12.0
            };
        }
        self.rate = self.rate.clamp(LEAST, MOST);
        true
    }
}
