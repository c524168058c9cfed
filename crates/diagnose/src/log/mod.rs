//! Diagnosis of QUIC from a qlog of one end ([`diagnose_log`]).
//!
//! The events of a qlog become the segments of a TCP connection with the same data, window and
//! acknowledgments ([`flow`]), so that limits, retransmissions and the path have the same rules.

mod flow;
mod half;
mod streams;
mod words;

use std::{
    collections::BTreeMap,
    io::{Read, Seek, SeekFrom},
};

use anabranch_capture::{Content, Limits};
use anabranch_qlog::{Account, Error, Vantage, is_qlog, read};

use crate::{
    Bounds, Watch,
    connection::Connection,
    fairness::fairness,
    finding, next,
    quic::QuicLog,
    report::{self, CapturePoint, Evidence, Omitted, Report, Source, Transport},
    retransmission::ledger::Budget,
    segment::End,
    time::{Nanos, seconds},
    trace::{Trace, Tracer},
};
use flow::Flow;

/// Connections of a log for each one that is listed.
const MOST_TIMES: usize = 16;

/// Whether a file is a qlog, by its content. Its position stays the same.
///
/// # Errors
/// If it cannot be read.
pub fn is_log(file: &mut (impl Read + Seek)) -> std::io::Result<bool> {
    let Ok(start) = file.stream_position() else {
        return Ok(false);
    };
    let mut head = [0; 64];
    let found = Content::open(&mut *file, Limits::default(), || false)
        .and_then(|mut content| content.read_up_to(&mut head));
    file.seek(SeekFrom::Start(start))?;
    Ok(found.is_ok_and(|read| is_qlog(&head[..read])))
}

/// Diagnoses the connections of a qlog. `stop` is polled every 64 KiB; reading ends if it returns
/// true.
///
/// # Errors
/// If the file is not a qlog that can be diagnosed, or reading is interrupted. A file that is cut
/// off or damaged further on is diagnosed up to that point.
pub fn diagnose_log(
    file: impl Read + Seek,
    name: &str,
    bounds: Bounds,
    stop: impl Fn() -> bool,
) -> Result<Report, Error> {
    let mut read = run(file, bounds, None, stop)?;
    let mut connections: Vec<report::Connection> = Vec::new();
    // Which of `a` and `b` wrote the log.
    let mut locals: Vec<usize> = Vec::new();
    for (_, flow) in std::mem::take(&mut read.flows) {
        let quic = QuicLog {
            vantage: ["client", "server"][flow.local()],
            version: flow.version.clone(),
            retry: flow.handshake.has_retry,
            frames: flow.has_frames,
        };
        let (local, names, packets) = (flow.local(), flow.names, flow.packets);
        read.went_back += flow.went_back;
        let Some(connection) = flow.end(&mut read.budget) else {
            continue;
        };
        let is_swapped = connection.ends[0] != flow::CLIENT;
        locals.push(if is_swapped { 1 - local } else { local });
        let mut made = reported(&connection, names, packets, quic);
        // A host that answers late does not move the log away from it.
        made.capture_point = if locals.last() == Some(&0) {
            CapturePoint::NearA
        } else {
            CapturePoint::NearB
        };
        connections.push(made);
    }
    finding::add(&mut connections);
    next::add(&mut connections);
    for (connection, local) in connections.iter_mut().zip(locals) {
        words::translate(connection, local);
    }
    Ok(Report {
        format: 1,
        file: name.to_owned(),
        source: Source::Qlog,
        start_s: read.start.map(seconds),
        packets: read.account.packets,
        time_went_back: read.went_back,
        cut_off: read.account.is_cut_off,
        damaged: read.account.damaged,
        fairness: fairness(&connections),
        connections,
        omitted: read.omitted,
        ..Report::default()
    })
}

/// Traces connections of a qlog that [`diagnose_log`] has read within the same bounds.
///
/// # Errors
/// As [`diagnose_log`].
pub fn trace_log(
    file: impl Read + Seek,
    bounds: Bounds,
    watch: &Watch,
    stop: impl Fn() -> bool,
) -> Result<Vec<Trace>, Error> {
    let mut read = run(file, bounds, Some(watch), stop)?;
    let flows = std::mem::take(&mut read.flows);
    let ended = flows
        .into_values()
        .filter_map(|flow| flow.end(&mut read.budget));
    Ok(ended
        .filter_map(|mut connection| connection.end_trace())
        .collect())
}

/// A file that has been read.
#[derive(Default)]
struct Log {
    account: Account,
    flows: BTreeMap<u64, Flow>,
    budget: Budget,
    omitted: Omitted,
    went_back: u64,
    start: Option<Nanos>,
}

fn run(
    mut file: impl Read + Seek,
    bounds: Bounds,
    watch: Option<&Watch>,
    stop: impl Fn() -> bool,
) -> Result<Log, Error> {
    let limits = Limits {
        bytes: u64::MAX,
        expansion: bounds.expansion,
    };
    let begin = file
        .stream_position()
        .map_err(|error| Error::System(error.to_string()))?;
    let file = std::cell::RefCell::new(file);
    let most = bounds.connections.saturating_mul(MOST_TIMES);
    let are_many = std::cell::Cell::new(false);
    let stop = || stop() || are_many.get();
    let mut ids: BTreeMap<(usize, Option<u128>), u64> = BTreeMap::new();
    let mut log = Log {
        budget: Budget(bounds.retransmissions),
        ..Log::default()
    };
    let open = || {
        let system = |error: &dyn std::fmt::Display| Error::System(error.to_string());
        file.borrow_mut()
            .seek(SeekFrom::Start(begin))
            .map_err(|error| system(&error))?;
        Content::open(Shared(&file), limits, stop).map_err(|error| system(&error))
    };
    let read = read(open, stop, |record| {
        let key = (record.trace, record.group.map(hash));
        if ids.len() >= most && !ids.contains_key(&key) {
            are_many.set(true);
            return;
        }
        let known = ids.len() as u64;
        let id = *ids.entry(key).or_insert(known + 1);
        if id > bounds.connections as u64 {
            log.omitted.connections = ids.len() as u64 - bounds.connections as u64;
            return;
        }
        log.start = Some(
            log.start
                .map_or(record.time, |start| start.min(record.time)),
        );
        let flow = log.flows.entry(id).or_insert_with(|| {
            let local = match record.header.vantage {
                Vantage::Client => Some(0),
                Vantage::Server => Some(1),
                Vantage::Network | Vantage::Unknown => None,
            };
            let tracer = watch.filter(|watch| watch.connections.contains(&id));
            Flow::new(id, local, tracer.map(|watch| Tracer::new(id, watch)))
        });
        flow.add(record.number, record.time, record.event, &mut log.budget);
    });
    if are_many.get() {
        return Err(Error::ManyConnections(most));
    }
    log.account = read?;
    Ok(log)
}

/// The hash of a group's name (FNV-1a), so that long names take no memory.
fn hash(name: &str) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = (1 << 88) + 0x13b;
    name.bytes().fold(OFFSET, |hash, octet| {
        (hash ^ u128::from(octet)).wrapping_mul(PRIME)
    })
}

/// A file that is opened twice.
struct Shared<'f, F>(&'f std::cell::RefCell<F>);

impl<F: Read> Read for Shared<'_, F> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().read(into)
    }
}

/// The report of a connection, with the names of its ends.
fn reported(
    connection: &Connection,
    names: [Option<End>; 2],
    packets: u64,
    quic: QuicLog,
) -> report::Connection {
    let mut made = report::Connection::of(connection);
    // The client is `a`, whoever sends the first packet that is logged.
    let is_swapped = connection.ends[0] != flow::CLIENT;
    let name = |end: usize| match names[end] {
        Some((address, port)) => std::net::SocketAddr::new(address, port).to_string(),
        None => ["client", "server"][end].to_owned(),
    };
    made.a = name(usize::from(is_swapped));
    made.b = name(usize::from(!is_swapped));
    made.transport = Transport::Quic;
    made.quic = Some(quic);
    made.packets = packets;
    for way in [&mut made.directions.a_to_b, &mut made.directions.b_to_a] {
        for one in &mut way.retransmissions {
            if one.evidence == Evidence::TimestampEcho {
                one.evidence = Evidence::PacketNumber;
            }
        }
    }
    made
}
