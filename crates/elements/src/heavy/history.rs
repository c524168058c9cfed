//! The history of the fairness study (Akiyama, Kozu and Yamaguchi, §4.2): every so many packets the arriving one's
//! connection is written down, the newest so many records are kept, and every so many packets
//! the connection that occurs most often among them is taken for the heaviest.
//!
//! A record tells nothing of a packet's size. Statistics cost the sorting of the history, so memory and time grow
//! with its length and not with the number of connections.
//!
//! # Left open by the source
//! - The length of the history; 100 by default, ten times as many packets at the default interval.
//! - Who wins a tie: the one recorded last among those who occur most often. A rule by number would
//!   favour the same flows in every run.
//! - Statistics before the history is full: they are taken from what is there.
//!
//! # Differs from Linux
//! - Linux has no such thing.
//!
//! # Not implemented
//! - Nothing.

use std::collections::VecDeque;

use anabranch_core::{
    packet::ConnectionId,
    registry::{Meta, Source},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Count, HeavyFlows};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "history",
    title: "History of arrivals",
    summary: "Writes down the connection of every n-th packet and takes the one that occurs most often among the newest records for the heaviest.",
    sources: &[Source {
        id: "Akiyama, Kozu and Yamaguchi, Fairness Improvement among Modern TCPs with Packet Dropping",
        items: &["§4.2"],
    }],
};

/// How often is recorded and counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Every so many arriving packets one is recorded: `rec_int` of the study, in packets. 2 at
    /// least keeps a burst from deciding.
    pub record_interval: Count<1_000_000>,
    /// Every so many arriving packets the heaviest is chosen anew: `sta_int` of the study, in
    /// packets.
    pub statistics_interval: Count<1_000_000>,
    /// How many records are kept: `hist_len` of the study, which does not print it.
    pub history_length: Count<1_000_000>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            record_interval: Count::new(10),
            statistics_interval: Count::new(100),
            history_length: Count::new(100),
        }
    }
}

/// The history at work.
#[derive(Debug)]
pub struct History {
    params: Params,
    /// Packets until the next record, and the next statistics.
    until_record: u32,
    until_statistics: u32,
    /// Oldest first.
    records: VecDeque<ConnectionId>,
    /// Of the last statistics: who occurs how often, by number. Sorting takes place here.
    sorted: Vec<ConnectionId>,
    counts: Vec<(ConnectionId, u32)>,
    heaviest: Option<ConnectionId>,
}

impl History {
    /// Nothing recorded yet.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            until_record: params.record_interval.get(),
            until_statistics: params.statistics_interval.get(),
            params: params.clone(),
            records: VecDeque::new(),
            sorted: Vec::new(),
            counts: Vec::new(),
            heaviest: None,
        }
    }

    fn record(&mut self, connection: ConnectionId) {
        if self.records.len() == self.params.history_length.get() as usize {
            self.records.pop_front();
        }
        self.records.push_back(connection);
    }

    fn take_statistics(&mut self) {
        self.sorted.clear();
        self.sorted.extend(&self.records);
        self.sorted.sort_unstable();
        self.counts.clear();
        for &connection in &self.sorted {
            match self.counts.last_mut() {
                Some((last, count)) if *last == connection => *count += 1,
                _ => self.counts.push((connection, 1)),
            }
        }
        let most = self.counts.iter().map(|&(_, count)| count).max();
        let newest_first = self.records.iter().rev().copied();
        self.heaviest = newest_first
            .into_iter()
            .find(|&connection| Some(self.count(connection)) == most);
    }

    /// How often it occurred at the last statistics.
    fn count(&self, connection: ConnectionId) -> u32 {
        self.counts
            .binary_search_by_key(&connection, |&(known, _)| known)
            .map_or(0, |place| self.counts[place].1)
    }
}

impl HeavyFlows for History {
    #[inline]
    fn on_packet(&mut self, connection: ConnectionId, _size: u32) {
        self.until_record -= 1;
        if self.until_record == 0 {
            self.until_record = self.params.record_interval.get();
            self.record(connection);
        }
        self.until_statistics -= 1;
        if self.until_statistics == 0 {
            self.until_statistics = self.params.statistics_interval.get();
            self.take_statistics();
        }
    }
    /// Of the records at the last statistics.
    fn share(&self, connection: ConnectionId) -> f64 {
        f64::from(self.count(connection)) / self.sorted.len().max(1) as f64
    }
    /// Those that occurred at the last statistics.
    fn active(&self) -> usize {
        self.counts.len()
    }
    #[inline]
    fn heaviest(&self) -> Option<ConnectionId> {
        self.heaviest
    }
    fn memory(&self) -> usize {
        size_of::<Self>()
            + self.records.capacity() * size_of::<ConnectionId>()
            + self.sorted.capacity() * size_of::<ConnectionId>()
            + self.counts.capacity() * size_of::<(ConnectionId, u32)>()
    }
}
