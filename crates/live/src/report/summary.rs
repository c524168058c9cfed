//! Computes the figures of the summary from samples and outcomes.

use std::{collections::BTreeMap, fs, io};

use anabranch_core::{
    histogram::Histogram,
    packet::FlowId,
    units::{Duration, Instant},
};
use anabranch_engine::{
    network::{Completions, Ends as FlowEnds},
    summary::{ExchangeSummary, TransferSummary, jain_index, seconds},
};
use anabranch_path::link::Window;
use anabranch_scenario::{Resolved, ResolvedFlow, workload::Config};
use serde_json::{Map, Value, json};

use crate::{
    apps::{application::Outcome, datagram, limits, sampler::Sample, stage::Side, transfers},
    engine::{audit::Ends, endpoint::Own, play::Done},
    kernel::{host::LiveHost, sys::tcp_info::TcpInfo},
    plan::{devices, names, settings::is_carried, times::asked_window},
};

/// `TCP_ESTABLISHED`.
const ESTABLISHED: u8 = 1;
/// `TCP_SYN_SENT`.
const SYN_SENT: u8 = 2;
/// `TCP_CLOSE`.
const CLOSED: u8 = 7;
/// The kernel's value if there is no round-trip time yet.
const NO_RTT: u32 = u32::MAX;

/// Writes figures from the kernel's state of the flows into the summary, where the model, which
/// sees only packets, has none. Returns Jain's index.
pub fn fill_in(flows: &mut Map<String, Value>, resolved: &Resolved, done: &Done) -> Option<f64> {
    let (mut goodputs, samples) = (Vec::new(), &done.samples);
    for (index, (flow, outcomes)) in resolved.flows.iter().zip(&done.outcomes).enumerate() {
        let Some(Value::Object(summary)) = flows.get_mut(&flow.name) else {
            continue;
        };
        let [sender, receiver] = outcomes;
        if let (Some(sent), Some(read)) = (&sender.datagrams, &receiver.datagrams) {
            goodputs.extend(datagrams(summary, flow, resolved, (sent, read)));
            continue;
        }
        if let (Some(sent), Some(read)) = (&sender.transfers, &receiver.transfers) {
            goodputs.extend(transfers(summary, flow, resolved, (sent, read)));
            continue;
        }
        if is_carried(flow, resolved) {
            // Only the program itself knows its goodput; the model sees only packets.
            for key in ["goodput_mbit_s", "delivered_bytes"] {
                summary.insert(key.into(), Value::Null);
            }
            // The flow ends with its programs.
            let (start, end) = asked_window(flow, resolved);
            let arrived = done.moved.arrived_of(index);
            throughput(summary, (start, end.min(arrived.at)), arrived.ip_bytes);
            continue;
        }
        let of = |side| -> Vec<Sample> {
            let own = samples.iter().filter(|s| s.flow == index && s.side == side);
            knowing(own.copied().collect())
        };
        let figures = Figures {
            window: window(flow, resolved, outcomes),
            size: match &flow.workload {
                Config::File(file) => Some(file.size.get()),
                _ => None,
            },
            completed: completion(flow, resolved, outcomes).is_some(),
            from_start: flow.start >= Instant::START + resolved.warmup,
            sender: of(Side::Sender),
            receiver: of(Side::Receiver),
        };
        goodputs.extend(figures.goodput_mbit_s());
        throughput(
            summary,
            figures.window,
            done.moved.arrived_of(index).ip_bytes,
        );
        figures.write(summary);
        limits::write(summary, &figures.sender, figures.window, is_paced(flow));
        let took = completion(flow, resolved, outcomes).map(|at| (at - flow.start).as_secs_f64());
        summary.insert("flow_completion_time_s".into(), took.into());
        let (ended, at) = flow_ends(flow, resolved, outcomes).first();
        summary.insert("ended".into(), json!(ended));
        summary.insert("ended_at_s".into(), at.map(seconds).into());
        if crate::plan::settings::connects_back(flow) {
            let completions = completions(&receiver.exchanges, asked_window(flow, resolved));
            let exchanges = ExchangeSummary::from(&completions);
            summary.insert(
                "exchanges".into(),
                serde_json::to_value(exchanges).expect("plain data"),
            );
        }
    }
    jain_index(&goodputs)
}

/// Whether a flow's data may wait for pacing.
fn is_paced(flow: &ResolvedFlow) -> bool {
    flow.stack.pacing || flow.cc.sets_its_rate()
}

/// The end of a flow of one connection.
fn flow_ends(flow: &ResolvedFlow, resolved: &Resolved, outcomes: &[Outcome; 2]) -> FlowEnds {
    let stop = flow
        .stop
        .filter(|stop| *stop < Instant::START + resolved.duration);
    let stops = outcomes[1].read > 0 && !matches!(flow.workload, Config::File(_));
    FlowEnds {
        completed: completion(flow, resolved, outcomes),
        broken: [outcomes[0].broken, outcomes[1].broken],
        stopped: stop.filter(|_| stops),
    }
}

/// The samples with valid counters. The kernel clears the counters of a socket whose connect()
/// failed.
fn knowing(samples: Vec<Sample>) -> Vec<Sample> {
    let opened = samples.iter().any(|s| s.info.state == ESTABLISHED);
    let waits = samples.iter().any(|s| s.info.state == SYN_SENT);
    if opened || !waits {
        return samples;
    }
    let kept = samples.into_iter();
    kept.filter(|s| s.info.state != CLOSED).collect()
}

/// Requests and responses in the measured time, counted separately: responses to earlier requests
/// and requests answered later both count.
fn completions(
    exchanges: &[(Instant, Option<Duration>)],
    (start, end): (Instant, Instant),
) -> Completions {
    let window = Window::new(start, end);
    let asked = exchanges.iter().filter(|(at, _)| window.contains(*at));
    let answered = exchanges
        .iter()
        .filter_map(|(at, took)| Some((*at, (*took)?)));
    Completions {
        started: asked.count() as u64,
        times: answered
            .filter(|(at, took)| window.contains(at.saturating_add(*took)))
            .map(|(_, took)| took)
            .collect(),
    }
}

/// Checks that the data read equals the data written, octet for octet.
///
/// # Errors
/// With the first flow in which it differs.
pub fn check_content(resolved: &Resolved, outcomes: &[[Outcome; 2]]) -> io::Result<()> {
    for (flow, outcomes) in resolved.flows.iter().zip(outcomes) {
        for (outcome, side) in outcomes.iter().zip(flow.ends) {
            if let Some(wrong) = outcome.wrong {
                return Err(io::Error::other(format!(
                    "{wrong} that `{}` read from `{}` differs from the written data",
                    resolved.nodes[side], flow.name
                )));
            }
        }
    }
    Ok(())
}

/// The ends of each flow: the TCP implementation, the negotiated options, and the octets written
/// and read.
pub fn ends(resolved: &Resolved, own: &[[Option<Own>; 2]], done: &Done) -> Map<String, Value> {
    let mut all = Map::new();
    for (index, flow) in resolved.flows.iter().enumerate() {
        // The audit counts datagrams, and each transfer is a separate connection.
        let [sender, _] = &done.outcomes[index];
        let is_other = sender.datagrams.is_some() || sender.transfers.is_some();
        if is_other || is_carried(flow, resolved) {
            continue;
        }
        let of = |side: Side| {
            let own = &own[index][side as usize];
            let outcome = &done.outcomes[index][side as usize];
            let mut samples = done.samples.iter().rev();
            // The options of a closed connection are no longer available.
            let last = samples.find(|s| (s.flow, s.side) == (index, side) && s.info.options != 0);
            let options = last.map_or(0, |sample| sample.info.options);
            json!({
                "tcp": if own.is_some() { "own" } else { "kernel" },
                "written_bytes": outcome.written,
                "read_bytes": outcome.read,
                "timestamps": options & TcpInfo::TIMESTAMPS != 0,
                "sack": options & TcpInfo::SACK != 0,
                "window_scaling": options & TcpInfo::WINDOW_SCALING != 0,
                "ecn": options & TcpInfo::ECN != 0,
                "endpoint": own.as_ref().map(Own::report),
            })
        };
        let both = json!({ "from": of(Side::Sender), "to": of(Side::Receiver) });
        all.insert(flow.name.clone(), both);
    }
    all
}

/// The kernel's TCP counters of each host.
pub fn counters(
    resolved: &Resolved,
    counters: &[Option<BTreeMap<String, u64>>],
) -> Map<String, Value> {
    let hosts = resolved.nodes.iter().zip(counters);
    hosts
        .filter_map(|(name, counters)| Some((name.clone(), json!(counters.as_ref()?))))
        .collect()
}

/// The measured time of a flow.
pub fn window(
    flow: &ResolvedFlow,
    resolved: &Resolved,
    outcomes: &[Outcome; 2],
) -> (Instant, Instant) {
    let (start, end) = asked_window(flow, resolved);
    (start, completion(flow, resolved, outcomes).unwrap_or(end))
}

/// The time at which a file was complete, if within the measured time.
fn completion(
    flow: &ResolvedFlow,
    resolved: &Resolved,
    [_, receiver]: &[Outcome; 2],
) -> Option<Instant> {
    let (_, end) = asked_window(flow, resolved);
    receiver.completed.filter(|at| *at <= end)
}

/// The counts of the two ends of each UDP flow.
pub fn datagram_ends(resolved: &Resolved, outcomes: &[[Outcome; 2]]) -> Vec<Ends> {
    let flows = resolved.flows.iter().zip(outcomes).zip(0..);
    let counted = flows.filter_map(|((flow, [sender, receiver]), id)| {
        Some(Ends {
            name: flow.name.clone(),
            flow: FlowId(id),
            written: sender.datagrams.as_ref()?.datagrams,
            read: receiver.datagrams.as_ref()?.datagrams,
        })
    });
    counted.collect()
}

/// The lateness of scheduled writes of all applications.
pub fn lateness(outcomes: &[[Outcome; 2]]) -> Histogram<7> {
    let mut all = Histogram::default();
    for outcome in outcomes.iter().flatten() {
        all.merge(&outcome.lateness);
    }
    all
}

/// Writes the figures of a UDP flow. Returns its goodput.
fn datagrams(
    summary: &mut Map<String, Value>,
    flow: &ResolvedFlow,
    resolved: &Resolved,
    (sent, read): (&datagram::Counted, &datagram::Counted),
) -> Option<f64> {
    let goodput = goodput(summary, asked_window(flow, resolved), read.delivered_bytes);
    let p95 = read.delay.percentile(95.0).map(Duration::as_millis_f64);
    for (key, value) in [
        ("sent_packets", sent.measured_datagrams.into()),
        ("mean_one_way_delay_ms", read.delay.mean_ms().into()),
        ("p95_one_way_delay_ms", p95.into()),
    ] {
        summary.insert(key.to_owned(), value);
    }
    goodput
}

/// Writes the figures of a flow of many transfers. Returns its goodput.
fn transfers(
    summary: &mut Map<String, Value>,
    flow: &ResolvedFlow,
    resolved: &Resolved,
    (sent, read): (&transfers::Counted, &transfers::Counted),
) -> Option<f64> {
    let goodput = goodput(summary, asked_window(flow, resolved), read.delivered_bytes);
    let completions = Completions {
        started: sent.completions.started,
        times: read.completions.times.clone(),
    };
    let completions = TransferSummary::from(&completions);
    for (key, value) in [
        ("sent_packets", sent.sent_packets.into()),
        ("retransmitted_packets", sent.retransmitted_packets.into()),
        (
            "spurious_retransmissions",
            sent.spurious_retransmissions.into(),
        ),
        ("timeouts", sent.timeouts.into()),
        (
            "transfers",
            serde_json::to_value(completions).expect("plain data"),
        ),
        // As in the simulator, there are no such figures of individual connections.
        ("reordered_ratio", Value::Null),
        ("reordering_extent_p95_packets", Value::Null),
        ("reordering", Value::Null),
    ] {
        summary.insert(key.to_owned(), value);
    }
    goodput
}

fn goodput(
    summary: &mut Map<String, Value>,
    (start, end): (Instant, Instant),
    bytes: u64,
) -> Option<f64> {
    let time = end.saturating_since(start).as_secs_f64();
    let goodput = (time > 0.0).then(|| bytes as f64 * 8.0 / time / 1e6);
    summary.insert("goodput_mbit_s".into(), goodput.into());
    summary.insert("delivered_bytes".into(), bytes.into());
    goodput
}

fn throughput(summary: &mut Map<String, Value>, (start, end): (Instant, Instant), bytes: u64) {
    let time = end.saturating_since(start).as_secs_f64();
    let rate = (time > 0.0).then(|| bytes as f64 * 8.0 / time / 1e6);
    summary.insert("throughput_mbit_s".into(), rate.into());
}

struct Figures {
    window: (Instant, Instant),
    /// Size of the file in bytes, if the flow is a file.
    size: Option<u64>,
    /// Whether all of it has arrived.
    completed: bool,
    /// Whether counters count from zero, because the measured time begins with the flow.
    from_start: bool,
    sender: Vec<Sample>,
    receiver: Vec<Sample>,
}

impl Figures {
    /// The samples nearest to the start and end of the window, with their times, to which the
    /// counters belong. The start is exact if the measured time begins with the flow.
    fn edges(&self, samples: &[Sample]) -> Option<[(Instant, TcpInfo); 2]> {
        let (start, end) = self.window;
        let nearest = |edge: Instant| {
            let far = |at: Instant| at.saturating_since(edge).max(edge.saturating_since(at));
            let found = samples.iter().min_by_key(|s| far(s.at));
            found.map(|s| (s.at, s.info))
        };
        let last = nearest(end)?;
        let first = if self.from_start {
            (start, TcpInfo::default())
        } else {
            nearest(start)?
        };
        Some([first, last])
    }

    fn inside(&self) -> impl Iterator<Item = &TcpInfo> {
        let (start, end) = self.window;
        let inside = self
            .sender
            .iter()
            .filter(move |s| s.at >= start && s.at <= end);
        inside
            .map(|s| &s.info)
            .filter(|info| info.rtt_us > 0 && info.state >= ESTABLISHED)
    }

    fn delivered(&self) -> Option<(u64, Duration)> {
        let [(from, before), (to, after)] = self.edges(&self.receiver)?;
        if let Some(size) = self.size.filter(|_| self.completed) {
            let bytes = size.saturating_sub(before.data_received());
            return Some((bytes, self.window.1.saturating_since(from)));
        }
        let bytes = after.data_received().saturating_sub(before.data_received());
        let to = if self.window.1 < to {
            self.window.1
        } else {
            to
        };
        Some((bytes, to.saturating_since(from)))
    }

    /// Retransmissions of the SYN or SYN-ACK: all retransmissions until the connection opened.
    fn opening(&self) -> u32 {
        let open = self.sender.iter().find(|s| s.info.state == ESTABLISHED);
        let last = open.or(self.sender.last());
        last.map_or(0, |sample| sample.info.total_retrans)
    }

    fn goodput_mbit_s(&self) -> Option<f64> {
        let (bytes, time) = self
            .delivered()
            .unwrap_or((0, self.window.1.saturating_since(self.window.0)));
        (!time.is_zero()).then(|| bytes as f64 * 8.0 / time.as_secs_f64() / 1e6)
    }

    fn write(&self, summary: &mut Map<String, Value>) {
        let mut put = |key: &str, value: Value| {
            summary.insert(key.to_owned(), value);
        };
        put("goodput_mbit_s", self.goodput_mbit_s().into());
        put(
            "delivered_bytes",
            self.delivered().map_or(0, |(bytes, _)| bytes).into(),
        );
        if let Some([(_, before), (_, after)]) = self.edges(&self.sender) {
            // The kernel's counters have 32 bits and wrap.
            let count = |of: fn(&TcpInfo) -> u32| of(&after).wrapping_sub(of(&before));
            let opening = self.opening();
            let syns = |info: &TcpInfo| info.total_retrans.min(opening);
            let retransmitted = count(|info| info.total_retrans);
            let sent = u64::from(count(|info| info.data_segs_out))
                + u64::from(syns(&after).saturating_sub(syns(&before)));
            // A retransmitted FIN without data counts as a retransmission too.
            put("sent_packets", sent.max(retransmitted.into()).into());
            put("retransmitted_packets", retransmitted.into());
            // A DSACK also reports a copy that the network made of a segment sent once.
            let duplicates = count(|info| info.dsack_dups);
            put(
                "spurious_retransmissions",
                duplicates.min(retransmitted).into(),
            );
            if after.knows_total_rto {
                let timeouts = after.total_rto.wrapping_sub(before.total_rto);
                put("timeouts", timeouts.into());
            }
            if after.min_rtt_us != NO_RTT && after.min_rtt_us > 0 {
                put("min_rtt_ms", (f64::from(after.min_rtt_us) / 1e3).into());
            }
        }
        let mean = |of: fn(&TcpInfo) -> f64| {
            let n = self.inside().count();
            (n > 0).then(|| self.inside().map(of).sum::<f64>() / n as f64)
        };
        put(
            "mean_cwnd_packets",
            mean(|info| info.snd_cwnd.into()).into(),
        );
        put(
            "mean_srtt_ms",
            mean(|info| f64::from(info.rtt_us) / 1e3).into(),
        );
    }
}

/// The properties of the machine that influence the results.
pub fn machine(
    resolved: &Resolved,
    hosts: &[Option<LiveHost>],
    applied: &[(&str, String)],
    is_awake: bool,
) -> Value {
    let namespace = hosts
        .iter()
        .flatten()
        .find_map(|host| host.namespace.as_ref());
    let name = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let settings = namespace.and_then(|namespace| namespace.inside(|| Ok(kernel_settings())).ok());
    let applied: Map<String, Value> = applied
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.as_str().into()))
        .collect();
    let offloads: Map<String, Value> = devices::all(resolved)
        .iter()
        .zip(hosts)
        .filter_map(|(device, host)| {
            let offloads = json!(host.as_ref()?.device.offloads().ok());
            Some((names::of_device(resolved, *device), offloads))
        })
        .collect();
    json!({
        "kernel": text(name.release()),
        "machine": text(name.machine()),
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "processor": processor(),
        "asked_to_stay_awake": is_awake,
        "idle_driver": idle_driver(),
        "offloads": offloads,
        "applied_settings": applied,
        "kernel_settings": settings,
    })
}

/// The driver for idle processors, by the kernel's name.
fn idle_driver() -> Option<String> {
    let told = fs::read_to_string("/sys/devices/system/cpu/cpuidle/current_driver").ok()?;
    Some(told.trim().to_owned())
}

/// The kernel's model name of the processor or, if there is none, its implementer and part number.
fn processor() -> Option<String> {
    let told = fs::read_to_string("/proc/cpuinfo").ok()?;
    let find = |key: &str| {
        let mut pairs = told.lines().filter_map(|line| line.split_once(':'));
        pairs.find_map(|(name, value)| (name.trim() == key).then(|| value.trim().to_owned()))
    };
    find("model name").or_else(|| {
        let (maker, part) = (find("CPU implementer")?, find("CPU part")?);
        Some(format!("CPU implementer {maker}, part {part}"))
    })
}

/// All settings of TCP and of the network core.
fn kernel_settings() -> Map<String, Value> {
    let mut names = Vec::new();
    for directory in ["net/ipv4", "net/core"] {
        let entries = fs::read_dir(format!("/proc/sys/{directory}"))
            .into_iter()
            .flatten();
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("tcp_") || directory == "net/core" {
                names.push(format!("{directory}/{name}"));
            }
        }
    }
    names.sort_unstable();
    let read = |name: String| {
        let value = fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        // A secret with which cookies could be forged.
        (!name.ends_with("_key")).then(|| (name, value.into()))
    };
    names.into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Detects a selection by the time of the request alone.
    #[test]
    fn responses_count_when_they_are_complete() {
        let at = Instant::from_millis;
        let took = |ms| Some(Duration::from_millis(ms));
        let exchanges = [
            (at(10), took(20)),
            // Requested before the measured time, and answered in it.
            (at(90), took(30)),
            (at(200), took(40)),
            // Answered after the measured time, at its very end, and never.
            (at(900), took(200)),
            (at(950), took(50)),
            (at(990), None),
        ];
        let counted = completions(&exchanges, (at(100), at(1000)));
        let times: Vec<u64> = counted
            .times
            .iter()
            .map(|t| t.as_nanos() / 1_000_000)
            .collect();
        assert_eq!((counted.started, times), (4, vec![30, 40, 50]));
    }
}
