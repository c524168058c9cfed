//! Reads a capture from beginning to end.

use std::{collections::BTreeMap, io::Read};

use anabranch_capture::{Counts, Error, Reader};

use crate::{
    order::Order,
    report::{Omitted, Report},
    segment::Segment,
    table::Table,
    time::{from_picos, seconds},
    trace::{Trace, Watch},
};

/// What is kept at most. Beyond it things are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Connections that are followed at a time; of more, the one that has been silent longest ends.
    pub open_connections: usize,
    /// Connections that are reported: those with the most packets.
    pub connections: usize,
    /// Retransmissions that are listed, over all connections.
    pub retransmissions: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            open_connections: 1 << 14,
            connections: 10_000,
            retransmissions: 200_000,
        }
    }
}

/// Diagnoses the TCP connections of a capture; `stop` is asked for every 64 KiB whether to give up.
///
/// # Errors
/// If it is no capture, or reading is interrupted. A capture that is damaged further on is diagnosed up to there, and
/// [`Report::damaged`] says where that is.
pub fn diagnose(
    file: impl Read,
    name: &str,
    bounds: Bounds,
    stop: impl Fn() -> bool,
) -> Result<Report, Error> {
    let mut table = Table::new(bounds);
    let Account {
        counts,
        mut passed_over,
        too_late,
        damaged,
        start,
    } = read(file, &mut table, stop)?;
    let without_ip: u64 = counts.skipped.values().sum();
    passed_over.insert("no-ip", without_ip);
    let skipped = counts.skipped.iter();
    let (connections, omitted, evicted): (_, Omitted, u64) = table.end();
    Ok(Report {
        format: 1,
        file: name.to_owned(),
        start_s: start.map(|picos| seconds(from_picos(picos))),
        packets: counts.frames,
        passed_over: passed_over
            .into_iter()
            .map(|(name, count)| (name.to_owned(), count))
            .collect(),
        without_ip: skipped.map(|(skip, count)| (skip.name(), *count)).collect(),
        time_went_back: counts.went_back,
        not_put_in_order: too_late,
        cut_off: counts.is_cut_off,
        trailing_bytes: counts.trailing,
        damaged,
        connections,
        omitted,
        ended_early: evicted,
    })
}

/// Follows connections of a capture that has been diagnosed within the same bounds, so that their numbers are known.
///
/// # Errors
/// If it is no capture, or reading is interrupted.
pub fn trace(
    file: impl Read,
    bounds: Bounds,
    watch: Watch,
    stop: impl Fn() -> bool,
) -> Result<Vec<Trace>, Error> {
    let mut table = Table::watching(bounds, watch);
    read(file, &mut table, stop)?;
    Ok(table.end_traces())
}

/// What was counted of a capture.
struct Account {
    counts: Counts,
    passed_over: BTreeMap<&'static str, u64>,
    too_late: u64,
    damaged: Option<String>,
    /// The earliest time of an IP packet.
    start: Option<i128>,
}

/// Gives the segments of a capture to the table, in order of time.
fn read(file: impl Read, table: &mut Table, stop: impl Fn() -> bool) -> Result<Account, Error> {
    let mut reader = Reader::open_within(file, u64::MAX, stop)?;
    let mut order = Order::default();
    let mut passed_over: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut damaged = None;
    let mut start: Option<i128> = None;
    loop {
        match reader.next_packet() {
            Ok(Some(packet)) => {
                start = Some(start.map_or(packet.time, |start| start.min(packet.time)));
                match Segment::of(&packet) {
                    Ok(segment) => {
                        if let Some(segment) = order.push(segment) {
                            table.add(&segment);
                        }
                    }
                    Err(omit) => *passed_over.entry(omit.name()).or_default() += 1,
                }
            }
            Ok(None) => break,
            Err(error @ (Error::Interrupted | Error::System(_))) => return Err(error),
            Err(error) => {
                damaged = Some(error.to_string());
                break;
            }
        }
    }
    while let Some(segment) = order.pop() {
        table.add(&segment);
    }
    Ok(Account {
        counts: reader.counts().clone(),
        passed_over,
        too_late: order.too_late,
        damaged,
        start,
    })
}
