//! Computes the figures of the summary from samples and outcomes.

use std::{collections::BTreeMap, fs, io};

use anabranch_core::{
    histogram::Histogram,
    packet::FlowId,
    units::{Duration, Instant},
};
use anabranch_engine::{
    network::{Completions, Ends as FlowEnds},
    summary::{ExchangeSummary, FlowSummary, Named, TransferSummary, seconds},
};
use anabranch_path::link::Window;
use anabranch_scenario::{Resolved, ResolvedFlow, workload::Config};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    apps::{application::Outcome, limits, program::Ended, sampler::Sample, stage::Side, transfers},
    engine::{
        audit::{Audit, Ends},
        conservation::Packets,
        endpoint::{LiveEndpoint, Own},
        play::Done,
    },
    kernel::{
        host::LiveHost,
        sys::{interface::Offloads, tcp_info::TcpInfo},
    },
    plan::{
        controls::LiveControl,
        devices, names,
        settings::{connects_back, is_carried},
        times::asked_window,
    },
    report::trace::{LiveTrace, Traced},
};

/// `TCP_ESTABLISHED`.
const ESTABLISHED: u8 = 1;
/// `TCP_SYN_SENT`.
const SYN_SENT: u8 = 2;
/// `TCP_CLOSE`.
const CLOSED: u8 = 7;
/// The kernel's value if there is no round-trip time yet.
const NO_RTT: u32 = u32::MAX;

/// The parts of a summary that only live runs have.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("engine" = "live"))]
pub struct LiveSummary {
    /// The live engine's audit of its lateness and losses.
    pub audit: Audit,
    /// All packets of the run, step by step.
    pub packets: Packets,
    /// Outcomes of the user's programs.
    pub programs: Vec<Ended>,
    /// The two ends of each flow, by the flow's name.
    pub ends: Named<LiveEnds>,
    /// Each kernel's counters `Tcp` of `/proc/net/snmp`, by host.
    #[schemars(extend("unit" = "count"))]
    pub tcp_counters: Named<BTreeMap<String, u64>>,
    /// Congestion control of each flow in the kernel, by the flow's name.
    pub controls: Named<LiveControl>,
    /// Default congestion control of each host.
    #[schemars(extend("unit" = "text"))]
    pub default_controls: Named<String>,
    /// The trace of the kernel's TCP.
    pub trace: LiveTrace,
    /// Kernel, processors and the settings that were applied.
    pub machine: LiveMachine,
}

/// The two ends of a flow.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("engine" = "live"))]
pub struct LiveEnds {
    /// The end that sends the data.
    from: LiveEnd,
    /// The end that receives the data.
    to: LiveEnd,
}

/// One end of a flow: the owner of its TCP, the application's octets, and the negotiated options.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("engine" = "live"))]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the negotiated options are independent"
)]
pub struct LiveEnd {
    /// `kernel`, or `own` for our TCP.
    tcp: &'static str,
    /// Octets that the application wrote.
    written_bytes: u64,
    /// Octets that the application read.
    read_bytes: u64,
    /// Whether the timestamp option is in use.
    timestamps: bool,
    /// Whether SACK is in use.
    sack: bool,
    /// Whether the window scale option is in use.
    window_scaling: bool,
    /// Whether ECN is in use.
    ecn: bool,
    /// Counters of our TCP; null at a kernel.
    endpoint: Option<LiveEndpoint>,
}

/// Properties of the machine that influence the results.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("engine" = "live"))]
pub struct LiveMachine {
    /// Release of the kernel.
    kernel: String,
    /// Architecture, as in uname(1).
    machine: String,
    /// Processors that the run may use; 0 if unknown.
    processors: usize,
    /// Model of the processor, or its implementer and part number; null if unknown.
    processor: Option<String>,
    /// Whether idle processors were kept out of deep sleep.
    asked_to_stay_awake: bool,
    /// Driver for idle processors, by the kernel's name; null without one.
    idle_driver: Option<String>,
    /// Offloads of each interface; null if they cannot be read.
    offloads: Named<Option<Offloads>>,
    /// Settings that were applied to the hosts, by their names in `/proc/sys`.
    #[schemars(extend("unit" = "text"))]
    applied_settings: Named<String>,
    /// All settings of TCP and of the network core in a host, by their names in `/proc/sys`; null
    /// without a namespace.
    #[schemars(extend("unit" = "text"))]
    kernel_settings: Option<Named<String>>,
}

/// A flow as the summary shows it: figures from the kernel's state, if the model, which sees only
/// packets, has none. `None` for flows that are not of the scenario.
pub fn shown(
    index: usize,
    mut summary: FlowSummary,
    resolved: &Resolved,
    (done, traced): (&Done, &Traced),
) -> Option<FlowSummary> {
    let flow = resolved.flows.get(index)?;
    let outcomes = &done.outcomes[index];
    fill_in(&mut summary, (index, flow), resolved, done);
    if let Some(count) = traced.recoveries_within(index, window(flow, resolved, outcomes)) {
        summary.fast_recoveries = Some(count);
    }
    Some(summary)
}

fn fill_in(
    summary: &mut FlowSummary,
    (index, flow): (usize, &ResolvedFlow),
    resolved: &Resolved,
    done: &Done,
) {
    let outcomes = &done.outcomes[index];
    let [sender, receiver] = outcomes;
    let asked = asked_window(flow, resolved);
    if let (Some(sent), Some(read)) = (&sender.datagrams, &receiver.datagrams) {
        delivered(summary, asked, read.delivered_bytes);
        summary.sent_packets = Some(sent.measured_datagrams);
        summary.mean_one_way_delay_ms = read.delay.mean_ms();
        summary.p95_one_way_delay_ms = read.delay.percentile(95.0).map(Duration::as_millis_f64);
        return;
    }
    if let (Some(sent), Some(read)) = (&sender.transfers, &receiver.transfers) {
        delivered(summary, asked, read.delivered_bytes);
        transfers(summary, sent, read);
        return;
    }
    let arrived = done.moved.arrived_of(index);
    if is_carried(flow, resolved) {
        // Only the program itself knows its goodput; the model sees only packets.
        summary.goodput_mbit_s = None;
        summary.delivered_bytes = None;
        // The flow ends with its programs.
        let (start, end) = asked;
        summary.throughput_mbit_s = rate((start, end.min(arrived.at)), arrived.ip_bytes);
        return;
    }
    let of = |side| -> Vec<Sample> {
        let all = done.samples.iter();
        let own = all.filter(|s| s.flow == index && s.side == side);
        knowing(own.copied().collect())
    };
    let completed = completion(flow, resolved, outcomes);
    let figures = Figures {
        window: window(flow, resolved, outcomes),
        size: match &flow.workload {
            Config::File(file) => Some(file.size.get()),
            _ => None,
        },
        completed: completed.is_some(),
        from_start: flow.start >= Instant::START + resolved.warmup,
        sender: of(Side::Sender),
        receiver: of(Side::Receiver),
    };
    summary.throughput_mbit_s = rate(figures.window, arrived.ip_bytes);
    figures.write(summary);
    limits::write(summary, &figures.sender, figures.window, is_paced(flow));
    summary.flow_completion_time_s = completed.map(|at| (at - flow.start).as_secs_f64());
    let (ended, at) = flow_ends(flow, resolved, outcomes).first();
    summary.ended = Some(ended);
    summary.ended_at_s = at.map(seconds);
    if connects_back(flow) {
        let completions = completions(&receiver.exchanges, asked);
        summary.exchanges = Some(ExchangeSummary::from(&completions));
    }
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

/// The ends of each flow.
pub fn ends(resolved: &Resolved, own: &[[Option<Own>; 2]], done: &Done) -> Named<LiveEnds> {
    let both = |(index, flow): (usize, &ResolvedFlow)| {
        // The audit counts datagrams, and each transfer is a separate connection.
        let [sender, _] = &done.outcomes[index];
        let is_other = sender.datagrams.is_some() || sender.transfers.is_some();
        if is_other || is_carried(flow, resolved) {
            return None;
        }
        let of = |side: Side| {
            let own = &own[index][side as usize];
            let outcome = &done.outcomes[index][side as usize];
            let mut samples = done.samples.iter().rev();
            // The options of a closed connection are no longer available.
            let last = samples.find(|s| (s.flow, s.side) == (index, side) && s.info.options != 0);
            let options = last.map_or(0, |sample| sample.info.options);
            LiveEnd {
                tcp: if own.is_some() { "own" } else { "kernel" },
                written_bytes: outcome.written,
                read_bytes: outcome.read,
                timestamps: options & TcpInfo::TIMESTAMPS != 0,
                sack: options & TcpInfo::SACK != 0,
                window_scaling: options & TcpInfo::WINDOW_SCALING != 0,
                ecn: options & TcpInfo::ECN != 0,
                endpoint: own.as_ref().map(Own::report),
            }
        };
        let ends = LiveEnds {
            from: of(Side::Sender),
            to: of(Side::Receiver),
        };
        Some((flow.name.clone(), ends))
    };
    resolved.flows.iter().enumerate().filter_map(both).collect()
}

/// The kernel's TCP counters of each host.
pub fn counters(
    resolved: &Resolved,
    counters: &[Option<BTreeMap<String, u64>>],
) -> Named<BTreeMap<String, u64>> {
    let hosts = resolved.nodes.iter().zip(counters);
    hosts
        .filter_map(|(name, counters)| Some((name.clone(), counters.clone()?)))
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

/// Writes the figures of a flow of many transfers.
fn transfers(summary: &mut FlowSummary, sent: &transfers::Counted, read: &transfers::Counted) {
    summary.sent_packets = Some(sent.sent_packets);
    summary.retransmitted_packets = Some(sent.retransmitted_packets);
    summary.spurious_retransmissions = Some(sent.spurious_retransmissions);
    summary.timeouts = sent.timeouts;
    summary.transfers = Some(TransferSummary::from(&Completions {
        started: sent.completions.started,
        times: read.completions.times.clone(),
    }));
    // As in the simulator, there are no such figures of individual connections.
    summary.reordered_ratio = None;
    summary.reordering_extent_p95_packets = None;
    summary.reordering = None;
}

fn delivered(summary: &mut FlowSummary, window: (Instant, Instant), bytes: u64) {
    summary.goodput_mbit_s = rate(window, bytes);
    summary.delivered_bytes = Some(bytes);
}

/// In Mbit/s; `None` for an empty window.
fn rate((start, end): (Instant, Instant), bytes: u64) -> Option<f64> {
    let time = end.saturating_since(start).as_secs_f64();
    (time > 0.0).then(|| bytes as f64 * 8.0 / time / 1e6)
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

    fn write(&self, summary: &mut FlowSummary) {
        summary.goodput_mbit_s = self.goodput_mbit_s();
        summary.delivered_bytes = Some(self.delivered().map_or(0, |(bytes, _)| bytes));
        if let Some([(_, before), (_, after)]) = self.edges(&self.sender) {
            // The kernel's counters have 32 bits and wrap.
            let count = |of: fn(&TcpInfo) -> u32| of(&after).wrapping_sub(of(&before));
            let opening = self.opening();
            let syns = |info: &TcpInfo| info.total_retrans.min(opening);
            let retransmitted = count(|info| info.total_retrans);
            let sent = u64::from(count(|info| info.data_segs_out))
                + u64::from(syns(&after).saturating_sub(syns(&before)));
            // A retransmitted FIN without data counts as a retransmission too.
            summary.sent_packets = Some(sent.max(retransmitted.into()));
            summary.retransmitted_packets = Some(retransmitted.into());
            // A DSACK also reports a copy that the network made of a segment sent once.
            let duplicates = count(|info| info.dsack_dups);
            summary.spurious_retransmissions = Some(duplicates.min(retransmitted).into());
            if after.knows_total_rto {
                let timeouts = after.total_rto.wrapping_sub(before.total_rto);
                summary.timeouts = Some(timeouts.into());
            }
            if after.min_rtt_us != NO_RTT && after.min_rtt_us > 0 {
                summary.min_rtt_ms = Some(f64::from(after.min_rtt_us) / 1e3);
            }
        }
        let mean = |of: fn(&TcpInfo) -> f64| {
            let n = self.inside().count();
            (n > 0).then(|| self.inside().map(of).sum::<f64>() / n as f64)
        };
        summary.mean_cwnd_packets = mean(|info| info.snd_cwnd.into());
        summary.mean_srtt_ms = mean(|info| f64::from(info.rtt_us) / 1e3);
    }
}

/// The properties of the machine that influence the results.
pub fn machine(
    resolved: &Resolved,
    hosts: &[Option<LiveHost>],
    applied: &[(&str, String)],
    is_awake: bool,
) -> LiveMachine {
    let namespace = hosts
        .iter()
        .flatten()
        .find_map(|host| host.namespace.as_ref());
    let name = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let settings = namespace.and_then(|namespace| namespace.inside(|| Ok(kernel_settings())).ok());
    let applied = applied.iter();
    let offloads = devices::all(resolved)
        .iter()
        .zip(hosts)
        .filter_map(|(device, host)| {
            let offloads = host.as_ref()?.device.offloads().ok();
            Some((names::of_device(resolved, *device), offloads))
        })
        .collect();
    LiveMachine {
        kernel: text(name.release()),
        machine: text(name.machine()),
        processors: std::thread::available_parallelism().map_or(0, usize::from),
        processor: processor(),
        asked_to_stay_awake: is_awake,
        idle_driver: idle_driver(),
        offloads,
        applied_settings: applied
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
        kernel_settings: settings,
    }
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
fn kernel_settings() -> Named<String> {
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
        (!name.ends_with("_key")).then_some((name, value))
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
