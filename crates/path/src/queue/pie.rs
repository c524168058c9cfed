//! PIE: proportional integral controller enhanced (RFC 8033).
//!
//! Arrivals are dropped at random. At every `update_interval` the probability changes by `alpha`
//! times the difference of the queue's delay from `target`, plus `beta` times the change of the
//! delay since the last update. The sum is scaled down while the probability is small (§4.2). The
//! probability decays while there is no congestion. For `max_burst` after a period without
//! congestion, no packet is dropped at random (§4.4).
//!
//! # Differs from the RFC
//! - No timer runs between calls: a call first makes up for the updates that are due, with the
//!   queue as it was then. The result is the same, because the queue does not change between calls.
//!   Updates fall on multiples of `update_interval` from the start of the run.
//! - With `delay = "timestamps"` an empty queue has no delay; in the RFC it keeps the delay of the
//!   last packet that left.
//! - §4.2's decay while the delay is below half the target follows appendix A, and so does the cap
//!   of §5.5.
//!
//! # Differs from Linux
//! - `tc-pie(8)` has integers for `alpha` and `beta`, and `bytemode`. It always spaces drops
//!   (§5.4), as `derandomize` does here.
//! - Linux updates by a timer in clock ticks: `tupdate` rounded up, plus one tick. 15 ms become 30
//!   ms at 100 Hz and 20 ms at 250 Hz. The first update comes half a second after setup (measured:
//!   `docs/validation/kernel-queues.md`).
//! - Linux does not decay the probability while the delay is small but not 0 (measured).
//!
//! # Not implemented
//! - PIE's inactive state while the queue is short (§5.3); probabilities by packet size.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Duration, Fraction, Instant, text::Limit},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Config, Init, Item, QueueContext, QueueDiscipline, QueueParams,
    bounded::{BurstTime, ControlTime, Hertz, PacketSize},
    fifos::Line,
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "pie",
    title: "PIE",
    summary: "Drops arrivals with a probability that a controller moves until the queue's delay is at `target`; the AQM of \
              cable modems.",
    sources: &[Source {
        id: "RFC 8033",
        items: &["§4", "§5.1", "§5.2", "§5.4", "§5.5", "appendix A"],
    }],
};

/// Estimate of the queue's delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Delay {
    /// Sojourn time of the last packet that left (RFC 8033 §4.3, appendix A).
    #[default]
    Timestamps,
    /// Backlog divided by the departure rate, measured while 16 KiB or more wait (RFC 8033 §5.2).
    Rate,
}

/// Parameters of PIE.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Limit of waiting packets, without the packet in transmission: packets, bytes or
    /// bandwidth-delay products (tc-pie(8): 1000 packets).
    pub limit: Limit,
    /// Target delay (`QDELAY_REF` of RFC 8033 §4.2: 15 ms).
    pub target: ControlTime,
    /// Interval between updates of the probability (`T_UPDATE` of RFC 8033 §4.2: 15 ms).
    pub update_interval: ControlTime,
    /// Weight of the difference between delay and target, in hertz (RFC 8033 §4.2: 0.125).
    pub alpha: Hertz,
    /// Weight of a change of the delay, in hertz (RFC 8033 §4.2: 1.25).
    pub beta: Hertz,
    /// Time after a period without congestion during which no packet is dropped at random
    /// (`MAX_BURST` of RFC 8033 §4.4: 150 ms).
    pub max_burst: BurstTime,
    /// No packet is dropped at random while at most two packets of this size wait (`MEAN_PKTSIZE`
    /// of RFC 8033 §4.1).
    pub mean_packet_size: PacketSize,
    /// Estimate of the queue's delay: `"timestamps"` or `"rate"` (RFC 8033 §4.3, §5.2).
    pub delay: Delay,
    /// Spaces drops: none until the probabilities add up to 0.85, and one at 8.5 at the latest
    /// (RFC 8033 §5.4).
    pub derandomize: bool,
    /// Marks packets of ECN-capable transports instead of dropping them (RFC 8033 §5.1; tc-pie(8):
    /// false).
    pub ecn: bool,
    /// Probability above which ECN-capable packets are dropped nevertheless (RFC 8033 §5.1: 0.1).
    pub mark_ecnth: Fraction,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            limit: Limit::Packets(1_000),
            target: ControlTime::from_millis(15),
            update_interval: ControlTime::from_millis(15),
            alpha: Hertz::new(0.125),
            beta: Hertz::new(1.25),
            max_burst: BurstTime::from_millis(150),
            mean_packet_size: PacketSize::new(1_500),
            delay: Delay::Timestamps,
            derandomize: false,
            ecn: false,
            mark_ecnth: Fraction::new(0.1),
        }
    }
}

impl QueueParams for Params {
    const CHANGEABLE: &'static [&'static str] = &[
        "limit",
        "target",
        "update_interval",
        "alpha",
        "beta",
        "max_burst",
        "mean_packet_size",
        "derandomize",
        "ecn",
        "mark_ecnth",
    ];
    fn limit(&self) -> Limit {
        self.limit
    }
    fn limit_mut(&mut self) -> &mut Limit {
        &mut self.limit
    }
    fn decides_late(&self) -> bool {
        true
    }
}

/// `DQ_THRESHOLD` of RFC 8033 §5.2, in bytes.
const DQ_THRESHOLD: u64 = 1 << 14;
/// The weight of a new measurement (RFC 8033 §5.2): `DQ_THRESHOLD` ÷ 2^16.
const WEIGHT: f64 = 0.25;
/// Factor of the decay (RFC 8033 §4.2).
const DECAY: f64 = 0.98;
/// Maximum increase of one update while the probability is at least `CAPPED_FROM` (RFC 8033 §5.5).
const CAP: f64 = 0.02;
const CAPPED_FROM: f64 = 0.1;
/// Probability below which no packet is dropped while the delay is below half the target (RFC 8033
/// §4.1).
const SAFE: f64 = 0.2;
/// Bounds of the sum of probabilities since the last drop (RFC 8033 §5.4).
const PROB_LOW: f64 = 0.85;
const PROB_HIGH: f64 = 8.5;
/// Divisors of a change while the probability is below a bound (RFC 8033 §4.2).
const TUNING: [(f64, f64); 6] = [
    (0.000_001, 2_048.0),
    (0.000_01, 512.0),
    (0.000_1, 128.0),
    (0.001, 32.0),
    (0.01, 8.0),
    (0.1, 2.0),
];

/// Departure rate, as the time that `DQ_THRESHOLD` bytes take (RFC 8033 §5.2).
#[derive(Debug, Clone, Copy, Default)]
struct DepartureRate {
    /// Seconds; 0 before the first measurement.
    avg_dq_time: f64,
    /// Current measurement: its start, and the bytes that have left since.
    under_way: Option<(Instant, u64)>,
}

impl DepartureRate {
    /// Counts a packet that has left; `waiting` bytes are still queued.
    fn departed(&mut self, now: Instant, size: u32, waiting: u64) {
        if let Some((since, count)) = &mut self.under_way {
            *count += u64::from(size);
            if *count >= DQ_THRESHOLD {
                let dq_time = now.saturating_since(*since).as_secs_f64();
                self.avg_dq_time = if self.avg_dq_time == 0.0 {
                    dq_time
                } else {
                    WEIGHT * dq_time + (1.0 - WEIGHT) * self.avg_dq_time
                };
                self.under_way = None;
            }
        }
        if self.under_way.is_none() && waiting >= DQ_THRESHOLD {
            self.under_way = Some((now, 0));
        }
    }
}

/// A PIE queue. Times are in seconds.
#[derive(Debug)]
pub struct Pie {
    limit: Limit,
    target: f64,
    update_interval: Duration,
    alpha: f64,
    beta: f64,
    max_burst: Duration,
    /// Bytes.
    short: u64,
    delay: Delay,
    derandomize: bool,
    ecn: bool,
    mark_ecnth: f64,
    line: Line,
    /// Number of arrivals, the index of the random draws.
    arrivals: u64,
    next_update: Instant,
    drop_prob: f64,
    accu_prob: f64,
    qdelay_old: f64,
    burst_allowance: Duration,
    /// Sojourn time of the last packet that left.
    sojourn: f64,
    departures: DepartureRate,
}

impl Pie {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(params: &Params, _init: &Init<'_>) -> Self {
        let update_interval = params.update_interval.get();
        Self {
            limit: params.limit,
            target: params.target.get().as_secs_f64(),
            update_interval,
            alpha: params.alpha.get(),
            beta: params.beta.get(),
            max_burst: params.max_burst.get(),
            short: 2 * params.mean_packet_size.get().get(),
            delay: params.delay,
            derandomize: params.derandomize,
            ecn: params.ecn,
            mark_ecnth: params.mark_ecnth.get(),
            line: Line::default(),
            arrivals: 0,
            next_update: Instant::START + update_interval,
            drop_prob: 0.0,
            accu_prob: 0.0,
            qdelay_old: 0.0,
            burst_allowance: params.max_burst.get(),
            sojourn: 0.0,
            departures: DepartureRate::default(),
        }
    }

    /// Probability that an arrival is dropped or marked, as of the last call of the queue.
    #[must_use]
    pub fn drop_prob(&self) -> f64 {
        self.drop_prob
    }

    /// Current delay of the queue, in seconds.
    fn current_qdelay(&self) -> f64 {
        match self.delay {
            _ if self.line.len() == 0 => 0.0,
            Delay::Timestamps => self.sojourn,
            Delay::Rate => {
                self.line.bytes() as f64 * self.departures.avg_dq_time / DQ_THRESHOLD as f64
            }
        }
    }

    /// Makes up for the updates that are due.
    #[inline]
    fn catch_up(&mut self, now: Instant) {
        if now >= self.next_update {
            self.update_until(now);
        }
    }

    fn update_until(&mut self, now: Instant) {
        let current_qdelay = self.current_qdelay();
        while now >= self.next_update {
            let before = (self.drop_prob, self.qdelay_old, self.burst_allowance);
            self.update(current_qdelay);
            self.next_update = self.next_update.saturating_add(self.update_interval);
            // The queue does not change: if an update has no effect, further updates have none.
            if before == (self.drop_prob, self.qdelay_old, self.burst_allowance) {
                let interval = self.update_interval.as_picos();
                let left = now.saturating_since(self.next_update).as_picos() / interval;
                if now >= self.next_update {
                    let skipped = Duration::from_picos(interval).saturating_mul(left + 1);
                    self.next_update = self.next_update.saturating_add(skipped);
                }
                return;
            }
        }
    }

    /// RFC 8033 §4.2.
    fn update(&mut self, current_qdelay: f64) {
        let mut p = self.alpha * (current_qdelay - self.target)
            + self.beta * (current_qdelay - self.qdelay_old);
        if let Some((_, scale)) = TUNING.iter().find(|(bound, _)| self.drop_prob < *bound) {
            p /= scale;
        }
        if self.drop_prob >= CAPPED_FROM {
            p = p.min(CAP);
        }
        self.drop_prob += p;
        if current_qdelay < self.target / 2.0 && self.qdelay_old < self.target / 2.0 {
            self.drop_prob *= DECAY;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.burst_allowance = self.burst_allowance.saturating_sub(self.update_interval);
        self.qdelay_old = current_qdelay;
    }

    /// Whether an arrival is dropped or marked at random (RFC 8033 §4.1, §5.4).
    fn drop_early(&mut self, index: u64, cx: &QueueContext<'_>) -> bool {
        let is_low = self.qdelay_old < self.target / 2.0 && self.drop_prob < SAFE;
        if is_low || self.line.bytes() <= self.short {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
            return false;
        }
        if !self.derandomize {
            return cx.draw(index).chance(self.drop_prob);
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < PROB_LOW {
            return false;
        }
        let drops = self.accu_prob >= PROB_HIGH || cx.draw(index).chance(self.drop_prob);
        if drops {
            self.accu_prob = 0.0;
        }
        drops
    }

    /// Returns whether an arrival joins the queue, possibly marked; otherwise it has been dropped.
    #[inline]
    fn admits(&mut self, item: &mut Item, cx: &mut QueueContext<'_>) -> bool {
        self.catch_up(cx.now);
        let index = self.arrivals;
        self.arrivals += 1;
        if !self.line.has_room(self.limit, item, cx) {
            cx.drop(*item);
            return false;
        }
        if self.burst_allowance.is_zero() && self.drop_early(index, cx) {
            let marked = self.ecn && self.drop_prob <= self.mark_ecnth && cx.mark(item);
            if !marked {
                cx.drop(*item);
                return false;
            }
        }
        let half = self.target / 2.0;
        if self.drop_prob == 0.0 && self.qdelay_old < half && self.current_qdelay() < half {
            self.burst_allowance = self.max_burst;
        }
        true
    }

    #[inline]
    fn departed(&mut self, now: Instant, item: &Item) {
        match self.delay {
            Delay::Timestamps => {
                self.sojourn = now.saturating_since(item.arrived).as_secs_f64();
            }
            Delay::Rate => self.departures.departed(now, item.size, self.line.bytes()),
        }
    }
}

impl QueueDiscipline for Pie {
    #[inline]
    fn enqueue(&mut self, mut item: Item, cx: &mut QueueContext<'_>) {
        if self.admits(&mut item, cx) {
            self.line.push(item);
        }
    }
    #[inline]
    fn dequeue(&mut self, cx: &mut QueueContext<'_>) -> Option<Item> {
        self.catch_up(cx.now);
        let item = self.line.pop()?;
        self.departed(cx.now, &item);
        Some(item)
    }
    #[inline]
    fn pass(&mut self, item: &mut Item, cx: &mut QueueContext<'_>) -> bool {
        let passes = self.admits(item, cx);
        if passes {
            self.departed(cx.now, item);
        }
        passes
    }
    #[inline]
    fn len(&self) -> usize {
        self.line.len()
    }
    fn bytes(&self) -> u64 {
        self.line.bytes()
    }
    fn set_limit(&mut self, limit: Limit) -> bool {
        self.limit = limit;
        true
    }
    fn change(&mut self, to: &Config) {
        if let Config::Pie(params) = to {
            self.limit = params.limit;
            self.target = params.target.get().as_secs_f64();
            self.update_interval = params.update_interval.get();
            self.alpha = params.alpha.get();
            self.beta = params.beta.get();
            self.max_burst = params.max_burst.get();
            self.short = 2 * params.mean_packet_size.get().get();
            self.derandomize = params.derandomize;
            self.ecn = params.ecn;
            self.mark_ecnth = params.mark_ecnth.get();
        }
    }
}
