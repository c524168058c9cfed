//! History of the fairness study (Akiyama, Kozu and Yamaguchi, §4.2). The connection of one packet
//! per record interval is recorded, and the newest `history_length` records are kept. Once per
//! statistics interval the connection with most records becomes the heaviest.
//!
//! A record contains no packet size. Counts are updated with each record; a choice visits each
//! connection once. Memory and time grow at most with the length of the history, not with the
//! number of connections.
//!
//! # Left open by the source
//! - The length of the history: 100 by default, which covers 1,000 packets at the default
//!   interval.
//! - Ties: the most recently recorded of the connections with most records wins. A rule by number
//!   would favour the same flows in every run.
//! - Statistics before the history is full: they use the existing records.
//!
//! # Differs from Linux
//! - Linux has no such thing.
//!
//! # Not implemented
//! - Nothing.

use std::collections::VecDeque;

use anabranch_core::{
    packet::ConnectionId,
    parameters::Count,
    registry::{Meta, Source},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::HeavyFlows;

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "history",
    title: "History of arrivals",
    summary: "Records the connection of every n-th packet; the connection that occurs most often in the newest records is the heaviest.",
    sources: &[Source {
        id: "Akiyama, Kozu and Yamaguchi, Fairness Improvement among Modern TCPs with Packet Dropping",
        items: &["§4.2"],
    }],
};

/// A connection is active if it has at least 1/16 of the records of the heaviest.
const TAKES_PART: u32 = 16;

/// Intervals of recording and of statistics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// One packet in this number of arriving packets is recorded: `rec_int` of the study, in
    /// packets. At least 2 prevents a burst from deciding.
    pub record_interval: Count<1_000_000>,
    /// Number of arriving packets between two choices of the heaviest: `sta_int` of the study, in
    /// packets.
    pub statistics_interval: Count<1_000_000>,
    /// Number of records: `hist_len` of the study, which does not give its value.
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

/// State of the history.
#[derive(Debug)]
pub struct History {
    params: Params,
    /// Packets until the next record. `until_statistics`: until the next statistics.
    until_record: u32,
    until_statistics: u32,
    /// Oldest first.
    records: VecDeque<ConnectionId>,
    /// Number of records of each connection, sorted by connection.
    counts: Vec<(ConnectionId, u32)>,
    heaviest: Option<ConnectionId>,
    /// Number of active connections at the last statistics.
    taking_part: usize,
}

impl History {
    /// Creates an empty history.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            until_record: params.record_interval.get(),
            until_statistics: params.statistics_interval.get(),
            params: params.clone(),
            records: VecDeque::new(),
            counts: Vec::new(),
            heaviest: None,
            taking_part: 0,
        }
    }

    /// This connection's part of the history. While the history has less than a tenth of its full
    /// length, the missing records count as other connections'.
    pub(crate) fn part(&self, connection: ConnectionId) -> f64 {
        let least = f64::from(self.params.history_length.get()) / 10.0;
        f64::from(self.count(connection)) / (self.records.len() as f64).max(least)
    }
    /// Number of connections with at least a sixteenth of the heaviest's records at the last
    /// statistics.
    pub(crate) fn taking_part(&self) -> usize {
        self.taking_part
    }

    fn record(&mut self, connection: ConnectionId) {
        if self.records.len() == self.params.history_length.get() as usize
            && let Some(oldest) = self.records.pop_front()
            && let Ok(place) = self.place(oldest)
        {
            self.counts[place].1 -= 1;
            if self.counts[place].1 == 0 {
                self.counts.remove(place);
            }
        }
        self.records.push_back(connection);
        match self.place(connection) {
            Ok(place) => self.counts[place].1 += 1,
            Err(place) => self.counts.insert(place, (connection, 1)),
        }
    }

    fn take_statistics(&mut self) {
        let most = self.counts.iter().map(|&(_, count)| count).max();
        let mut newest_first = self.records.iter().rev().copied();
        self.heaviest = newest_first.find(|&connection| Some(self.count(connection)) == most);
        let enough = |count: u32| Some(count.saturating_mul(TAKES_PART)) >= most;
        self.taking_part = self
            .counts
            .iter()
            .filter(|(_, count)| enough(*count))
            .count();
    }

    fn place(&self, connection: ConnectionId) -> Result<usize, usize> {
        self.counts
            .binary_search_by_key(&connection, |&(known, _)| known)
    }

    /// Number of records of a connection.
    fn count(&self, connection: ConnectionId) -> u32 {
        self.place(connection)
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
    /// Share of the records.
    fn share(&self, connection: ConnectionId) -> f64 {
        f64::from(self.count(connection)) / self.records.len().max(1) as f64
    }
    /// Number of connections among the records.
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
            + self.counts.capacity() * size_of::<(ConnectionId, u32)>()
    }
}
