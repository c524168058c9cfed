//! Space-Saving (Metwally, Agrawal and El Abbadi, ICDT 2005): a fixed number of counters. A
//! connection without a counter takes over the smallest, and its old count becomes the new
//! counter's possible error.
//!
//! With k counters of a stream of N bytes, every counter exceeds the true count by at most its
//! error, no error exceeds N ÷ k, and every connection with more than N ÷ k has a counter (§3,
//! lemmas 3 and 4, theorem 2). Memory is k counters, whatever the number of connections. A packet
//! costs a scan of the counters, which for a few counters is faster than the source's sorted
//! buckets.
//!
//! The source counts a stream as a whole. Here old packets fade: at each statistics all counters,
//! errors and the total are multiplied by one factor, so that a packet has half its weight after
//! `half_life` packets. The bounds hold for the faded stream. A counter below one byte is removed,
//! and its count is lost: less than a fortieth of the packets that filled it, which have at least
//! 40 bytes.
//!
//! The reported share is the counter minus its error, so it never exceeds the true share; the
//! source calls this the guaranteed count (§4). The connection with the largest is the heaviest.
//! Among equals the current heaviest stays, otherwise the connection with the older counter wins.
//!
//! # Differs from the source
//! - Packets are weighted by their bytes, and old packets fade.
//!
//! # Differs from Linux
//! - Linux has no such queue; `sch_hhf` detects heavy flows with a filter of hashed counters and a
//!   time limit.
//!
//! # Not implemented
//! - More active connections than counters.

use anabranch_core::{
    math,
    packet::ConnectionId,
    parameters::Count,
    registry::{Meta, Source},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::HeavyFlows;

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "space-saving",
    title: "Space-Saving",
    summary: "N counters find every connection with more than 1/N of the bytes, in constant memory.",
    sources: &[Source {
        id: "Metwally, Agrawal and El Abbadi, ICDT 2005",
        items: &["§3", "§4"],
    }],
};

/// Counters, and their fading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Number of counters: every connection with more than one part in this number of the bytes is
    /// found.
    pub counters: Count<1_024>,
    /// One packet in this number of arriving packets is counted; 1 counts all.
    pub record_interval: Count<1_000_000>,
    /// Number of arriving packets between two choices of the heaviest, at which the counters fade.
    pub statistics_interval: Count<1_000_000>,
    /// Number of arriving packets after which a packet has half its weight.
    pub half_life: Count<1_000_000_000>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            counters: Count::new(16),
            record_interval: Count::new(1),
            statistics_interval: Count::new(100),
            half_life: Count::new(1_000),
        }
    }
}

/// Counters below this many bytes are removed.
const LEAST: f64 = 1.0;

#[derive(Debug, Clone, Copy)]
struct Counter {
    bytes: f64,
    /// Bytes that may belong to other connections.
    error: f64,
}

impl Counter {
    fn guaranteed(self) -> f64 {
        self.bytes - self.error
    }
}

/// State of Space-Saving.
#[derive(Debug)]
pub struct SpaceSaving {
    capacity: usize,
    record_interval: u32,
    statistics_interval: u32,
    /// Factor of all counts at each statistics.
    fade: f64,
    until_record: u32,
    until_statistics: u32,
    /// Owners of the counters, oldest first. They are stored separately for fast scans.
    owners: Vec<ConnectionId>,
    counters: Vec<Counter>,
    total: f64,
    heaviest: Option<ConnectionId>,
}

impl SpaceSaving {
    /// Creates counters without counts.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        let capacity = params.counters.get() as usize;
        let half_lives =
            f64::from(params.statistics_interval.get()) / f64::from(params.half_life.get());
        Self {
            capacity,
            record_interval: params.record_interval.get(),
            statistics_interval: params.statistics_interval.get(),
            fade: math::exp(-half_lives * std::f64::consts::LN_2),
            until_record: params.record_interval.get(),
            until_statistics: params.statistics_interval.get(),
            owners: Vec::with_capacity(capacity),
            counters: Vec::with_capacity(capacity),
            total: 0.0,
            heaviest: None,
        }
    }

    fn counter(&self, connection: ConnectionId) -> Option<usize> {
        self.owners.iter().position(|&owner| owner == connection)
    }

    fn count(&mut self, connection: ConnectionId, bytes: f64) {
        self.total += bytes;
        if let Some(place) = self.counter(connection) {
            self.counters[place].bytes += bytes;
        } else if self.owners.len() < self.capacity {
            self.owners.push(connection);
            self.counters.push(Counter { bytes, error: 0.0 });
        } else {
            let least =
                |a: &(usize, &Counter), b: &(usize, &Counter)| a.1.bytes.total_cmp(&b.1.bytes);
            let (place, smallest) = self
                .counters
                .iter()
                .enumerate()
                .min_by(least)
                .expect("there is at least one counter");
            let error = smallest.bytes;
            self.owners[place] = connection;
            self.counters[place] = Counter {
                bytes: error + bytes,
                error,
            };
        }
    }

    fn take_statistics(&mut self) {
        let guaranteed = |place: usize| self.counters[place].guaranteed();
        let present = self.heaviest.and_then(|heavy| self.counter(heavy));
        let mut best = present;
        for place in 0..self.counters.len() {
            if best.is_none_or(|best| guaranteed(place) > guaranteed(best)) {
                best = Some(place);
            }
        }
        self.heaviest = best.map(|place| self.owners[place]);
        self.fade();
    }

    fn fade(&mut self) {
        self.total *= self.fade;
        for counter in &mut self.counters {
            counter.bytes *= self.fade;
            counter.error *= self.fade;
        }
        if self.counters.iter().any(|counter| counter.bytes < LEAST) {
            let mut stays = self.counters.iter().map(|counter| counter.bytes >= LEAST);
            self.owners.retain(|_| stays.next().unwrap_or(true));
            self.counters.retain(|counter| counter.bytes >= LEAST);
        }
    }
}

impl HeavyFlows for SpaceSaving {
    #[inline]
    fn on_packet(&mut self, connection: ConnectionId, size: u32) {
        self.until_record -= 1;
        if self.until_record == 0 {
            self.until_record = self.record_interval;
            self.count(connection, f64::from(size));
        }
        self.until_statistics -= 1;
        if self.until_statistics == 0 {
            self.until_statistics = self.statistics_interval;
            self.take_statistics();
        }
    }
    /// Guaranteed share; below the true share by at most one part in the number of counters.
    fn share(&self, connection: ConnectionId) -> f64 {
        match self.counter(connection) {
            Some(place) if self.total > 0.0 => self.counters[place].guaranteed() / self.total,
            _ => 0.0,
        }
    }
    /// Number of connections with a counter.
    fn active(&self) -> usize {
        self.owners.len()
    }
    #[inline]
    fn heaviest(&self) -> Option<ConnectionId> {
        self.heaviest
    }
    fn memory(&self) -> usize {
        size_of::<Self>()
            + self.owners.capacity() * size_of::<ConnectionId>()
            + self.counters.capacity() * size_of::<Counter>()
    }
}
