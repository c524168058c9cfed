//! DualPI2: coupled queues for L4S and Classic traffic (RFC 9332, appendix A).
//!
//! Packets with ECT(1) or CE join the L queue, all others the C queue. A PI controller updates a
//! base probability p′ every `update_interval`. Classic packets are dropped, or marked if they are
//! ECN-capable, with p_C = p′². L4S packets are marked with the larger of p_CL = `coupling` × p′
//! and the probability given by the ramp of the L queue's own delay. A Classic window is
//! proportional to the inverse root of its probability and an L4S window to the inverse of its
//! probability. Flows of both kinds thus share the rate, while only Classic packets wait for
//! `target`.
//!
//! In overload p_CL reaches 1. L4S packets are then also dropped with p_C, and ECN-capable Classic
//! packets are dropped instead of marked (appendix A.2).
//!
//! # Differs from the RFC
//! - No timer runs between calls: a call first makes up for the updates that are due, with the
//!   delay that the head of each queue had at their times. The result is the same.
//! - The weighted scheduler counts bytes. The RFC leaves the scheduler open (§4.2.2).
//! - `derandomize = false` draws a random number for each decision; the RFC's `recur` adds
//!   probabilities up.
//!
//! # Differs from Linux
//! - `tc-dualpi2(8)` rounds the controller's constants to 0.16 Hz, 3.2 Hz and 16 ms and marks at a
//!   step of 1 ms. Here the defaults are the RFC's. `l4s_range = "0 ms"` and
//!   `l4s_threshold = "1 ms"` give the step.
//! - Drops happen at dequeue (`drop_dequeue`). Not compared with Linux's results.
//!
//! # Not implemented
//! - Classification by DSCP, flow or address (§2.3), queue protection (RFC 9332 §4.2.3), the Curvy
//!   RED variant (appendix B).

use anabranch_core::{
    registry::{Meta, Source},
    units::{Duration, Fraction, Instant, text::Limit},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Init, Item, QueueContext, QueueDiscipline, QueueParams,
    bounded::{BurstTime, ControlTime, Coupling, Hertz},
    fifos::Line,
};
use anabranch_core::packet::Ecn;

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "dualpi2",
    title: "DualPI2",
    summary: "Two coupled queues: L4S traffic (ECT(1)) hardly waits, Classic traffic waits for `target`, and flows of both \
              kinds get the same rate.",
    sources: &[
        Source {
            id: "RFC 9332",
            items: &["§2", "§4.2.2", "appendix A"],
        },
        Source {
            id: "De Schepper et al., PI2 (CoNEXT 2016)",
            items: &["§4"],
        },
    ],
};

/// Choice of the next queue if packets wait in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Scheduler {
    /// The L queue, except for `classic_share` of the bytes (a weighted round robin, RFC 9332
    /// §4.2.2).
    #[default]
    Weighted,
    /// The queue whose head has waited longer, with `time_shift` added for the L queue
    /// (time-shifted FIFO).
    TimeShifted,
}

/// Parameters of DualPI2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Limit of waiting packets in both queues, without the packet in transmission: packets, bytes
    /// or bandwidth-delay products (tc-dualpi2(8): 10000 packets; RFC 9332 appendix A.1: 250 ms at
    /// the largest rate).
    pub limit: Limit,
    /// Target delay of the C queue (RFC 9332 appendix A.1: 15 ms).
    pub target: ControlTime,
    /// Interval between updates of p′ (`Tupdate` of RFC 9332 appendix A.1: the smaller of the
    /// target and a third of the largest round-trip time).
    pub update_interval: ControlTime,
    /// Weight of the difference between delay and target, in hertz (RFC 9332 appendix A.1: 0.1
    /// `Tupdate` / `RTT_max`², 0.15 for 100 ms).
    pub alpha: Hertz,
    /// Weight of a change of the delay, in hertz (RFC 9332 appendix A.1: 0.3 / `RTT_max`, 3 for 100
    /// ms).
    pub beta: Hertz,
    /// `k`: ratio of the coupled L4S probability to the base probability (RFC 9332 §2.1: 2).
    pub coupling: Coupling,
    /// Delay of the L queue from which its own ramp marks (`minTh` of RFC 9332 appendix A.1: 800
    /// µs). The ramp never marks a queue of one packet.
    pub l4s_threshold: ControlTime,
    /// Range of delay over which the ramp rises to 1; `"0 ms"` makes the ramp a step (`range` of
    /// RFC 9332 appendix A.1: 400 µs).
    pub l4s_range: BurstTime,
    /// Choice of the next queue if packets wait in both: `"weighted"` or `"time-shifted"`.
    pub scheduler: Scheduler,
    /// With `"weighted"`: minimum share of the bytes for the C queue (tc-dualpi2(8)
    /// `classic_protection`: 0.1).
    pub classic_share: Fraction,
    /// With `"time-shifted"`: time added to the delay of the L queue (twice the target).
    pub time_shift: BurstTime,
    /// Adds probabilities up and acts whenever the sum reaches 1, instead of drawing (`recur` of
    /// RFC 9332 appendix A.1).
    pub derandomize: bool,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            limit: Limit::Packets(10_000),
            target: ControlTime::from_millis(15),
            update_interval: ControlTime::from_millis(15),
            alpha: Hertz::new(0.15),
            beta: Hertz::new(3.0),
            coupling: Coupling::new(2.0),
            l4s_threshold: ControlTime::from_micros(800),
            l4s_range: BurstTime::from_micros(400),
            scheduler: Scheduler::Weighted,
            classic_share: Fraction::new(0.1),
            time_shift: BurstTime::from_millis(30),
            derandomize: true,
        }
    }
}

impl QueueParams for Params {
    fn limit(&self) -> Limit {
        self.limit
    }
    fn limit_mut(&mut self) -> &mut Limit {
        &mut self.limit
    }
    fn decides_late(&self) -> bool {
        true
    }
    fn is_fifo(&self) -> bool {
        false
    }
    fn separates_ecn(&self) -> bool {
        true
    }
}

/// `Th_len` of RFC 9332 appendix A.1: the ramp marks nothing in an L queue of at most this many
/// packets.
const TH_LEN: usize = 1;

/// A sum of probabilities that acts whenever it reaches 1. `recur` of RFC 9332 appendix A.1 acts
/// above 1, and so lets the first packet of a certain event pass.
#[derive(Debug, Clone, Copy, Default)]
struct Recur {
    count: f64,
}

impl Recur {
    fn acts(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        let acts = self.count >= 1.0;
        if acts {
            self.count -= 1.0;
        }
        acts
    }
}

/// The PI controller of the base probability (RFC 9332 appendix A.1, `dualpi2_update`). Times are
/// in seconds.
#[derive(Debug, Clone, Copy)]
struct Controller {
    target: f64,
    update_interval: Duration,
    alpha: f64,
    beta: f64,
    next_update: Instant,
    prevq: f64,
    /// p′
    base: f64,
}

impl Controller {
    /// Makes up for the updates that are due by `now`; `oldest` is the earlier arrival time of the
    /// two heads.
    fn update_until(&mut self, now: Instant, oldest: Option<Instant>) {
        while now >= self.next_update {
            let delay = |at: Instant| {
                oldest.map_or(0.0, |arrived| at.saturating_since(arrived).as_secs_f64())
            };
            let curq = delay(self.next_update);
            let before = (self.base, self.prevq);
            let change = self.alpha * (curq - self.target) + self.beta * (curq - self.prevq);
            self.base = (self.base + change).clamp(0.0, 1.0);
            self.prevq = curq;
            self.next_update = self.next_update.saturating_add(self.update_interval);
            // Nothing leaves between calls: the delay only grows, or there is none.
            let saturated = oldest.is_some() && self.base >= 1.0 && curq >= self.target;
            if (saturated || before == (self.base, self.prevq)) && now >= self.next_update {
                let interval = self.update_interval.as_picos();
                let left = now.saturating_since(self.next_update).as_picos() / interval;
                let last = Duration::from_picos(interval).saturating_mul(left);
                self.prevq = delay(self.next_update.saturating_add(last));
                self.next_update = self
                    .next_update
                    .saturating_add(last)
                    .saturating_add(self.update_interval);
            }
        }
    }
}

/// A `DualPI2` queue.
#[derive(Debug)]
pub struct Dualpi2 {
    limit: Limit,
    coupling: f64,
    l4s_threshold: Duration,
    l4s_range: f64,
    scheduler: Scheduler,
    classic_share: f64,
    time_shift: Duration,
    derandomize: bool,
    controller: Controller,
    low_latency: Line,
    classic: Line,
    /// Bytes that the C queue may send before the L queue is served again.
    classic_credit: f64,
    recur_l: Recur,
    recur_c: Recur,
    /// Number of decisions, the index of the random draws.
    decisions: u64,
}

impl Dualpi2 {
    /// Creates empty queues.
    #[must_use]
    pub fn new(params: &Params, _init: &Init<'_>) -> Self {
        let update_interval = params.update_interval.get();
        Self {
            limit: params.limit,
            coupling: params.coupling.get(),
            l4s_threshold: params.l4s_threshold.get(),
            l4s_range: params.l4s_range.get().as_secs_f64(),
            scheduler: params.scheduler,
            classic_share: params.classic_share.get(),
            time_shift: params.time_shift.get(),
            derandomize: params.derandomize,
            controller: Controller {
                target: params.target.get().as_secs_f64(),
                update_interval,
                alpha: params.alpha.get(),
                beta: params.beta.get(),
                next_update: Instant::START + update_interval,
                prevq: 0.0,
                base: 0.0,
            },
            low_latency: Line::default(),
            classic: Line::default(),
            classic_credit: 0.0,
            recur_l: Recur::default(),
            recur_c: Recur::default(),
            decisions: 0,
        }
    }

    /// p′, as of the last call of the queue.
    #[must_use]
    pub fn base_probability(&self) -> f64 {
        self.controller.base
    }

    fn catch_up(&mut self, now: Instant) {
        if now >= self.controller.next_update {
            let heads = [&self.low_latency, &self.classic].map(Line::first);
            let oldest = heads.into_iter().flatten().map(|item| item.arrived).min();
            self.controller.update_until(now, oldest);
        }
    }

    fn has_room(&self, item: &Item, cx: &QueueContext<'_>) -> bool {
        let packets = QueueDiscipline::len(self) as u64 + u64::from(cx.held_packets);
        let bytes = QueueDiscipline::bytes(self) + cx.held_bytes + u64::from(item.size);
        self.limit.admits(packets, bytes)
    }

    /// Whether an event of this probability applies to a packet of the L or the C queue.
    fn happens(&mut self, low_latency: bool, likelihood: f64, cx: &QueueContext<'_>) -> bool {
        if !self.derandomize {
            self.decisions += 1;
            return cx.draw(self.decisions).chance(likelihood.clamp(0.0, 1.0));
        }
        let recur = if low_latency {
            &mut self.recur_l
        } else {
            &mut self.recur_c
        };
        recur.acts(likelihood)
    }

    /// Whether the L queue is served next.
    fn serves_low_latency(&self, now: Instant) -> bool {
        let (Some(low_latency), Some(classic)) = (self.low_latency.first(), self.classic.first())
        else {
            return self.low_latency.len() > 0;
        };
        match self.scheduler {
            Scheduler::Weighted => self.classic_credit <= 0.0,
            Scheduler::TimeShifted => {
                let waited = |item: &Item| now.saturating_since(item.arrived);
                waited(low_latency) + self.time_shift >= waited(classic)
            }
        }
    }

    /// Updates the weighted scheduler after a packet has left.
    fn charge(&mut self, low_latency: bool, size: u32) {
        if self.low_latency.len() == 0 || self.classic.len() == 0 {
            self.classic_credit = 0.0;
        } else if low_latency {
            self.classic_credit += self.classic_share * f64::from(size);
        } else {
            self.classic_credit -= (1.0 - self.classic_share) * f64::from(size);
        }
    }

    /// Marking probability from the L queue's own delay, for a packet that leaves it (`laqm` of
    /// RFC 9332 appendix A.1).
    fn native(&self, waited: Duration, packets: usize) -> f64 {
        if packets <= TH_LEN || waited <= self.l4s_threshold {
            return 0.0;
        }
        let above = waited.saturating_sub(self.l4s_threshold).as_secs_f64();
        if above >= self.l4s_range {
            1.0
        } else {
            above / self.l4s_range
        }
    }

    /// Takes the next packet of the L queue, unless overload drops it.
    fn take_low_latency(&mut self, cx: &mut QueueContext<'_>) -> Option<Item> {
        let packets = self.low_latency.len();
        let mut item = self.low_latency.pop()?;
        self.charge(true, item.size);
        let base = self.controller.base;
        let coupled = self.coupling * base;
        let marks = if coupled < 1.0 {
            let native = self.native(cx.now.saturating_since(item.arrived), packets);
            self.happens(true, native.max(coupled), cx)
        } else {
            // The C queue has a separate sum; these drops count for the L queue.
            if self.happens(true, base * base, cx) {
                cx.drop(item);
                return None;
            }
            true
        };
        if marks && item.ecn != Ecn::Ce {
            cx.mark(&mut item);
        }
        Some(item)
    }

    /// Takes the next packet of the C queue, unless it is dropped.
    fn take_classic(&mut self, cx: &mut QueueContext<'_>) -> Option<Item> {
        let mut item = self.classic.pop()?;
        self.charge(false, item.size);
        let base = self.controller.base;
        if self.happens(false, base * base, cx) {
            // p_C > p_Cmax = 1/k² is equivalent to p_CL > 1.
            let overload = self.coupling * base >= 1.0;
            if overload || !cx.mark(&mut item) {
                cx.drop(item);
                return None;
            }
        }
        Some(item)
    }
}

impl QueueDiscipline for Dualpi2 {
    fn enqueue(&mut self, item: Item, cx: &mut QueueContext<'_>) {
        self.catch_up(cx.now);
        if !self.has_room(&item, cx) {
            cx.drop(item);
        } else if matches!(item.ecn, Ecn::Ect1 | Ecn::Ce) {
            self.low_latency.push(item);
        } else {
            self.classic.push(item);
        }
    }

    fn dequeue(&mut self, cx: &mut QueueContext<'_>) -> Option<Item> {
        self.catch_up(cx.now);
        while !self.is_empty() {
            let item = if self.serves_low_latency(cx.now) {
                self.take_low_latency(cx)
            } else {
                self.take_classic(cx)
            };
            if item.is_some() {
                return item;
            }
        }
        None
    }

    #[inline]
    fn len(&self) -> usize {
        self.low_latency.len() + self.classic.len()
    }
    fn bytes(&self) -> u64 {
        self.low_latency.bytes() + self.classic.bytes()
    }
    fn set_limit(&mut self, limit: Limit) -> bool {
        self.limit = limit;
        true
    }
}
