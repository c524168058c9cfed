//! Share-weighted RED: every connection's drop probability grows with its share of what arrives.
//!
//! A variant of our own of the dynamic preferential dropping of Akiyama, Kozu and Yamaguchi. Theirs chooses one connection
//! at a time and multiplies its probability by a constant; with two connections that are nearly equal, or with many, most of
//! those that have too much go free. Here the history of arrivals weighs every connection. With
//! `part = share · n`, where `share` is the connection's part of the newest records and `n` the number of connections that
//! take part, RED's probability `p` is multiplied by
//!
//! ```text
//! part^e · load^load_exponent
//!
//! e = sparing_exponent                                                       where part < 1
//! e = exponent + (steep_exponent - exponent) · min(1, p / steep_at)          elsewhere
//! ```
//!
//! and `load` is what arrives as a share of what the link can send, 1 at most.
//!
//! # Why
//! In the steady state of senders whose rate goes with `p^-a`, rates that plain RED lets differ by a factor x
//! differ by `x^(1/(1 + a·e))`, so a large `e` makes them equal. But it should not be large for all:
//! - A loss costs a sender whose window grows slowly (many seconds at 100 ms) more than one that grows fast. Who has
//!   less than an equal part should have none: `sparing_exponent` is large.
//! - Who has a little more is to slow down once, not to be stopped: over a queue that is hardly there `exponent` is small, and
//!   the link stays as full as under RED.
//! - Who does not answer to loss fills the queue, and with it `p`: the exponent rises to `steep_exponent`, until most of
//!   what is above the equal part is dropped.
//! - Where senders fill the link in part only, bursts make the average, and dropping for them helps nobody: `load`.
//! - Chance alone makes two senders unequal where each is dropped once in several seconds. With `spacing = "summed"`, the
//!   default here, each packet adds its own probability and drops come at nearly equal sums; and the sum starts
//!   anew whenever the average falls below `min_threshold`.
//!
//! It takes no table of connections: memory and time go with the length of the history. A new connection, with few
//! records yet, is spared. Who takes part: connections with a sixteenth of the heaviest's records at least, so that many
//! short transfers do not make a long one look heavy.
//!
//! # Differs from Linux
//! - Linux has no such queue.
//!
//! # Not implemented
//! - Weights of connections.

use anabranch_core::{
    math::powf,
    parameters::Count,
    registry::{Meta, Source},
    units::{Instant, Rate},
};

use super::{
    Init, Item,
    bounded::Exponent,
    red::{Factor, Probability, RedParams, Weigh, Weighed, red_params},
};
use crate::heavy::{HeavyFlows, history};

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

red_params! {
    /// Parameters of share-weighted RED: those of RED, and its own.
    pub struct Params {
        /// How steeply the probability rises with the share of a connection that has more than an equal one, on a queue
        /// that is hardly there; 0 treats it as RED does.
        pub exponent: Exponent = Exponent::new(1.0),
        /// The same once RED's own probability has come to `steep_at`; in between the exponent rises in a line.
        pub steep_exponent: Exponent = Exponent::new(8.0),
        /// RED's own probability from which on `steep_exponent` holds: above 0, and 1 at most.
        pub steep_at: Probability = Probability::new(0.002),
        /// How steeply the probability falls with the share of a connection that has less than an equal one; 0 treats
        /// it as RED does.
        pub sparing_exponent: Exponent = Exponent::new(16.0),
        /// How steeply the probability falls where less arrives than the link can send.
        pub load_exponent: Exponent = Exponent::new(2.0),
        /// Every so many arriving packets one is recorded, in packets.
        pub record_interval: Count<1_000_000> = Count::new(3),
        /// Every so many arriving packets the shares are worked out anew, in packets.
        pub statistics_interval: Count<1_000_000> = Count::new(100),
        /// How many records are kept.
        pub history_length: Count<1_000_000> = Count::new(4_000),
        /// Over how many arriving packets the load is averaged, in packets.
        pub load_memory: Count<1_000_000> = Count::new(8_000),
    }
    spacing: Summed
}

impl RedParams for Params {}

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

/// Weighs by the share.
#[derive(Debug)]
pub struct ByShare {
    history: history::History,
    load: Load,
    exponent: f64,
    steep_exponent: f64,
    steep_at: f64,
    sparing_exponent: f64,
    load_exponent: f64,
}

impl ByShare {
    /// The exponent for a connection with `part` times an equal share, where RED's own probability is `plain`.
    fn exponent(&self, part: f64, plain: f64) -> f64 {
        if part < 1.0 {
            return self.sparing_exponent;
        }
        let way = (plain / self.steep_at).min(1.0);
        self.exponent + way * (self.steep_exponent - self.exponent)
    }
}

impl Weigh for ByShare {
    #[inline]
    fn factor(&mut self, item: &Item, plain: f64, now: Instant) -> Factor {
        self.history.on_packet(item.connection, item.size);
        self.load.on_packet(now, item.size);
        // Nobody is dropped.
        if plain <= 0.0 {
            return Factor::NONE;
        }
        let part = self.history.part(item.connection) * self.history.taking_part() as f64;
        let load = self.load.mean.min(1.0);
        Factor {
            plain: powf(part, self.exponent(part, plain)) * powf(load, self.load_exponent),
            ..Factor::NONE
        }
    }
    fn set_rate(&mut self, rate: Option<Rate>) {
        self.load.rate = rate;
    }
}

/// A queue of share-weighted RED.
pub type ShareRed = Weighed<ByShare>;

impl ShareRed {
    /// An empty queue.
    #[must_use]
    pub fn new(params: &Params, init: &Init<'_>) -> Self {
        let weigh = ByShare {
            history: history::History::new(&history::Params {
                record_interval: params.record_interval,
                statistics_interval: params.statistics_interval,
                history_length: params.history_length,
            }),
            load: Load {
                rate: init.rate,
                per_packet: 1.0 / f64::from(params.load_memory.get()),
                interval: params.statistics_interval.get(),
                packets: 0,
                bytes: 0,
                since: Instant::START,
                mean: 0.0,
            },
            exponent: params.exponent.get(),
            steep_exponent: params.steep_exponent.get(),
            steep_at: params.steep_at.get(),
            sparing_exponent: params.sparing_exponent.get(),
            load_exponent: params.load_exponent.get(),
        };
        Self::with(&params.common(), weigh, init)
    }
}
