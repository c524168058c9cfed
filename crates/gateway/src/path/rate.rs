//! The sending rate of a path: its delivery rate, a little more while its queue is short, and less
//! while it is long.
//!
//! The delivery rate is measured once per round trip by the receiver's clock. The start phase is
//! TCP's slow start, until the delivery does not keep up. Afterwards the rate is the delivery rate
//! times a gain that leads to a short queue in the path: the gain deviates from 1 in proportion to
//! the distance of the queue from its target. A round without enough data to send changes nothing.
//!
//! # Not implemented
//! - ECN marks of the path.

mod delays;
mod limit;
mod round;

use anabranch_core::units::Duration;

use crate::time::Instant;
use delays::{Delays, TARGET_S};
use round::{CLEAR, Round};

/// Initial rate in octets per second. `LEAST` and `MOST` bound the rate.
const INITIAL: f64 = 1e6;
/// Initial window in octets, and the pace of the start in windows per round trip.
const WINDOW: f64 = 40_000.0;
const START_PACE: f64 = 1.5;
/// The round-trip time before there is a sample.
const UNKNOWN_S: f64 = 0.2;
const LEAST: f64 = 8e3;
const MOST: f64 = 2e9;
/// The gain deviates from 1 by this part of the queue's distance from the target, in rounds, and
/// stays within these bounds.
const GAIN: f64 = 0.5;
const GAIN_LEAST: f64 = 0.5;
/// The greatest gain of the first round with a short queue. Its excess over 1 doubles in each round
/// that follows, up to `GAIN_MOST`.
const GAIN_FIRST: f64 = 1.125;
const GAIN_MOST: f64 = 1.5;
/// A queue is short below this part of the target.
const SHORT: f64 = 0.75;
/// The greatest gain after a loss by congestion, and the number of rounds for which it holds.
const GAIN_AFTER_LOSS: f64 = 1.02;
const CAREFUL: u32 = 10;
/// The start ends when this many consecutive rounds (`FLAT`) deliver less than this multiple of the
/// best before.
const GROWS: f64 = 1.25;
const FLAT: u32 = 3;
/// The greatest ratio of the rate to the delivery rate, which matters for an end that has little to
/// send.
const HEADROOM: f64 = 2.5;
/// A path keeps up if it delivers this part of the sent octets.
const KEEPS_UP: f64 = 0.9;
/// At the start, while the sending rate doubles, a path is full if it delivers less than this part.
/// A round counts if more than `MANY_OCTETS` arrive; consecutive rounds must add up to more than
/// `FULL_OCTETS`.
const KEEPS_UP_AT_START: f64 = 0.75;
const MANY_OCTETS: usize = 30_000;
const FULL_OCTETS: usize = 100_000;
/// The shortest round, in multiples of the jitter.
const ROUND_JITTER: f64 = 8.0;
/// A round is congested if its loss exceeds this multiple of the usual loss plus `UNUSUAL_SHARE`,
/// with at least `LOSSES_LEAST` losses.
const UNUSUAL: f64 = 2.0;
/// The usual loss is an average over about this many octets.
const USUAL_OCTETS: f64 = 1e6;
const UNUSUAL_SHARE: f64 = 0.03;
const LOSSES_LEAST: u32 = 4;
/// The rate after a congested round, as a part of the delivery rate.
const BACK: f64 = 0.9;
/// A round uses the path if it sends this part of the rate.
const BUSY: f64 = 0.7;
/// The flight limit covers this multiple of the round-trip time without a queue, twice the target
/// queue, four times the jitter, and the wait for a report.
const FLIGHT: f64 = 1.25;
const REPORT_S: f64 = 0.012;
/// Octets in flight that are always allowed.
const LEAST_FLIGHT: f64 = 14_720.0;
/// The burst after a pause: the octets of this time at the present rate, but at least `BURST`.
const CATCH_UP: Duration = Duration::from_millis(2);
/// The same if the pace, and then the host's processor, held packets back: the path was idle only
/// for lack of processor time.
const CATCH_UP_BACKLOG: Duration = Duration::from_millis(50);
/// The least burst after the start: two packets, because ten would be a long queue in a slow path.
/// In the start it is `LEAST_FLIGHT`, ten packets (RFC 6928).
const BURST: f64 = 2_944.0;
const MIN_ROUND: Duration = Duration::from_millis(20);

/// The newest packet of a report: its arrival by the receiver's clock in microseconds, its delay,
/// and the octets that had arrived before the report.
#[derive(Debug, Clone, Copy)]
struct Newest {
    arrived: u32,
    delay_s: f64,
    total: u64,
}

/// The evaluation of a round.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one answer, and none excludes another"
)]
#[derive(Debug, Clone, Copy)]
struct Seen {
    delivery: f64,
    /// The least queue, and the target queue.
    queue: f64,
    target: f64,
    is_busy: bool,
    /// Whether the path always had data to carry, so that delivery is its capacity.
    is_fed: bool,
    is_much: bool,
    is_long: bool,
    is_loss: bool,
    keeps_up: bool,
    /// Octets that arrived, if they are far fewer than were sent; otherwise 0.
    full: usize,
}

/// The controller of a path.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one answer, and none excludes another"
)]
#[derive(Debug, Clone)]
pub struct RateControl {
    rate: f64,
    /// The operator's limit of the rate.
    limit: f64,
    /// The estimate before the start, in octets per second.
    first: Option<f64>,
    /// Octets in flight during the start.
    window: f64,
    /// The delivery rate of the path, in octets per second.
    delivery: f64,
    in_flight: usize,
    is_starting: bool,
    next: Instant,
    delays: Delays,
    /// The largest datagram of the last round and of this one, in octets.
    largest: [usize; 2],
    round: Round,
    sent_before: f64,
    /// Consecutive rounds of the start without growth.
    flat: u32,
    /// Consecutive rounds with a short queue.
    short: u32,
    /// Rounds for which the gain stays small.
    careful: u32,
    /// The loss of rounds without congestion.
    usual_loss: f64,
    busy_since: Option<Instant>,
    is_congested: bool,
    signal: bool,
    /// The scheduler does not use the path although it is ready.
    is_left_out: bool,
    /// The path has been left out, so in some rounds it was used only for a part of the time.
    has_pauses: bool,
    /// Total octets that arrived.
    total: u64,
    /// The last report.
    last: Option<Newest>,
    /// The report before the present series, whose reports all show a queue or a growing delay.
    queued: Option<Newest>,
    /// Octets that arrived in consecutive rounds of the start in which far more was sent.
    full: usize,
}

impl Default for RateControl {
    fn default() -> Self {
        Self {
            rate: INITIAL,
            limit: f64::INFINITY,
            first: None,
            window: WINDOW,
            delivery: 0.0,
            in_flight: 0,
            is_starting: true,
            next: Instant::START,
            delays: Delays::default(),
            largest: [0; 2],
            round: Round::new(Instant::START, None),
            sent_before: 0.0,
            flat: 0,
            short: 0,
            careful: 0,
            usual_loss: 0.0,
            busy_since: None,
            is_congested: false,
            signal: false,
            is_left_out: false,
            has_pauses: false,
            total: 0,
            last: None,
            queued: None,
            full: 0,
        }
    }
}

impl RateControl {
    /// The sending rate in octets per second.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// The time from which the pace allows the next packet.
    #[must_use]
    pub const fn paced_until(&self) -> Instant {
        self.next
    }

    /// Whether the path may carry far more than was sent before.
    #[must_use]
    pub const fn is_starting(&self) -> bool {
        self.is_starting
    }

    /// The rate in octets per second above which a first estimate needs no confirmation.
    pub const ENOUGH: f64 = 2.0 * INITIAL;

    /// Whether nothing is in flight, and the path has carried little.
    #[must_use]
    pub const fn is_unused(&self) -> bool {
        self.is_starting && self.in_flight == 0
    }

    /// Octets that arrived in all.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The delivery rate in octets per second.
    #[must_use]
    pub const fn delivery(&self) -> f64 {
        self.delivery
    }

    /// The rate that the path may have, in octets per second: the delivery rate, or in the start
    /// the first estimate, but at most the limit.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        let capacity = if self.is_starting {
            self.first.unwrap_or(INITIAL).max(self.delivery)
        } else {
            self.delivery.max(LEAST)
        };
        capacity.min(self.limit)
    }

    /// The rate with which the start begins.
    fn initial(&self) -> f64 {
        self.first
            .map_or(INITIAL, |first| first.clamp(LEAST, INITIAL))
    }

    /// Takes a first estimate of the rate.
    pub fn on_first_estimate(&mut self, rate: f64) {
        if self.is_starting {
            self.first = Some(rate);
        }
    }

    /// Records that packets begin to use the path. One that is slower than the initial rate has no
    /// start.
    pub fn on_use(&mut self) {
        if self.is_starting
            && let Some(first) = self.first.filter(|&first| first < INITIAL)
        {
            self.is_starting = false;
            self.delivery = first.max(LEAST);
            self.rate = self.delivery.min(self.limit);
        }
    }

    /// Octets in flight.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The smoothed one-way delay in seconds, with the offset of the clocks, which all paths share.
    #[must_use]
    pub const fn delay_s(&self) -> Option<f64> {
        self.delays.smoothed_s()
    }

    /// The one-way delay in seconds of a packet sent now: the smoothed delay, minus the queue that
    /// this end caused then, plus the queue that the octets in flight cause.
    #[must_use]
    pub fn expected_delay_s(&self, feedback: Option<Duration>) -> Option<f64> {
        let empty_s = self.empty_s(feedback);
        let delivery = if self.is_starting {
            (2.0 * self.delivery).max(self.initial())
        } else {
            self.delivery
        };
        let own_queue_s = |flight: f64| (flight / delivery - empty_s).max(0.0);
        let delays = &self.delays;
        let delay = delays.smoothed_s()? + own_queue_s(self.in_flight as f64)
            - own_queue_s(delays.flight_then());
        Some(delay.max(delays.base_s()))
    }

    /// The one-way delay in seconds with the target queue, with the offset of the clocks.
    #[must_use]
    pub fn target_delay_s(&self) -> Option<f64> {
        let base_s = self.delays.base_s();
        base_s.is_finite().then(|| base_s + self.target_s())
    }

    /// The mean difference between consecutive delays in seconds (RFC 3550 §6.4.1).
    #[must_use]
    pub const fn jitter_s(&self) -> f64 {
        self.delays.jitter_s()
    }

    /// The time at which the pace allows the next packet. `None` while too much is in flight for
    /// `feedback`, the time until reports are processed.
    #[must_use]
    pub fn ready(&self, feedback: Option<Duration>) -> Option<Instant> {
        let flight = if self.is_starting {
            // A path takes over from another at once.
            let window_s = FLIGHT * self.empty_s(feedback) + REPORT_S;
            self.window.max(self.initial() * window_s)
        } else {
            let window_s = FLIGHT * self.empty_s(feedback)
                + 2.0 * self.target_s()
                + 4.0 * self.jitter_s()
                + REPORT_S;
            self.rate * window_s
        };
        ((self.in_flight as f64) < flight.max(LEAST_FLIGHT)).then_some(self.next)
    }

    /// The round-trip time of the path without a queue.
    fn empty_s(&self, srtt: Option<Duration>) -> f64 {
        let srtt_s = srtt.map_or(UNKNOWN_S, Duration::as_secs_f64);
        (srtt_s - self.delays.queue_s()).max(0.0)
    }

    /// The time since which the path has been used to its rate, if it is.
    #[must_use]
    pub const fn busy_since(&self) -> Option<Instant> {
        self.busy_since
    }

    fn target_s(&self) -> f64 {
        self.delays.target_s(self.packet_s())
    }

    /// The time in which the path carries the largest datagram: delays of datagrams of different
    /// sizes, or of one after another, differ by this much without a queue or jitter.
    fn packet_s(&self) -> f64 {
        if self.delivery > 0.0 {
            self.largest[0].max(self.largest[1]) as f64 / self.delivery.max(LEAST)
        } else {
            0.0
        }
    }

    /// Records that packets wait. If this path could take one, the scheduler has left it out, and
    /// it has nothing to catch up on.
    pub fn on_wait(&mut self, feedback: Option<Duration>, now: Instant) {
        self.is_left_out = self.ready(feedback).is_some_and(|ready| ready <= now);
        self.has_pauses |= self.is_left_out;
    }

    /// Records a datagram that leaves. `was_held_back`: the pace had held packets back. Datagrams
    /// that are not paced count too.
    pub fn on_sent(&mut self, octets: usize, was_held_back: bool, now: Instant) {
        self.in_flight += octets;
        self.round.sent += octets;
        self.largest[1] = self.largest[1].max(octets);
        let is_late = was_held_back && !std::mem::take(&mut self.is_left_out);
        let pause = if is_late { CATCH_UP_BACKLOG } else { CATCH_UP };
        let burst = if self.is_starting {
            LEAST_FLIGHT
        } else {
            BURST
        };
        let catch_up = pause.max(Duration::from_secs_f64(burst / self.rate));
        let from = self.next.max(now.saturating_sub(catch_up));
        self.next = from + Duration::from_secs_f64(octets as f64 / self.rate);
    }

    /// Records a datagram that arrived.
    pub fn on_arrived(&mut self, octets: usize) {
        // As in TCP's slow start, if the window is used (RFC 7661 §4.3) and causes no long queue
        // (RFC 9406 §4.2).
        let is_used = self.in_flight as f64 > 0.5 * self.window;
        let newest_s = self.delays.newest_s();
        let is_long =
            newest_s.is_some_and(|newest| newest - self.delays.base_s() > self.target_s());
        if self.is_starting && is_used && !is_long {
            self.window += octets as f64;
        }
        self.in_flight = self.in_flight.saturating_sub(octets);
        self.round.arrived += octets;
        self.total += octets as u64;
    }

    /// Records the newest arrival: its time by the receiver's clock in microseconds, and its delay
    /// in seconds.
    pub fn on_delay(&mut self, arrived: u32, sample: f64, in_flight: usize, now: Instant) {
        self.round.to = arrived;
        self.round.from.get_or_insert(arrived);
        if self.delays.is_step(sample) {
            self.forget_delay();
        }
        let packet_s = self.packet_s();
        self.delays.on_sample(sample, in_flight, packet_s, now);
        self.round.least_queue_s = self.round.least_queue_s.min(sample - self.delays.base_s());
        self.follow_queue(arrived, sample);
    }

    /// Ends a start that is too fast: while a queue persists or grows from report to report, the
    /// path delivers at capacity, even over less than a round.
    fn follow_queue(&mut self, arrived: u32, delay_s: f64) {
        let newest = Newest {
            arrived,
            delay_s,
            total: self.total,
        };
        let before = self.last.replace(newest);
        let Some(before) = before.filter(|_| self.is_starting && self.has_pauses) else {
            self.queued = None;
            return;
        };
        let is_queued = delay_s - self.delays.base_s() > self.target_s();
        if delay_s < before.delay_s - self.jitter_s() && !is_queued {
            self.queued = None;
            return;
        }
        let first = *self.queued.get_or_insert(before);
        let took_s = f64::from(arrived.wrapping_sub(first.arrived)) * 1e-6;
        let octets = (self.total - first.total) as f64;
        let grown_s = delay_s - first.delay_s;
        if octets < LEAST_FLIGHT || took_s < CLEAR * self.jitter_s() {
            return;
        }
        let delivery = octets / took_s;
        let is_growing = grown_s > TARGET_S && grown_s > (1.0 - KEEPS_UP_AT_START) * took_s;
        if delivery < KEEPS_UP_AT_START * self.rate && (is_queued || is_growing) {
            self.is_starting = false;
            self.delivery = delivery;
            self.rate = delivery;
        }
    }

    /// Records a lost datagram.
    pub fn on_lost(&mut self, octets: usize) {
        self.in_flight = self.in_flight.saturating_sub(octets);
        self.round.lost += octets;
        self.round.losses += 1;
    }

    /// Records datagrams that arrived after they were presumed lost.
    pub fn on_spurious(&mut self, octets: usize) {
        self.round.arrived += octets;
        self.round.lost = self.round.lost.saturating_sub(octets);
    }

    /// Whether the last round lost packets by congestion. Returns true once for each such round.
    pub fn take_signal(&mut self) -> bool {
        std::mem::take(&mut self.signal)
    }

    /// Whether the last round lost packets by congestion.
    #[must_use]
    pub const fn is_congested(&self) -> bool {
        self.is_congested
    }

    /// The share of octets that rounds without congestion lose.
    #[must_use]
    pub const fn usual_loss(&self) -> f64 {
        self.usual_loss
    }

    /// Discards the delays, so that the difference of the clocks is measured again.
    pub fn forget_delay(&mut self) {
        self.delays.forget();
        (self.last, self.queued) = (None, None);
        self.round.from = None;
        self.round.least_queue_s = f64::INFINITY;
    }

    /// Restarts the measurement after an outage, whose time is no part of a round. The path may have
    /// another delay. The rates are kept.
    pub fn resume(&mut self, now: Instant) {
        self.delays = Delays::default();
        (self.last, self.queued) = (None, None);
        self.round = Round::new(now, None);
        (self.sent_before, self.busy_since) = (0.0, None);
        self.clear_flight();
    }

    /// Records that nothing is in flight any more.
    pub fn clear_flight(&mut self) {
        self.in_flight = 0;
    }

    /// Removes octets from flight whose outcome will not be known.
    pub fn on_unknown(&mut self, octets: usize) {
        self.in_flight = self.in_flight.saturating_sub(octets);
    }

    /// Ends the present round if it is over. Returns whether it was.
    pub fn on_report(&mut self, srtt: Option<Duration>, now: Instant) -> bool {
        let jitter = Duration::from_secs_f64(ROUND_JITTER * self.jitter_s());
        let length = srtt.unwrap_or(MIN_ROUND).max(MIN_ROUND).max(jitter);
        if self.is_starting {
            let empty_s = self.empty_s(srtt).max(1e-3);
            let rate = (START_PACE * self.window / empty_s).clamp(self.initial(), MOST);
            self.rate = rate.min(self.limit);
        }
        let past = now.saturating_since(self.round.since);
        if past < length {
            return false;
        }
        let next = Round::new(now, self.round.from.map(|_| self.round.to));
        let round = std::mem::replace(&mut self.round, next);
        self.largest = [self.largest[1], 0];
        let past_s = past.as_secs_f64();
        let sent = round.sent as f64 / past_s;
        if round.arrived + round.lost > 0 {
            self.adapt(&round, past_s, sent, self.empty_s(srtt));
        }
        true
    }

    fn adapt(&mut self, round: &Round, past_s: f64, sent: f64, empty_s: f64) {
        self.delays.on_round(round.least_queue_s, self.delivery);
        let seen = self.judge(round, past_s, sent, empty_s);
        self.is_congested = seen.is_loss;
        self.signal |= seen.is_loss;
        let drained_s = past_s * (1.0 - sent / seen.delivery);
        let queue_s = seen.is_long.then_some(seen.queue);
        self.delays.doubt_the_base(queue_s, drained_s);
        self.busy_since = self
            .busy_since
            .or(Some(round.since))
            .filter(|_| seen.is_busy);
        if self.is_starting {
            self.start(&seen);
        } else if seen.is_fed || seen.delivery > self.delivery {
            self.delivery += (seen.delivery - self.delivery) * 0.5;
        }
        if !self.is_starting {
            self.follow(&seen, past_s);
        }
    }

    /// Evaluates a round.
    fn judge(&mut self, round: &Round, past_s: f64, sent: f64, empty_s: f64) -> Seen {
        let delivery = round.arrived as f64 / round.took_s(self.jitter_s(), past_s);
        let sent_least = sent.min(std::mem::replace(&mut self.sent_before, sent));
        let (queue, target) = (round.least_queue_s, self.target_s());
        let is_busy = sent > BUSY * self.rate;
        let is_much = round.arrived > MANY_OCTETS;
        // A queue after little was sent is jitter, or caused by others, unless the octets in flight
        // explain half of it.
        let explained = delivery * (empty_s + queue / 2.0);
        let is_own = self.delays.flight_then() > explained.max(BURST);
        let is_long = queue.is_finite() && queue > target && (is_busy || is_much || is_own);
        let loss = round.loss();
        let is_loss =
            round.losses >= LOSSES_LEAST && loss > UNUSUAL * self.usual_loss + UNUSUAL_SHARE;
        // A round of few packets hardly measures a small share.
        let part = (round.arrived + round.lost) as f64 / USUAL_OCTETS;
        self.usual_loss += (loss - self.usual_loss) * if is_loss { 0.25 } else { part.min(0.125) };
        Seen {
            delivery,
            queue,
            target,
            is_busy,
            is_much,
            // Packets sent in a round arrive in the next.
            is_fed: is_long || sent_least > BUSY * self.rate,
            is_long,
            is_loss,
            keeps_up: delivery > (KEEPS_UP - self.jitter_s() / past_s) * sent_least,
            full: if is_much && delivery < KEEPS_UP_AT_START * sent_least {
                round.arrived
            } else {
                0
            },
        }
    }

    /// Adapts the rate to the delivery after the start.
    fn follow(&mut self, seen: &Seen, past_s: f64) {
        let is_short =
            seen.is_busy && seen.keeps_up && seen.queue < SHORT * seen.target && !seen.is_loss;
        self.short = match (is_short, seen.is_long || seen.is_loss) {
            (true, _) => self.short + 1,
            // The cause may be jitter alone.
            (false, false) => self.short / 2,
            (false, true) => 0,
        };
        self.careful = if seen.is_loss {
            CAREFUL
        } else {
            self.careful.saturating_sub(1)
        };
        let most = if seen.is_loss {
            BACK
        } else if self.careful > 0 {
            GAIN_AFTER_LOSS
        } else {
            let doubled = f64::from(1_u32 << self.short.saturating_sub(1).min(8));
            (1.0 + (GAIN_FIRST - 1.0) * doubled).min(GAIN_MOST)
        };
        let wanted = if is_short {
            most
        } else if seen.queue.is_finite() {
            1.0 + GAIN * (seen.target - seen.queue) / past_s
        } else {
            1.0
        };
        let gain = wanted.clamp(GAIN_LEAST, most);
        let rate = self.delivery * gain;
        if seen.is_busy && (seen.is_long || seen.is_loss || !seen.keeps_up) {
            self.rate = rate;
        } else if seen.is_busy {
            // More could have been sent.
            self.rate = self.rate.max(rate);
        } else if gain < 1.0 && (seen.is_long || seen.is_much && !seen.keeps_up) {
            self.rate = self.rate.min(rate);
        }
        let most = (HEADROOM * self.delivery).clamp(INITIAL, MOST);
        self.rate = self.rate.clamp(LEAST, most).min(self.limit);
    }

    /// Handles a round of the start, which ends when more sending does not increase the delivery.
    fn start(&mut self, seen: &Seen) {
        if seen.is_busy || seen.is_long {
            let grows = seen.delivery > GROWS * self.delivery;
            self.flat = if grows { 0 } else { self.flat + 1 };
        }
        // A burst of few packets at the end of a round looks like a full path, but not twice.
        self.full = if seen.full > 0 {
            self.full + seen.full
        } else {
            0
        };
        let is_full = self.full > FULL_OCTETS;
        let is_over = seen.is_long && !seen.keeps_up || seen.is_loss || is_full;
        if is_over || self.flat >= FLAT {
            self.is_starting = false;
            self.delivery = if seen.is_fed {
                seen.delivery
            } else {
                self.delivery.max(seen.delivery)
            };
        } else {
            self.delivery = self.delivery.max(seen.delivery);
        }
    }
}
