//! Reads a capture from beginning to end.

use std::{
    collections::BTreeMap,
    io::{self, Read, Seek, SeekFrom},
    ops::ControlFlow,
};

use anabranch_capture::{Error, Limits, Reader};

use crate::{
    fairness::fairness,
    listing::{Listed, Listing},
    order::{Clock, Nearby, Sorting, Witness},
    quic::packets::Flows,
    report::{Order, Report, Source},
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
    let (report, table) = read(file, bounds.expansion, || Table::new(bounds), add, stop)?;
    Ok(finished(report, name, table))
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
    let (report, listed) = read(file, bounds.expansion, begin, Listed::add, stop)?;
    Ok((finished(report, name, listed.table), listed.listing))
}

/// The report of a capture that has been read, with its connections.
fn finished(report: Report, name: &str, table: Table) -> Report {
    let (connections, omitted, ended_early) = table.end();
    Report {
        file: name.to_owned(),
        fairness: fairness(&connections),
        connections,
        omitted,
        ended_early,
        ..report
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
    let (_, table) = read(file, bounds.expansion, begin, add, stop)?;
    Ok(table.end_traces())
}

fn add(table: &mut Table, segment: &Segment) {
    table.add(segment);
}

/// Passes the segments of a capture to a table, in order of time. Returns the report without
/// connections, and the table.
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
) -> Result<(Report, T), Error> {
    let start = file.stream_position().ok();
    let limits = Limits {
        bytes: u64::MAX,
        expansion,
    };
    let mut table = begin();
    let mut nearby = Nearby::default();
    let first = pass(Reader::open_within(&mut file, limits, &stop)?, |segment| {
        nearby.push(segment, |segment| add(&mut table, segment));
        Ok(if nearby.is_right() || start.is_none() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        })
    })?;
    let Some(start) = start.filter(|_| !nearby.is_right()) else {
        nearby.pass(0, |segment| add(&mut table, segment));
        let not_put_in_order = nearby.too_late + nearby.damaged;
        return Ok((
            Report {
                not_put_in_order,
                ..first
            },
            table,
        ));
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
        let order = Order::Sorted;
        return Ok((Report { order, ..second }, table));
    }
    drop(sorting);
    rewind(&mut file, start)?;
    let mut clock = Clock::default();
    let third = pass(Reader::open_within(&mut file, limits, &stop)?, |segment| {
        add(&mut table, &clock.place(*segment));
        Ok(ControlFlow::Continue(()))
    })?;
    let report = Report {
        order: match clock.steps {
            0 => third.order,
            _ => Order::ClockSetBack,
        },
        clock_set_back: clock.steps,
        not_put_in_order: clock.damaged,
        ..third
    };
    Ok((report, table))
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

/// Reads the segments of a capture in the order of the file. Returns its report without connections.
fn pass(
    mut reader: Reader<'_>,
    mut take: impl FnMut(&Segment) -> Result<ControlFlow<()>, Error>,
) -> Result<Report, Error> {
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
    let counts = reader.counts();
    passed_over.insert("no-ip", counts.skipped.values().sum());
    let passed_over = passed_over.into_iter();
    let without_ip = counts.skipped.iter();
    Ok(Report {
        format: 1,
        source: Source::Capture,
        start_s: start.map(|picos| seconds(from_picos(picos))),
        packets: counts.frames,
        passed_over: passed_over
            .map(|(name, count)| (name.to_owned(), count))
            .collect(),
        without_ip: without_ip
            .map(|(skip, count)| (skip.name(), *count))
            .collect(),
        time_went_back: counts.went_back,
        order: match counts.went_back {
            0 => Order::File,
            _ => Order::Nearby,
        },
        cut_off: counts.is_cut_off,
        trailing_bytes: counts.trailing,
        damaged,
        quic_not_listed: quic.omitted,
        quic: quic.end(),
        ..Report::default()
    })
}
