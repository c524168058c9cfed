//! Reads a capture from beginning to end.

use std::{
    collections::BTreeMap,
    io::{self, Read, Seek, SeekFrom},
    ops::ControlFlow,
};

use anabranch_capture::{Counts, Error, Limits, Reader};

use crate::{
    figures::fairness,
    listing::{Listed, Listing},
    order::{Clock, Nearby, Sorting, Witness},
    quic::packets::Flows,
    report::{Omitted, Order, Report, Source},
    segment::{Omit, Segment},
    table::Table,
    time::{from_picos, seconds},
    trace::{Trace, Watch},
};

/// Bounds on the stored data. Beyond them, items are only counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Connections that are open at a time. Beyond it, the connection that has been silent longest
    /// ends.
    pub open_connections: usize,
    /// Connections that are reported: the ones with the most packets.
    pub connections: usize,
    /// Retransmissions that are listed, over all connections.
    pub retransmissions: u64,
    /// Decompressed bytes that are read for each byte of a compressed capture.
    pub expansion: u64,
}

impl Bounds {
    /// The default bounds.
    pub const DEFAULT: Self = Self {
        open_connections: 1 << 14,
        connections: 10_000,
        retransmissions: 200_000,
        expansion: Limits::EXPANSION,
    };
    /// The default bounds without a limit on the expansion of a compressed capture.
    pub const ANY_EXPANSION: Self = Self {
        expansion: u64::MAX,
        ..Self::DEFAULT
    };
}

impl Default for Bounds {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Diagnoses the TCP connections of a capture. `stop` is called once per 64 KiB; reading ends if it
/// returns true.
///
/// A capture whose packets are far out of order is read again, if `file` can be rewound.
///
/// # Errors
/// If the file is not a capture, or reading is interrupted. A capture that is damaged further on is
/// diagnosed up to that point, which [`Report::damaged`] gives.
pub fn diagnose(
    file: impl Read + Seek,
    name: &str,
    bounds: Bounds,
    stop: impl Fn() -> bool,
) -> Result<Report, Error> {
    let reading = read(file, bounds.expansion, || Table::new(bounds), add, stop)?;
    Ok(report(name, reading.account, reading.table))
}

/// Diagnoses the TCP connections of a capture like [`diagnose`], and lists its first `most`
/// segments with the numbers of their connections.
///
/// # Errors
/// As [`diagnose`].
pub fn list(
    file: impl Read + Seek,
    name: &str,
    bounds: Bounds,
    most: usize,
    stop: impl Fn() -> bool,
) -> Result<(Report, Listing), Error> {
    let begin = || Listed::new(Table::new(bounds), most);
    let Reading { account, table } = read(file, bounds.expansion, begin, Listed::add, stop)?;
    let Listed { table, listing, .. } = table;
    Ok((report(name, account, table), listing))
}

/// The report of a capture that has been read.
fn report(name: &str, account: Account, table: Table) -> Report {
    let Account {
        counts,
        mut passed_over,
        order,
        too_late,
        steps,
        damaged,
        start,
        quic,
    } = account;
    let quic_not_listed = quic.omitted;
    let without_ip: u64 = counts.skipped.values().sum();
    passed_over.insert("no-ip", without_ip);
    let skipped = counts.skipped.iter();
    let (connections, omitted, evicted): (_, Omitted, u64) = table.end();
    Report {
        format: 1,
        file: name.to_owned(),
        source: Source::Capture,
        start_s: start.map(|picos| seconds(from_picos(picos))),
        packets: counts.frames,
        passed_over: passed_over
            .into_iter()
            .map(|(name, count)| (name.to_owned(), count))
            .collect(),
        without_ip: skipped.map(|(skip, count)| (skip.name(), *count)).collect(),
        time_went_back: counts.went_back,
        order: match order {
            Order::Nearby if counts.went_back == 0 => Order::File,
            order => order,
        },
        not_put_in_order: too_late,
        clock_set_back: steps,
        cut_off: counts.is_cut_off,
        trailing_bytes: counts.trailing,
        damaged,
        fairness: fairness(&connections),
        connections,
        quic: quic.end(),
        quic_not_listed,
        omitted,
        ended_early: evicted,
    }
}

/// Traces connections of a capture that [`diagnose`] has read within the same bounds, so that their
/// numbers are known.
///
/// # Errors
/// If the file is not a capture, or reading is interrupted.
pub fn trace(
    file: impl Read + Seek,
    bounds: Bounds,
    watch: &Watch,
    stop: impl Fn() -> bool,
) -> Result<Vec<Trace>, Error> {
    let begin = || Table::watching(bounds, watch.clone());
    let reading = read(file, bounds.expansion, begin, add, stop)?;
    Ok(reading.table.end_traces())
}

/// Counts of a capture.
struct Account {
    counts: Counts,
    passed_over: BTreeMap<&'static str, u64>,
    order: Order,
    too_late: u64,
    /// How often the clock was set back.
    steps: u64,
    damaged: Option<String>,
    /// The earliest time of an IP packet.
    start: Option<i128>,
    /// Connections of QUIC.
    quic: Flows,
}

/// A table that has received all segments of a capture.
struct Reading<T> {
    account: Account,
    table: T,
}

fn add(table: &mut Table, segment: &Segment) {
    table.add(segment);
}

/// Passes the segments of a capture to a table, in order of time.
///
/// Most captures need one pass. It ends at the first segment that [`Nearby`] cannot put in order,
/// or that makes the order doubtful. A second pass then sorts all segments, and a third one follows
/// if the clock was set back.
fn read<T>(
    mut file: impl Read + Seek,
    expansion: u64,
    begin: impl Fn() -> T,
    add: impl Fn(&mut T, &Segment),
    stop: impl Fn() -> bool,
) -> Result<Reading<T>, Error> {
    let start = file.stream_position().ok();
    let limits = Limits {
        bytes: u64::MAX,
        expansion,
    };
    let mut table = begin();
    let mut nearby = Nearby::default();
    let first = pass(Reader::open_within(&mut file, limits, &stop)?, |segment| {
        nearby.push(segment, |segment| add(&mut table, segment));
        let is_right = nearby.too_late == 0 && !nearby.is_doubtful;
        Ok(if !is_right && start.is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    })?;
    let is_right = nearby.too_late == 0 && !nearby.is_doubtful;
    let Some(start) = start.filter(|_| !is_right) else {
        nearby.pass(0, |segment| add(&mut table, segment));
        let account = Account {
            too_late: nearby.too_late + nearby.damaged,
            ..first
        };
        return Ok(Reading { account, table });
    };
    rewind(&mut file, start)?;
    let mut sorting = Sorting::default();
    let mut witness = Witness::default();
    let second = pass(Reader::open_within(&mut file, limits, &stop)?, |segment| {
        witness.see(segment);
        sorting.push(*segment).map_err(|error| unsorted(&error))?;
        Ok(ControlFlow::Continue(()))
    })?;
    let mut table = begin();
    if !witness.is_clock() {
        let mut count = 0_u64;
        let sorted = sorting.finish(|segment| {
            count += 1;
            if count.is_multiple_of(PULSE) && stop() {
                return ControlFlow::Break(());
            }
            add(&mut table, segment);
            ControlFlow::Continue(())
        });
        if sorted.map_err(|error| unsorted(&error))?.is_break() {
            return Err(Error::Interrupted);
        }
        let account = Account {
            order: Order::Sorted,
            ..second
        };
        return Ok(Reading { account, table });
    }
    drop(sorting);
    rewind(&mut file, start)?;
    let mut clock = Clock::default();
    let third = pass(Reader::open_within(&mut file, limits, &stop)?, |segment| {
        add(&mut table, &clock.place(*segment));
        Ok(ControlFlow::Continue(()))
    })?;
    let account = Account {
        order: match clock.steps {
            0 => Order::Nearby,
            _ => Order::ClockSetBack,
        },
        steps: clock.steps,
        too_late: clock.damaged,
        ..third
    };
    Ok(Reading { account, table })
}

/// Sorted segments between two calls of `stop`: about as many as 64 KiB of a capture hold.
const PULSE: u64 = 1024;

fn rewind(file: &mut impl Seek, start: u64) -> Result<(), Error> {
    let back = file.seek(SeekFrom::Start(start));
    back.map(|_| ())
        .map_err(|error| Error::System(error.to_string()))
}

fn unsorted(error: &io::Error) -> Error {
    Error::Unsorted(error.to_string())
}

/// Reads the segments of a capture in the order of the file.
fn pass(
    mut reader: Reader<'_>,
    mut take: impl FnMut(&Segment) -> Result<ControlFlow<()>, Error>,
) -> Result<Account, Error> {
    let mut passed_over: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut damaged = None;
    let mut start: Option<i128> = None;
    let mut quic = Flows::default();
    loop {
        match reader.next_packet() {
            Ok(Some(packet)) => {
                start = Some(start.map_or(packet.time, |start| start.min(packet.time)));
                match Segment::of(&packet) {
                    Ok(segment) => {
                        if take(&segment)?.is_break() {
                            break;
                        }
                    }
                    Err(Omit::NoTcp) if quic.add(&packet) => {}
                    Err(omit) => *passed_over.entry(omit.name()).or_default() += 1,
                }
            }
            Ok(None) => break,
            Err(error @ (Error::Interrupted | Error::System(_) | Error::Expands { .. })) => {
                return Err(error);
            }
            Err(error) => {
                damaged = Some(error.to_string());
                break;
            }
        }
    }
    Ok(Account {
        counts: reader.counts().clone(),
        passed_over,
        order: Order::Nearby,
        too_late: 0,
        steps: 0,
        damaged,
        start,
        quic,
    })
}
