//! Share-weighted RED: a connection's drop probability grows with its share of the arrivals.
//!
//! A variant, specific to this project, of the dynamic preferential dropping of Akiyama, Kozu and
//! Yamaguchi. Their algorithm chooses one connection at a time and multiplies its probability by a
//! constant. With two nearly equal connections, or with many, most connections above their share
//! are then not limited. Here the history of arrivals weighs every connection. Let
//! `part = share · n`, where `share` is the connection's part of the newest records and `n` the
//! number of active connections. RED's probability `p` is multiplied by
//!
//! ```text
//! part^e · load^load_exponent
//!
//! e = sparing_exponent                                                       where part < 1
//! e = exponent + (steep_exponent - exponent) · min(1, p / steep_at)          elsewhere
//! ```
//!
//! and `load` is the arrival rate divided by the link's rate, at most 1.
//!
//! # Why
//! In the steady state of senders whose rate is proportional to `p^-a`, rates that differ by a
//! factor x under plain RED differ by `x^(1/(1 + a·e))`, so a large `e` makes them equal. But it
//! should not be large for all connections:
//! - A loss costs a sender whose window grows slowly (many seconds at 100 ms) more than a sender
//!   whose window grows fast. A connection below its equal part should have no loss:
//!   `sparing_exponent` is large.
//! - A connection slightly above its equal part should slow down once, not stop. While the queue is
//!   short, `exponent` is small, and utilization stays as high as under RED.
//! - A connection that does not respond to loss fills the queue and thus raises `p`. The exponent
//!   then rises to `steep_exponent`, until most of its traffic above the equal part is dropped.
//! - If senders fill the link only in part, bursts determine the average, and drops help no
//!   connection: hence `load`.
//! - If two senders each lose a packet once in several seconds, chance alone makes them unequal.
//!   With `spacing = "summed"`, the default here, each packet adds its own probability and drops
//!   come at nearly equal sums. The sum restarts whenever the average falls below `min_threshold`.
//!
//! No table of connections is needed: memory and time depend on the length of the history. A new
//! connection has few records yet and is spared. A connection is active if it has at least a
//! sixteenth of the records of the heaviest, so that many short transfers do not make a long one
//! look heavy.
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
    summary: "RED whose drop probability for a connection grows with its share of the arrivals; constant memory, no \
              queue per flow.",
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
    /// Parameters of share-weighted RED: the parameters of RED, and the following.
    pub struct Params {
        /// Steepness with which the probability rises with the share of a connection above its
        /// equal share, on a short queue; 0 treats it as RED does.
        pub exponent: Exponent = Exponent::new(1.0),
        /// The exponent when RED's own probability has reached `steep_at`; in between the exponent
        /// rises linearly.
        pub steep_exponent: Exponent = Exponent::new(8.0),
        /// RED's own probability from which on `steep_exponent` applies: above 0, at most 1.
        pub steep_at: Probability = Probability::new(0.002),
        /// Steepness with which the probability falls with the share of a connection below its
        /// equal share; 0 treats it as RED does.
        pub sparing_exponent: Exponent = Exponent::new(16.0),
        /// Steepness with which the probability falls if less arrives than the link can send.
        pub load_exponent: Exponent = Exponent::new(2.0),
        /// One packet in this number of arriving packets is recorded.
        pub record_interval: Count<1_000_000> = Count::new(3),
        /// Number of arriving packets between two computations of the shares.
        pub statistics_interval: Count<1_000_000> = Count::new(100),
        /// Number of records.
        pub history_length: Count<1_000_000> = Count::new(4_000),
        /// Number of arriving packets over which the load is averaged.
        pub load_memory: Count<1_000_000> = Count::new(8_000),
    }
    spacing: Summed
}

impl RedParams for Params {}

/// Arrival rate as a share of the link's rate.
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

/// Weighs packets by their connection's share.
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
    /// Exponent for a connection with `part` times an equal share, if RED's own probability is
    /// `plain`.
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
        // No packet is dropped.
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
    /// Creates an empty queue.
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
