//! From samples and outcomes to the figures of the summary.

use std::{collections::BTreeMap, fs, io};

use anabranch_core::units::{Duration, Instant};
use anabranch_model::{
    network::Completions,
    record::summary::{ExchangeSummary, jain_index},
    scenario::{Resolved, ResolvedFlow},
    workload::Config,
};
use serde_json::{Map, Value, json};

use crate::{
    application::{Outcome, Side},
    endpoint::Own,
    namespace::Namespace,
    play::Done,
    sampler::Sample,
    settings::is_carried,
    sys::tcp_info::TcpInfo,
};

/// `TCP_ESTABLISHED`.
const ESTABLISHED: u8 = 1;
/// What the kernel says where there is no round-trip time yet.
const NO_RTT: u32 = u32::MAX;

/// Writes what the kernel says of the flows over what the model, which sees packets alone, left open.
pub fn fill_in(
    flows: &mut Map<String, Value>,
    resolved: &Resolved,
    samples: &[Sample],
    outcomes: &[[Outcome; 2]],
) -> Option<f64> {
    let mut goodputs = Vec::new();
    for (index, (flow, outcomes)) in resolved.flows.iter().zip(outcomes).enumerate() {
        let Some(Value::Object(summary)) = flows.get_mut(&flow.name) else {
            continue;
        };
        if is_carried(flow, resolved) {
            // What a user's program counts it may say itself; the model sees packets alone.
            for key in ["goodput_mbit_s", "delivered_bytes"] {
                summary.insert(key.into(), Value::Null);
            }
            continue;
        }
        let of = |side| -> Vec<Sample> {
            let own = samples.iter().filter(|s| s.flow == index && s.side == side);
            own.copied().collect()
        };
        let figures = Figures {
            window: window(flow, resolved, outcomes),
            size: match &flow.workload {
                Config::File(file) => Some(file.size.get()),
                _ => None,
            },
            completed: outcomes[1].completed.is_some(),
            sender: of(Side::Sender),
            receiver: of(Side::Receiver),
        };
        goodputs.extend(figures.goodput_mbit_s());
        figures.write(summary);
        let [_, receiver] = outcomes;
        let took = receiver.completed.map(|at| (at - flow.start).as_secs_f64());
        summary.insert("flow_completion_time_s".into(), took.into());
        if crate::settings::connects_back(flow) {
            let (start, end) = figures.window;
            let counted = receiver
                .exchanges
                .iter()
                .filter(|(at, _)| *at >= start && *at < end);
            let completions = Completions {
                started: counted.clone().count() as u64,
                times: counted.filter_map(|(_, took)| *took).collect(),
            };
            let exchanges = ExchangeSummary::from(&completions);
            summary.insert(
                "exchanges".into(),
                serde_json::to_value(exchanges).expect("plain data"),
            );
        }
    }
    jain_index(&goodputs)
}

/// What is read must be what was written, octet for octet and once.
///
/// # Errors
/// With the first flow in which it is not.
pub fn check_content(resolved: &Resolved, outcomes: &[[Outcome; 2]]) -> io::Result<()> {
    for (flow, outcomes) in resolved.flows.iter().zip(outcomes) {
        for (outcome, side) in outcomes.iter().zip(flow.ends) {
            if let Some(at) = outcome.wrong {
                return Err(io::Error::other(format!(
                    "octet {at} that `{}` read from `{}` is not what was written there",
                    resolved.nodes[side], flow.name
                )));
            }
        }
    }
    Ok(())
}

/// Both ends of each flow: whose TCP it is, what both agreed on, what was written and read.
pub fn ends(resolved: &Resolved, own: &[[Option<Own>; 2]], done: &Done) -> Map<String, Value> {
    let mut all = Map::new();
    for (index, flow) in resolved.flows.iter().enumerate() {
        if is_carried(flow, resolved) {
            continue;
        }
        let of = |side: Side| {
            let own = &own[index][side as usize];
            let outcome = &done.outcomes[index][side as usize];
            let mut samples = done.samples.iter().rev();
            // A connection that is closed has forgotten what it agreed on.
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

/// What each host's kernel counted.
pub fn counters(
    resolved: &Resolved,
    counters: &[Option<BTreeMap<String, u64>>],
) -> Map<String, Value> {
    let hosts = resolved.nodes.iter().zip(counters);
    hosts
        .filter_map(|(name, counters)| Some((name.clone(), json!(counters.as_ref()?))))
        .collect()
}

/// When a flow counts.
fn window(flow: &ResolvedFlow, resolved: &Resolved, outcomes: &[Outcome; 2]) -> (Instant, Instant) {
    let run = Instant::START + resolved.duration;
    let end = flow.stop.unwrap_or(run).min(run);
    (
        flow.start.max(Instant::START + resolved.warmup),
        outcomes[1].completed.map_or(end, |at| at.min(end)),
    )
}

struct Figures {
    window: (Instant, Instant),
    /// Bytes of the file, where it is one.
    size: Option<u64>,
    /// All of it has arrived.
    completed: bool,
    sender: Vec<Sample>,
    receiver: Vec<Sample>,
}

impl Figures {
    /// The last sample before the window, or nothing counted yet; and the last inside. The times are
    /// those of the samples: what was counted belongs to them.
    fn edges(&self, samples: &[Sample]) -> Option<[(Instant, TcpInfo); 2]> {
        let (start, end) = self.window;
        // Half an interval: the sample at an edge belongs to it though it was taken a little later.
        let slack = Duration::from_millis(5);
        let upto = |edge: Instant| {
            let found = samples
                .iter()
                .rev()
                .find(|s| s.at <= edge.saturating_add(slack));
            found.map(|s| (s.at, s.info))
        };
        let first = upto(start).unwrap_or((start, TcpInfo::default()));
        let last = upto(end)?;
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
            let count =
                |of: fn(&TcpInfo) -> u64| Value::from(of(&after).saturating_sub(of(&before)));
            put("sent_packets", count(|info| info.data_segs_out.into()));
            put(
                "retransmitted_packets",
                count(|info| info.total_retrans.into()),
            );
            put(
                "spurious_retransmissions",
                count(|info| info.dsack_dups.into()),
            );
            if after.knows_total_rto {
                put("timeouts", count(|info| info.total_rto.into()));
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

/// The machine, as far as it has a say in what comes out.
pub fn machine(namespace: Option<&Namespace>, applied: &[(&str, String)]) -> Value {
    let name = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let settings = namespace.and_then(|namespace| namespace.inside(|| Ok(kernel_settings())).ok());
    let applied: Map<String, Value> = applied
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.as_str().into()))
        .collect();
    json!({
        "kernel": text(name.release()),
        "machine": text(name.machine()),
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "offloads": "off",
        "applied_settings": applied,
        "kernel_settings": settings,
    })
}

/// Every setting of TCP, and of the core what concerns it.
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
        // A secret that lets others forge cookies.
        (!name.ends_with("_key")).then(|| (name, value.into()))
    };
    names.into_iter().filter_map(read).collect()
}
