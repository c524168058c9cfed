//! The tables of a run as columns. Names carry their units.

use anabranch::{
    Body, Finished, GroupSample,
    packet::FlowId,
    record::{Judge, PacketLog, PacketRow, Retransmitted, WindowRow},
    trace::Fate,
    units::{Bytes, Duration, Instant},
};
use anabranch_columns::Column;
use pyo3::{exceptions::PyKeyError, prelude::*};
use serde_json::{Map, Value};

use crate::table::ArrowTable;

/// The tables of [`build`].
pub const NAMES: [&str; 9] = [
    "flows",
    "links",
    "samples",
    "ack_samples",
    "link_samples",
    "group_samples",
    "packets",
    "window_events",
    "retransmissions",
];

type Columns = Vec<(&'static str, Column)>;

/// The table called `name`.
pub fn build<B: Body>(run: &Finished<B>, name: &str) -> PyResult<ArrowTable> {
    let columns = match name {
        "flows" => flows(&run.summary.flows),
        "links" => links(&run.summary.links),
        "samples" => samples(run),
        "ack_samples" => ack_samples(run),
        "link_samples" => link_samples(run),
        "group_samples" => group_samples(run),
        "packets" => {
            let rows = Position::default().next(run, usize::MAX);
            columns_of(run, &rows, &PACKET_COLUMNS)
        }
        "window_events" => window_events(run),
        "retransmissions" => retransmissions(run),
        _ => {
            return Err(PyKeyError::new_err(format!(
                "no table {name:?}; there are {}",
                NAMES.join(", ")
            )));
        }
    };
    ArrowTable::new(columns)
}

fn floats<T>(rows: &[T], of: impl Fn(&T) -> Option<f64>) -> Column {
    Column::floats(rows.iter().map(of))
}
fn counts<T>(rows: &[T], of: impl Fn(&T) -> u64) -> Column {
    Column::counts(rows.iter().map(|row| Some(of(row))))
}
fn some_counts<T>(rows: &[T], of: impl Fn(&T) -> Option<u64>) -> Column {
    Column::counts(rows.iter().map(of))
}
fn strings<'a, T>(rows: &'a [T], of: impl Fn(&'a T) -> Option<&'a str>) -> Column {
    Column::strings(rows.iter().map(of))
}
fn flags<T>(rows: &[T], of: impl Fn(&T) -> Option<bool>) -> Column {
    Column::flags(rows.iter().map(of))
}

/// Keys of the summary that are ratios, rates and times; the others are counts.
const FLOW_FLOATS: [&str; 10] = [
    "goodput_mbit_s",
    "throughput_mbit_s",
    "mean_cwnd_packets",
    "mean_srtt_ms",
    "min_rtt_ms",
    "flow_completion_time_s",
    "ended_at_s",
    "reordered_ratio",
    "mean_one_way_delay_ms",
    "p95_one_way_delay_ms",
];
const FLOW_COUNTS: [&str; 8] = [
    "delivered_bytes",
    "sent_packets",
    "retransmitted_packets",
    "spurious_retransmissions",
    "fast_recoveries",
    "timeouts",
    "reordering_extent_p95_packets",
    "malformed_segments",
];
const LINK_FLOATS: [&str; 4] = [
    "utilization",
    "mean_queue_packets",
    "p95_queue_delay_ms",
    "p99_queue_delay_ms",
];
const LINK_COUNTS: [&str; 6] = [
    "sent_packets",
    "dropped_packets",
    "lost_packets",
    "reordered_packets",
    "marked_packets",
    "max_queue_packets",
];

fn figures(rows: &[&Value], names_f: &[&'static str], names_c: &[&'static str]) -> Columns {
    let real = names_f
        .iter()
        .map(|name| (*name, floats(rows, |row| row[*name].as_f64())));
    let count = names_c
        .iter()
        .map(|name| (*name, some_counts(rows, |row| row[*name].as_u64())));
    real.chain(count).collect()
}

fn flows(flows: &Map<String, Value>) -> Columns {
    let names: Vec<&String> = flows.keys().collect();
    let rows: Vec<&Value> = flows.values().collect();
    let mut columns: Columns = vec![("flow", strings(&names, |name| Some(name.as_str())))];
    columns.extend(figures(&rows, &FLOW_FLOATS, &FLOW_COUNTS));
    columns.push(("ended", strings(&rows, |row| row["ended"].as_str())));
    columns
}

fn links(links: &Map<String, Value>) -> Columns {
    let rows: Vec<(&String, &'static str, &Value)> = links
        .iter()
        .flat_map(|(name, both)| {
            ["forward", "reverse"].map(|direction| (name, direction, &both[direction]))
        })
        .collect();
    let values: Vec<&Value> = rows.iter().map(|row| row.2).collect();
    let mut columns: Columns = vec![
        ("link", strings(&rows, |row| Some(row.0.as_str()))),
        ("direction", strings(&rows, |row| Some(row.1))),
    ];
    columns.extend(figures(&values, &LINK_FLOATS, &LINK_COUNTS));
    columns
}

/// Converts bytes of a flow to full segments.
fn in_packets<B: Body>(run: &Finished<B>) -> impl Fn(FlowId, Bytes) -> f64 + use<B> {
    let mss: Vec<f64> = (0..run.network.flow_count())
        .map(|flow| {
            let flow = FlowId(u32::try_from(flow).unwrap_or(u32::MAX));
            run.network.mss(flow)
        })
        .map(|mss| f64::from(mss.unwrap_or(1)))
        .collect();
    move |flow, bytes| bytes.get() as f64 / mss[flow.0 as usize]
}

fn samples<B: Body>(run: &Finished<B>) -> Columns {
    let rows = &run.samples.flows;
    let packets = in_packets(run);
    let srtt = |d: Duration| (!d.is_zero()).then(|| d.as_millis_f64());
    vec![
        ("time_s", floats(rows, |s| Some(s.at.as_secs_f64()))),
        (
            "flow",
            strings(rows, |s| Some(run.network.flow_name(s.flow))),
        ),
        (
            "cwnd_packets",
            floats(rows, |s| Some(packets(s.flow, s.snapshot.cwnd))),
        ),
        (
            "ssthresh_packets",
            floats(rows, |s| {
                s.snapshot.ssthresh.map(|bytes| packets(s.flow, bytes))
            }),
        ),
        (
            "in_flight_packets",
            floats(rows, |s| Some(packets(s.flow, s.snapshot.in_flight))),
        ),
        ("srtt_ms", floats(rows, |s| srtt(s.snapshot.srtt))),
        (
            "rto_ms",
            floats(rows, |s| Some(s.snapshot.rto.as_millis_f64())),
        ),
        ("delivered_bytes", counts(rows, |s| s.delivered_bytes)),
        ("fast_recoveries", some_counts(rows, |s| s.fast_recoveries)),
        ("timeouts", counts(rows, |s| s.timeouts)),
        (
            "retransmitted_packets",
            counts(rows, |s| s.retransmitted_packets),
        ),
        ("state", strings(rows, |s| Some(s.snapshot.state.name()))),
    ]
}

/// The columns of [`samples`] that a trace contains, and a few more.
fn ack_samples<B: Body>(run: &Finished<B>) -> Columns {
    let rows = &run.samples.acks;
    let srtt = |d: Duration| (!d.is_zero()).then(|| d.as_millis_f64());
    vec![
        ("time_s", floats(rows, |s| Some(s.at.as_secs_f64()))),
        (
            "flow",
            strings(rows, |s| Some(run.network.flow_name(s.flow))),
        ),
        ("connection", counts(rows, |s| s.connection.into())),
        ("acknowledged_bytes", counts(rows, |s| s.acknowledged_bytes)),
        ("cwnd_packets", floats(rows, |s| Some(s.cwnd.into()))),
        (
            "ssthresh_packets",
            floats(rows, |s| s.ssthresh.map(f64::from)),
        ),
        (
            "in_flight_packets",
            floats(rows, |s| Some(s.in_flight.into())),
        ),
        ("srtt_ms", floats(rows, |s| srtt(s.srtt))),
        (
            "fast_recoveries",
            counts(rows, |s| s.fast_recoveries.into()),
        ),
        ("timeouts", counts(rows, |s| s.timeouts.into())),
        (
            "retransmitted_packets",
            counts(rows, |s| s.retransmitted_packets.into()),
        ),
        ("state", strings(rows, |s| Some(s.state.name()))),
        (
            "congestion_control",
            strings(rows, |s| {
                run.samples.controls.get(s.control).map(String::as_str)
            }),
        ),
    ]
}

fn link_samples<B: Body>(run: &Finished<B>) -> Columns {
    let rows = &run.samples.links;
    let direction = |index: usize| if index == 0 { "forward" } else { "reverse" };
    vec![
        ("time_s", floats(rows, |s| Some(s.at.as_secs_f64()))),
        (
            "link",
            strings(rows, |s| Some(run.links[s.link].0.as_str())),
        ),
        ("direction", strings(rows, |s| Some(direction(s.direction)))),
        ("queue_packets", counts(rows, |s| s.queue_packets as u64)),
        ("queue_bytes", counts(rows, |s| s.queue_bytes)),
        ("sent_packets", counts(rows, |s| s.sent_packets)),
        ("dropped_packets", counts(rows, |s| s.dropped_packets)),
    ]
}

fn group_samples<B: Body>(run: &Finished<B>) -> Columns {
    let rows = &run.samples.groups;
    vec![
        ("time_s", floats(rows, |s| Some(s.at.as_secs_f64()))),
        (
            "group",
            strings(rows, |s: &GroupSample| Some(run.groups[s.group].0.as_str())),
        ),
        ("wanted_members", counts(rows, |s| s.state.wanted.into())),
        ("active_members", counts(rows, |s| s.state.active[0].into())),
        (
            "reverse_active_members",
            counts(rows, |s| s.state.active[1].into()),
        ),
        (
            "sleeping_ports",
            counts(rows, |s| s.state.sleeping.iter().sum::<u32>().into()),
        ),
    ]
}

/// The columns of the table `packets`.
pub const PACKET_COLUMNS: [&str; 16] = [
    "flow",
    "direction",
    "packet_index",
    "sequence_bytes",
    "payload_bytes",
    "size_bytes",
    "retransmission",
    "cause",
    "needed",
    "sent_s",
    "received_s",
    "fate",
    "where",
    "queue_delay_ms",
    "reordered",
    "reordering_extent_packets",
];

/// A packet and whether its transmission was needed.
type Judged<'a> = (&'a PacketRow, Option<bool>);

/// Read position in the table `packets`.
#[derive(Debug, Default)]
pub struct Position {
    connection: usize,
    row: usize,
    judge: Judge,
}

impl Position {
    /// The next packets that count, at most `most`; fewer only at the end.
    pub fn next<'a, B: Body>(&mut self, run: &'a Finished<B>, most: usize) -> Vec<Judged<'a>> {
        let mut found = Vec::new();
        let Some(log) = run.network.probe().log() else {
            return found;
        };
        while let Some(rows) = log.connections().get(self.connection) {
            for row in rows.get(self.row..).unwrap_or_default() {
                if found.len() == most {
                    return found;
                }
                self.row += 1;
                let needed = self.judge.next(row);
                if row.counts() {
                    found.push((row, needed));
                }
            }
            *self = Self {
                connection: self.connection + 1,
                ..Self::default()
            };
        }
        found
    }
}

/// The given packets as a table, with the given columns of [`PACKET_COLUMNS`].
pub fn packets<B: Body>(
    run: &Finished<B>,
    rows: &[Judged<'_>],
    columns: &[&'static str],
) -> PyResult<ArrowTable> {
    ArrowTable::new(columns_of(run, rows, columns))
}

fn columns_of<B: Body>(
    run: &Finished<B>,
    rows: &[Judged<'_>],
    columns: &[&'static str],
) -> Columns {
    let column = |name: &&'static str| (*name, packet_column(run, rows, name));
    columns.iter().map(column).collect()
}

fn packet_column<B: Body>(run: &Finished<B>, rows: &[Judged<'_>], name: &str) -> Column {
    match name {
        "flow" => strings(rows, |(row, _)| Some(run.network.flow_name(row.flow))),
        "direction" => strings(rows, |(row, _)| Some(row.direction.name())),
        "packet_index" => Column::short_counts(rows.iter().map(|(row, _)| row.index)),
        "sequence_bytes" => counts(rows, |(row, _)| row.sequence),
        "payload_bytes" => counts(rows, |(row, _)| u64::from(row.payload)),
        "size_bytes" => counts(rows, |(row, _)| u64::from(row.size)),
        "retransmission" => flags(rows, |(row, _)| Some(row.retransmission)),
        "cause" => strings(rows, |(row, _)| cause(row)),
        "needed" => flags(rows, |(_, needed)| *needed),
        "sent_s" => floats(rows, |(row, _)| Some(row.sent.as_secs_f64())),
        "received_s" => floats(rows, |(row, _)| row.received.map(Instant::as_secs_f64)),
        "fate" => strings(rows, |(row, _)| Some(fate(row))),
        "where" => strings(rows, |(row, _)| place(run, row)),
        "queue_delay_ms" => floats(rows, |(row, _)| {
            row.queue_delay.map(Duration::as_millis_f64)
        }),
        "reordered" => flags(rows, |(row, _)| Some(row.reordered)),
        _ => counts(rows, |(row, _)| row.extent),
    }
}

fn cause(row: &PacketRow) -> Option<&'static str> {
    row.cause.map(anabranch::tcp::RetransmitCause::name)
}

const fn fate(row: &PacketRow) -> &'static str {
    match (row.received, row.lost) {
        (Some(_), _) => "delivered",
        (None, Some((_, Fate::Dropped))) => "dropped",
        (None, Some((_, Fate::TooBig))) => "too-big",
        (None, Some(_)) => "lost",
        (None, None) => "in-flight",
    }
}

/// The element that dropped or lost a packet.
fn place<'a, B: Body>(run: &'a Finished<B>, row: &PacketRow) -> Option<&'a str> {
    let lost = row.lost.filter(|_| row.received.is_none());
    lost.map(|(at, _)| run.network.element_name(at))
}

/// Each retransmission, and the outcome of the original transmission of its octets.
fn retransmissions<B: Body>(run: &Finished<B>) -> Columns {
    let log = run.network.probe().log();
    let rows: Vec<Retransmitted<'_>> = log.into_iter().flat_map(PacketLog::retransmitted).collect();
    let rows = rows.as_slice();
    vec![
        (
            "flow",
            strings(rows, |one| Some(run.network.flow_name(one.row.flow))),
        ),
        (
            "direction",
            strings(rows, |one| Some(one.row.direction.name())),
        ),
        (
            "time_s",
            floats(rows, |one| Some(one.row.sent.as_secs_f64())),
        ),
        ("sequence_bytes", counts(rows, |one| one.row.sequence)),
        (
            "payload_bytes",
            counts(rows, |one| u64::from(one.row.payload)),
        ),
        ("cause", strings(rows, |one| cause(one.row))),
        ("needed", flags(rows, |one| one.needed)),
        (
            "original_s",
            floats(rows, |one| {
                one.original.map(|before| before.sent.as_secs_f64())
            }),
        ),
        ("original_fate", strings(rows, |one| one.original.map(fate))),
        (
            "original_where",
            strings(rows, |one| {
                one.original.and_then(|before| place(run, before))
            }),
        ),
        (
            "original_received_s",
            floats(rows, |one| one.original?.received.map(Instant::as_secs_f64)),
        ),
        ("fate", strings(rows, |one| Some(fate(one.row)))),
    ]
}

fn window_events<B: Body>(run: &Finished<B>) -> Columns {
    let log = run.network.probe().log();
    let rows: &[WindowRow] = log.map_or(&[], |log| log.windows());
    let packets = in_packets(run);
    vec![
        (
            "flow",
            strings(rows, |row| Some(run.network.flow_name(row.flow))),
        ),
        ("time_s", floats(rows, |row| Some(row.at.as_secs_f64()))),
        ("event", strings(rows, |row| Some(row.event()))),
        (
            "cwnd_before_packets",
            floats(rows, |row| Some(packets(row.flow, row.cwnd.0))),
        ),
        (
            "cwnd_after_packets",
            floats(rows, |row| Some(packets(row.flow, row.cwnd.1))),
        ),
        (
            "ssthresh_packets",
            floats(rows, |row| {
                row.ssthresh.map(|bytes| packets(row.flow, bytes))
            }),
        ),
    ]
}
