//! Space-Saving (Metwally, Agrawal and El Abbadi, ICDT 2005): a fixed number of counters, and a
//! connection that has none takes over the smallest, with what that had counted as its possible error.
//!
//! With k counters of a stream of N bytes every counter is too large by its error at most, no error exceeds
//! N ÷ k, and whoever sent more than N ÷ k has a counter (§3, lemmas 3 and 4, theorem 2). Memory is k
//! counters however many connections there are. A packet costs a scan of the counters, which for the
//! few that are needed is quicker than the source's sorted buckets.
//!
//! The source counts a stream as a whole. Here the past fades: at each statistics all counters, errors and the total
//! are multiplied by one factor, so that after `half_life` packets a packet counts for half. The bounds hold
//! for the faded stream. A counter below one byte is given up, and what it had
//! counted is lost: less than a fortieth of the packets that filled it, which have 40 bytes at least.
//!
//! The share told is the counter less its error, so never too much; the source calls that the guaranteed
//! count (§4). The heaviest is who has the largest; of equals the one that has been the heaviest so
//! far, else the one whose counter is older.
//!
//! # Differs from the source
//! - Packets weigh by their bytes, and the past fades.
//!
//! # Differs from Linux
//! - Linux has no such queue; `sch_hhf` finds heavy flows by a filter of hashed counters and a time limit.
//!
//! # Not implemented
//! - Telling more connections active than there are counters.

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
    summary: "A fixed number of counters finds every connection with more than one part in so many of the bytes, in constant memory.",
    sources: &[Source {
        id: "Metwally, Agrawal and El Abbadi, ICDT 2005",
        items: &["§3", "§4"],
    }],
};

/// Counters, and how they fade.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How many connections are counted at a time: every one with more than one part in so many of the
    /// bytes is found.
    pub counters: Count<1_024>,
    /// Every so many arriving packets one is counted, in packets; 1 counts all.
    pub record_interval: Count<1_000_000>,
    /// Every so many arriving packets the heaviest is chosen anew and the counters fade, in
    /// packets.
    pub statistics_interval: Count<1_000_000>,
    /// After so many arriving packets a packet counts for half, in packets.
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

/// Counters below this many bytes are given up.
const LEAST: f64 = 1.0;

#[derive(Debug, Clone, Copy)]
struct Counter {
    bytes: f64,
    /// How much of them may have been others'.
    error: f64,
}

impl Counter {
    fn guaranteed(self) -> f64 {
        self.bytes - self.error
    }
}

/// Space-Saving at work.
#[derive(Debug)]
pub struct SpaceSaving {
    capacity: usize,
    record_interval: u32,
    statistics_interval: u32,
    /// What is left of the past at each statistics.
    fade: f64,
    until_record: u32,
    until_statistics: u32,
    /// Whose counters they are: apart, so that they are quickly looked through. Oldest first.
    owners: Vec<ConnectionId>,
    counters: Vec<Counter>,
    total: f64,
    heaviest: Option<ConnectionId>,
}

impl SpaceSaving {
    /// Nothing counted yet.
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
    /// What is guaranteed; short of the truth by one part in as many as there are counters at most.
    fn share(&self, connection: ConnectionId) -> f64 {
        match self.counter(connection) {
            Some(place) if self.total > 0.0 => self.counters[place].guaranteed() / self.total,
            _ => 0.0,
        }
    }
    /// Those with a counter.
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
