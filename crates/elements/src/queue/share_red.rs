//! Share-weighted RED: every connection's drop probability grows with its share of what arrives.
//!
//! A variant of our own of the dynamic preferential dropping of Akiyama, Kozu and Yamaguchi. Theirs chooses one connection
//! at a time and multiplies its probability by a constant; with two connections that are nearly equal, or with many, most of
//! those that have too much go free. Here the history of arrivals weighs every connection: RED's probability is
//! multiplied by
//!
//! ```text
//! (share · n · load)^exponent
//! ```
//!
//! where `share` is the connection's part of the newest records, `n` the number of connections that take part, and `load` what
//! arrives as a share of what the link can send, 1 at most: a connection with its fair part of the link is treated
//! as by RED, one with twice that sixteen times as harshly. A new connection, with few records yet, is spared.
//!
//! In the steady state of senders whose rate goes with `p^-a`, rates that plain RED lets differ by a factor x
//! differ by `x^(1/(1 + a·exponent))`: by its cube root for Reno's `a = 1/2` and an exponent of 4. It takes no table of connections:
//! memory and time go with the length of the history.
//!
//! Who takes part: connections with a sixteenth of the heaviest's records at least, so that many short transfers
//! do not make a long one look heavy.
//!
//! # Differs from Linux
//! - Linux has no such queue.
//!
//! # Not implemented
//! - Weights of connections.

use anabranch_core::{
    math::powf,
    registry::{Meta, Source},
    units::{Bytes, Instant, Rate, text::Limit},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{
    Contradiction, Init, Item, QueueContext, QueueDiscipline, QueueParams,
    drop_tail::DropTail,
    red::{Early, Factor, red_params},
};
use crate::heavy::{Count, HeavyFlows, history};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "share-red",
    title: "Share-weighted RED",
    summary: "RED that drops the more of a connection's packets the larger its share of the arrivals is; constant memory, no queue per flow.",
    sources: &[
        Source {
            id: "Akiyama, Kozu and Yamaguchi, Fairness Improvement among Modern TCPs with Packet Dropping",
            items: &["§4.2"],
        },
        Source {
            id: "Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993",
            items: &["§4", "§7"],
        },
    ],
};

/// How steeply the probability rises with the share.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Exponent(f64);

impl Exponent {
    /// The largest that can be written.
    pub const MAX: f64 = 16.0;

    /// # Panics
    /// If `value` is not from 0 to [`Self::MAX`]; in a `const` this is a compile error.
    #[must_use]
    pub const fn new(value: f64) -> Self {
        assert!(value >= 0.0 && value <= Self::MAX, "from 0 to 16");
        Self(value)
    }
    /// The number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Exponent {
    type Error = String;
    fn try_from(value: f64) -> Result<Self, String> {
        if (0.0..=Self::MAX).contains(&value) {
            Ok(Self(value))
        } else {
            Err(format!(
                "{value} is out of range; expected a bare number from 0 to {}",
                Self::MAX
            ))
        }
    }
}

impl From<Exponent> for f64 {
    fn from(value: Exponent) -> Self {
        value.0
    }
}

impl JsonSchema for Exponent {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Exponent".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": Self::MAX })
    }
}

red_params! {
    /// Parameters of share-weighted RED: those of RED, and its own.
    pub struct Params {
        /// How steeply the probability rises with a connection's share; 0 is plain RED.
        pub exponent: Exponent = Exponent::new(4.0),
        /// How steeply the probability falls where less arrives than the link can send.
        pub load_exponent: Exponent = Exponent::new(2.0),
        /// Every so many arriving packets one is recorded, in packets.
        pub record_interval: Count<1_000_000> = Count::new(2),
        /// Every so many arriving packets the shares are worked out anew, in packets.
        pub statistics_interval: Count<1_000_000> = Count::new(100),
        /// How many records are kept.
        pub history_length: Count<1_000_000> = Count::new(4_000),
    }
}

impl QueueParams for Params {
    fn needs_bdp(&self) -> bool {
        self.common().in_bdp().is_some()
    }
    fn in_bdp(&self) -> Option<&'static [&'static str]> {
        self.common().in_bdp()
    }
    fn set_bdp(&mut self, bdp: Bytes) {
        self.put_bdp(bdp);
    }
    fn limit(&self) -> Limit {
        self.limit
    }
    fn check(&self) -> Result<(), Contradiction> {
        self.common().check()
    }
}

/// What arrives, as a share of what the link can send.
#[derive(Debug)]
struct Load {
    rate: Option<Rate>,
    /// Weight of one packet in the mean.
    per_packet: f64,
    interval: u32,
    packets: u32,
    bytes: u64,
    since: Instant,
    mean: f64,
}

impl Load {
    fn on_packet(&mut self, now: Instant, size: u32) {
        self.packets += 1;
        self.bytes += u64::from(size);
        if self.packets == self.interval {
            let sample = match self.rate {
                Some(rate) if now > self.since => {
                    let could = rate.bits_per_s() as f64 * (now - self.since).as_secs_f64();
                    (self.bytes as f64 * 8.0 / could).min(2.0)
                }
                _ => 1.0,
            };
            let weight = (f64::from(self.packets) * self.per_packet).min(1.0);
            self.mean += weight * (sample - self.mean);
            (self.packets, self.bytes, self.since) = (0, 0, now);
        }
    }
}

/// A queue of share-weighted RED.
#[derive(Debug)]
pub struct ShareRed {
    early: Early,
    store: DropTail,
    history: history::History,
    load: Load,
    exponent: f64,
    load_exponent: f64,
}

impl ShareRed {
    /// An empty queue.
    #[must_use]
    pub fn new(params: &Params, init: &Init<'_>) -> Self {
        let common = params.common();
        let span = f64::from(params.record_interval.get()) * f64::from(params.history_length.get());
        Self {
            early: Early::new(&common, init),
            store: common.store(init),
            history: history::History::new(&history::Params {
                record_interval: params.record_interval,
                statistics_interval: params.statistics_interval,
                history_length: params.history_length,
            }),
            load: Load {
                rate: init.rate,
                per_packet: 1.0 / span,
                interval: params.statistics_interval.get(),
                packets: 0,
                bytes: 0,
                since: Instant::START,
                mean: 0.0,
            },
            exponent: params.exponent.get(),
            load_exponent: params.load_exponent.get(),
        }
    }
    /// The average length, in packets or in bytes as the thresholds are.
    #[must_use]
    pub fn average(&self) -> f64 {
        self.early.average()
    }

    #[inline]
    fn admit(&mut self, item: &mut Item, cx: &mut QueueContext<'_>) -> bool {
        self.history.on_packet(item.connection, item.size);
        self.load.on_packet(cx.now, item.size);
        let part = self.history.part(item.connection) * self.history.taking_part() as f64;
        let factor = Factor {
            plain: powf(part, self.exponent) * powf(self.load.mean.min(1.0), self.load_exponent),
            ..Factor::NONE
        };
        self.early.admit(item, &self.store, factor, cx)
    }
}

impl QueueDiscipline for ShareRed {
    #[inline]
    fn enqueue(&mut self, mut item: Item, cx: &mut QueueContext<'_>) {
        if self.admit(&mut item, cx) {
            self.store.enqueue(item, cx);
        }
    }
    #[inline]
    fn pass(&mut self, item: &mut Item, cx: &mut QueueContext<'_>) -> bool {
        self.admit(item, cx)
    }
    #[inline]
    fn dequeue(&mut self, cx: &mut QueueContext<'_>) -> Option<Item> {
        self.store.dequeue(cx)
    }
    fn ran_out(&mut self, cx: &mut QueueContext<'_>) {
        self.early.ran_out(cx.now);
    }
    #[inline]
    fn len(&self) -> usize {
        self.store.len()
    }
    fn bytes(&self) -> u64 {
        self.store.bytes()
    }
    fn set_limit(&mut self, limit: Limit) -> bool {
        self.store.set_limit(limit)
    }
    fn set_rate(&mut self, rate: Option<Rate>) {
        self.early.set_rate(rate);
        self.load.rate = rate;
    }
}
