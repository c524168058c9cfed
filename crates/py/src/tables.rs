//! The tables of a run as Arrow columns. Names carry their units.

use std::sync::Arc;

use anabranch::{
    Body, Finished, GroupSample,
    packet::FlowId,
    record::{PacketRow, WindowRow},
    trace::Fate,
    units::{Bytes, Duration, Instant},
};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, StringArray, UInt32Array, UInt64Array};
use pyo3::{exceptions::PyKeyError, prelude::*};
use serde_json::{Map, Value};

use crate::table::ArrowTable;

/// The names that [`build`] knows.
pub const NAMES: [&str; 8] = [
    "flows",
    "links",
    "samples",
    "ack_samples",
    "link_samples",
    "group_samples",
    "packets",
    "window_events",
];

type Columns = Vec<(&'static str, ArrayRef)>;

/// The table called `name`.
pub fn build<B: Body>(run: &Finished<B>, name: &str) -> PyResult<ArrowTable> {
    let columns = match name {
        "flows" => flows(&run.summary.flows),
        "links" => links(&run.summary.links),
        "samples" => samples(run),
        "ack_samples" => ack_samples(run),
        "link_samples" => link_samples(run),
        "group_samples" => group_samples(run),
        "packets" => packets(run),
        "window_events" => window_events(run),
        _ => {
            return Err(PyKeyError::new_err(format!(
                "no table {name:?}; there are {}",
                NAMES.join(", ")
            )));
        }
    };
    ArrowTable::new(columns)
}

fn floats<T>(rows: &[T], of: impl Fn(&T) -> Option<f64>) -> ArrayRef {
    Arc::new(rows.iter().map(of).collect::<Float64Array>())
}
fn counts<T>(rows: &[T], of: impl Fn(&T) -> u64) -> ArrayRef {
    Arc::new(
        rows.iter()
            .map(|row| Some(of(row)))
            .collect::<UInt64Array>(),
    )
}
fn some_counts<T>(rows: &[T], of: impl Fn(&T) -> Option<u64>) -> ArrayRef {
    Arc::new(rows.iter().map(of).collect::<UInt64Array>())
}
fn strings<T>(rows: &[T], of: impl Fn(&T) -> Option<String>) -> ArrayRef {
    Arc::new(rows.iter().map(of).collect::<StringArray>())
}
fn flags<T>(rows: &[T], of: impl Fn(&T) -> bool) -> ArrayRef {
    Arc::new(
        rows.iter()
            .map(|row| Some(of(row)))
            .collect::<BooleanArray>(),
    )
}

/// Figures of the summary that are ratios, rates and times; the others are counts.
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
    let count = names_c.iter().map(|name| {
        (
            *name,
            Arc::new(
                rows.iter()
                    .map(|row| row[*name].as_u64())
                    .collect::<UInt64Array>(),
            ) as ArrayRef,
        )
    });
    real.chain(count).collect()
}

fn flows(flows: &Map<String, Value>) -> Columns {
    let names: Vec<&String> = flows.keys().collect();
    let rows: Vec<&Value> = flows.values().collect();
    let mut columns: Columns = vec![("flow", strings(&names, |name| Some((*name).clone())))];
    columns.extend(figures(&rows, &FLOW_FLOATS, &FLOW_COUNTS));
    let ended = |row: &&Value| row["ended"].as_str().map(str::to_owned);
    columns.push(("ended", strings(&rows, ended)));
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
        ("link", strings(&rows, |row| Some(row.0.clone()))),
        ("direction", strings(&rows, |row| Some(row.1.to_owned()))),
    ];
    columns.extend(figures(&values, &LINK_FLOATS, &LINK_COUNTS));
    columns
}

/// Bytes of a flow as full segments.
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
            strings(rows, |s| Some(run.network.flow_name(s.flow).to_owned())),
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
        (
            "state",
            strings(rows, |s| Some(s.snapshot.state.name().to_owned())),
        ),
    ]
}

/// The columns of [`samples`] that a trace knows, and a few more.
fn ack_samples<B: Body>(run: &Finished<B>) -> Columns {
    let rows = &run.samples.acks;
    let srtt = |d: Duration| (!d.is_zero()).then(|| d.as_millis_f64());
    vec![
        ("time_s", floats(rows, |s| Some(s.at.as_secs_f64()))),
        (
            "flow",
            strings(rows, |s| Some(run.network.flow_name(s.flow).to_owned())),
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
        ("state", strings(rows, |s| Some(s.state.name().to_owned()))),
        (
            "congestion_control",
            strings(rows, |s| run.samples.controls.get(s.control).cloned()),
        ),
    ]
}

fn link_samples<B: Body>(run: &Finished<B>) -> Columns {
    let rows = &run.samples.links;
    let direction = |index: usize| if index == 0 { "forward" } else { "reverse" };
    vec![
        ("time_s", floats(rows, |s| Some(s.at.as_secs_f64()))),
        ("link", strings(rows, |s| Some(run.links[s.link].0.clone()))),
        (
            "direction",
            strings(rows, |s| Some(direction(s.direction).to_owned())),
        ),
        ("queue_packets", counts(rows, |s| s.queue_packets as u64)),
        ("queue_bytes", counts(rows, |s| s.queue_bytes)),
        ("sent_packets", counts(rows, |s| s.sent_packets)),
        ("dropped_packets", counts(rows, |s| s.dropped_packets)),
    ]
}

fn group_samples<B: Body>(run: &Finished<B>) -> Columns {
    let rows = &run.samples.groups;
    let name = |s: &GroupSample| Some(run.groups[s.group].0.clone());
    vec![
        ("time_s", floats(rows, |s| Some(s.at.as_secs_f64()))),
        ("group", strings(rows, name)),
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

fn packets<B: Body>(run: &Finished<B>) -> Columns {
    let (rows, needed): (Vec<&PacketRow>, Vec<Option<bool>>) = run
        .network
        .probe()
        .log()
        .map_or_else(Default::default, |log| {
            let counted = |(row, _): &(&PacketRow, Option<bool>)| row.counts();
            log.rows().zip(log.needed()).filter(counted).unzip()
        });
    let rows = rows.as_slice();
    let seconds = |at: Instant| at.as_secs_f64();
    let fate = |row: &PacketRow| match (row.received, row.lost) {
        (Some(_), _) => "delivered",
        (None, Some((_, Fate::Dropped))) => "dropped",
        (None, Some(_)) => "lost",
        (None, None) => "in-flight",
    };
    vec![
        (
            "flow",
            strings(rows, |row| Some(run.network.flow_name(row.flow).to_owned())),
        ),
        (
            "direction",
            strings(rows, |row| Some(row.direction.name().to_owned())),
        ),
        (
            "packet_index",
            Arc::new(
                rows.iter()
                    .map(|row| Some(row.index))
                    .collect::<UInt32Array>(),
            ),
        ),
        ("sequence_bytes", counts(rows, |row| row.sequence)),
        ("payload_bytes", counts(rows, |row| u64::from(row.payload))),
        ("size_bytes", counts(rows, |row| u64::from(row.size))),
        ("retransmission", flags(rows, |row| row.retransmission)),
        (
            "cause",
            strings(rows, |row| row.cause.map(|cause| cause.name().to_owned())),
        ),
        ("needed", Arc::new(BooleanArray::from(needed))),
        ("sent_s", floats(rows, |row| Some(seconds(row.sent)))),
        ("received_s", floats(rows, |row| row.received.map(seconds))),
        ("fate", strings(rows, |row| Some(fate(row).to_owned()))),
        (
            "where",
            strings(rows, |row| {
                row.lost
                    .filter(|_| row.received.is_none())
                    .map(|(at, _)| run.network.element_name(at).to_owned())
            }),
        ),
        (
            "queue_delay_ms",
            floats(rows, |row| Some(row.queue_delay.as_millis_f64())),
        ),
        ("reordered", flags(rows, |row| row.reordered)),
        ("reordering_extent_packets", counts(rows, |row| row.extent)),
    ]
}

fn window_events<B: Body>(run: &Finished<B>) -> Columns {
    let log = run.network.probe().log();
    let rows: &[WindowRow] = log.map_or(&[], |log| log.windows());
    let packets = in_packets(run);
    vec![
        (
            "flow",
            strings(rows, |row| Some(run.network.flow_name(row.flow).to_owned())),
        ),
        ("time_s", floats(rows, |row| Some(row.at.as_secs_f64()))),
        ("event", strings(rows, |row| Some(row.event().to_owned()))),
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
