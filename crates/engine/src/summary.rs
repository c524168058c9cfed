//! The summary of a run, with the names on which scripts rely.
//!
//! A figure that is not applicable is `null`, never 0.

use std::{borrow::Cow, collections::BTreeMap};

use anabranch_core::{
    body::Body,
    packet::FlowId,
    reordering,
    units::{Duration, Instant},
};
use anabranch_fec::{self as fec};
use anabranch_path::group::energy::PortTimes;
use anabranch_scenario::{ResolvedText, workload::CaptureSummary};
use anabranch_tcp::{LimitTimes, Refusal, Stats};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

mod gateway;

pub use gateway::{GatewaySummary, RouteSummary};

use crate::{
    network::{
        Completions, Ended, FlowReport, GroupId, GroupReport, LinkId, LinkReport, Network,
        OneWayDelay,
    },
    topology::CompiledGateway,
};

/// The version of the summary's format.
pub const FORMAT: u32 = 1;

/// The results of one run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Summary {
    /// Version of this document's format.
    #[schemars(extend("unit" = ""))]
    pub format: u32,
    /// Title of the scenario, or the name of its file.
    pub scenario: String,
    /// Seed of the run.
    #[schemars(extend("unit" = ""))]
    pub seed: u64,
    /// `sim`, `live` or `kernel`.
    pub engine: &'static str,
    /// Length of the run.
    pub duration_s: f64,
    /// Hash over all packet observations; null if it was turned off, and live.
    pub digest: Option<String>,
    /// Version of the program.
    pub anabranch_version: &'static str,
    /// The scenario with every default written out.
    #[schemars(with = "BTreeMap<String, Value>")]
    pub resolved_scenario: ResolvedText,
    /// Operating system and processor.
    pub platform: String,
    /// Figures of each flow, by its name.
    #[schemars(with = "BTreeMap<String, FlowSummary>")]
    pub flows: Map<String, Value>,
    /// Figures of each direction of each link, by its name; of groups too.
    #[schemars(with = "BTreeMap<String, BTreeMap<String, LinkSummary>>")]
    pub links: Map<String, Value>,
    /// Figures of each link group, by its name.
    #[schemars(with = "BTreeMap<String, GroupSummary>")]
    pub groups: Map<String, Value>,
    /// Figures of each direction of each gateway, by its name.
    #[schemars(with = "BTreeMap<String, BTreeMap<String, GatewaySummary>>")]
    pub gateways: Map<String, Value>,
    /// Distribution of goodput among the flows.
    pub fairness: Fairness,
    /// The work of the engine, and its cost.
    pub engine_stats: EngineStats,
    /// Packets read and packets skipped of each capture that a flow replays, by the flow's table.
    #[schemars(with = "BTreeMap<String, CaptureSummary>")]
    pub captures: Map<String, Value>,
    /// True if the figures are invalid, because the engine was too late or lost packets; omitted
    /// otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("engine" = "live"))]
    pub tainted: Option<bool>,
    /// The live engine's audit of itself, programs, trace and machine; of `kernel`, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("$ref" = "#/$defs/LiveSummary", "engine" = "live"))]
    pub live: Option<Value>,
}

/// Entries by name, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Named<T>(pub Vec<(String, T)>);

impl<T> FromIterator<(String, T)> for Named<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, entry)| (name, entry)))
    }
}

impl<T: JsonSchema> JsonSchema for Named<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        BTreeMap::<String, T>::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, T>::json_schema(generator)
    }
}

/// Distribution of goodput among the flows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "FairnessSummary")]
pub struct Fairness {
    /// Jain's index of the flows' goodputs (1/n‥1); null without goodput.
    #[schemars(extend("unit" = "ratio (0‥1)"))]
    pub jain_index: Option<f64>,
}

/// The work of the engine, and its cost.
// The model itself has no clock: the caller fills in times and memory.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct EngineStats {
    /// Events handled.
    pub events: u64,
    /// Data packets that reached the far end of their flow.
    pub delivered_packets: u64,
    /// Processor time.
    pub cpu_s: Option<f64>,
    /// Elapsed time.
    pub wall_s: Option<f64>,
    /// The most memory that the process has held.
    pub peak_rss_bytes: Option<u64>,
}

/// One flow. Over UDP, all figures of TCP are null. The four shares of limits leave pacing,
/// recovery, and the time before the connection is established and after it ends. If a flow ended
/// before the warm-up did, its rates are null in the document, and reading them from a result of the
/// simulator raises an error.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct FlowSummary {
    /// In-order application octets × 8 ÷ the measured time; null live for a program of the user's.
    #[schemars(extend("never_null" = "simulator"))]
    pub goodput_mbit_s: Option<f64>,
    /// IP octets that arrived at the receiver × 8 ÷ the measured time.
    #[schemars(extend("never_null" = "simulator"))]
    pub throughput_mbit_s: Option<f64>,
    /// In-order application octets; null live for a program of the user's.
    #[schemars(extend("never_null" = "simulator"))]
    pub delivered_bytes: Option<u64>,
    /// Packets with data, and retransmissions of data and of a SYN, without pure acknowledgments.
    pub sent_packets: Option<u64>,
    /// Retransmissions of data, of a SYN and of a SYN-ACK.
    pub retransmitted_packets: Option<u64>,
    /// Retransmissions of data or of a SYN that earlier transmissions delivered, even if the
    /// retransmission was lost; live, as DSACK reports them.
    #[schemars(extend("unit" = "packets"))]
    pub spurious_retransmissions: Option<u64>,
    /// Fast recoveries begun; null live without a trace.
    pub fast_recoveries: Option<u64>,
    /// Expiries of the retransmission timer.
    pub timeouts: Option<u64>,
    /// Time-weighted mean of the congestion window ÷ MSS, inflation excluded.
    pub mean_cwnd_packets: Option<f64>,
    /// Mean of the smoothed round-trip time, sampled every 10 ms.
    pub mean_srtt_ms: Option<f64>,
    /// Smallest round-trip time measured.
    pub min_rtt_ms: Option<f64>,
    /// Share of the measured time in which the congestion window limited the sender, outside of
    /// recovery.
    pub cwnd_limited_share: Option<f64>,
    /// Share of the measured time in which the receive window limited the sender.
    pub rwnd_limited_share: Option<f64>,
    /// Share of the measured time in which the send buffer limited the sender.
    pub sndbuf_limited_share: Option<f64>,
    /// Share of the measured time in which the application had no data to send.
    pub application_limited_share: Option<f64>,
    /// Time from the flow's start to the last in-order delivery of a file; null for other workloads.
    pub flow_completion_time_s: Option<f64>,
    /// Outcome of the connection: `completed` (all of a file arrived, or the application stopped at
    /// `stop`), `running`, `reset`, `gave-up` (no answer for too long) or `refused` (a reset answered
    /// the SYN); null for UDP, for workloads of several connections and for hosts supplied by the
    /// caller.
    #[schemars(with = "Option<String>")]
    pub ended: Option<Ended>,
    /// Time of the end since the start of the run; null while the flow runs.
    pub ended_at_s: Option<f64>,
    /// Share of packets that arrived reordered (RFC 4737 §4.1).
    pub reordered_ratio: Option<f64>,
    /// 95th percentile of the reordering extent of reordered packets (RFC 4737 §4.2).
    pub reordering_extent_p95_packets: Option<u64>,
    /// Reordering in more detail; null if nothing arrived.
    pub reordering: Option<ReorderingSummary>,
    /// Segments and SACK blocks, received by either end, that no correct peer sends: the sum of
    /// `refused` without `old_ack`, `old_reset` and `old_timestamp`, which late packets may explain.
    pub malformed_segments: Option<u64>,
    /// Segments and blocks that either end refused, by reason: `unsent_ack`, `old_ack`, `sack_block`,
    /// `blind_reset`, `old_reset`, `blind_syn`, `outside_window`, `missing_timestamp`,
    /// `old_timestamp`, `flags`. Reasons with zero are omitted.
    #[schemars(extend("unit" = "count"))]
    pub refused: Option<BTreeMap<&'static str, u64>>,
    /// Transfers of a workload of many transfers; null otherwise.
    pub transfers: Option<TransferSummary>,
    /// Requests and their responses; null for other workloads.
    pub exchanges: Option<ExchangeSummary>,
    /// Mean time from a datagram's sending to its arrival; null over TCP.
    pub mean_one_way_delay_ms: Option<f64>,
    /// 95th percentile of the time from a datagram's sending to its arrival; null over TCP.
    pub p95_one_way_delay_ms: Option<f64>,
    /// Forward error correction; null without it.
    pub fec: Option<FecSummary>,
}

/// Forward error correction of a flow. All counts are of the data direction, from `from` to `to`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(extend("engine" = "simulator"))]
pub struct FecSummary {
    /// Redundant packets sent.
    pub redundant_packets: u64,
    /// IP octets of redundant packets.
    pub redundant_bytes: u64,
    /// Data packets that were recovered.
    pub recovered_packets: u64,
    /// Redundant packets ÷ all packets sent, without pure acknowledgments.
    pub redundancy_rate: Option<f64>,
    /// Redundant packets that recovered a packet ÷ redundant packets sent.
    pub effective_recovery_rate: Option<f64>,
    /// Times that the receiver began to hold acknowledgments.
    pub holds: u64,
    /// Acknowledgments held.
    pub held_acks: u64,
    /// Reasons for the end of holds.
    pub releases: FecReleases,
    /// Losses visible only to the error correction, as reported to the sender.
    pub hidden_losses: u64,
    /// Reductions of the window for these losses.
    pub hidden_reductions: u64,
    /// Redundant packets that were invalid.
    pub refused_packets: u64,
}

/// Reasons for the release of held acknowledgments, and the number of releases for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(extend("engine" = "simulator"))]
pub struct FecReleases {
    /// The missing packet was recovered.
    pub repaired: u64,
    /// The missing packet was retransmitted, or arrived late.
    pub retransmitted: u64,
    /// The group lost more packets than its redundancy can recover.
    pub second_gap: u64,
    /// The group ended.
    pub group_over: u64,
    /// The hold timed out.
    pub timeout: u64,
}

impl FecSummary {
    fn new([sender, receiver]: &[fec::Stats; 2], data_packets: u64) -> Self {
        let redundant = sender.redundant_sent;
        let ratio = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        Self {
            redundant_packets: redundant,
            redundant_bytes: sender.redundant_bytes,
            recovered_packets: receiver.recovered_packets,
            redundancy_rate: ratio(redundant, redundant + data_packets),
            effective_recovery_rate: ratio(receiver.redundant_useful, redundant),
            holds: receiver.holds,
            held_acks: receiver.held_acks,
            releases: FecReleases {
                repaired: receiver.released_repaired,
                retransmitted: receiver.released_retransmitted,
                second_gap: receiver.released_second_gap,
                group_over: receiver.released_group_over,
                timeout: receiver.released_timeout,
            },
            hidden_losses: sender.hidden_losses,
            hidden_reductions: sender.hidden_reductions,
            refused_packets: receiver.redundant_refused,
        }
    }
}

/// Reordering at a receiver in more detail.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReorderingSummary {
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Reordered packets.
    pub reordered_packets: u64,
    /// Largest extent.
    pub extent_max_packets: Option<u64>,
    /// n to the share of packets that are n-reordered (RFC 4737 §5.3).
    #[schemars(extend("unit" = "ratio (0‥1)"))]
    pub n_reordering: BTreeMap<u32, f64>,
    /// Displacement in packets to the share of packets (RFC 5236 §4).
    #[schemars(extend("unit" = "ratio (0‥1)"))]
    pub density: BTreeMap<i64, f64>,
}

/// Transfers of a workload with several connections.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct TransferSummary {
    /// Transfers begun in the measured time.
    pub started: u64,
    /// Transfers completed in the measured time.
    pub completed: u64,
    /// Mean completion time.
    pub mean_completion_time_s: Option<f64>,
    /// Median completion time.
    pub p50_completion_time_s: Option<f64>,
    /// 95th percentile of the completion time.
    pub p95_completion_time_s: Option<f64>,
    /// 99th percentile of the completion time.
    pub p99_completion_time_s: Option<f64>,
}

/// Requests and their responses over one connection. A response time lasts from the write of the
/// request to the arrival of the response's last octet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ExchangeSummary {
    /// Requests in the measured time.
    pub started: u64,
    /// Responses completed in the measured time.
    pub completed: u64,
    /// Mean response time.
    pub mean_response_time_ms: Option<f64>,
    /// Median response time.
    pub p50_response_time_ms: Option<f64>,
    /// 95th percentile of the response time.
    pub p95_response_time_ms: Option<f64>,
    /// 99th percentile of the response time.
    pub p99_response_time_ms: Option<f64>,
}

/// One direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct LinkSummary {
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets that the queue dropped.
    pub dropped_packets: u64,
    /// Packets that exceeded the MTU; null without one.
    pub too_big_packets: Option<u64>,
    /// Packets that an impairment lost.
    pub lost_packets: u64,
    /// Packets that left after a packet that had arrived later.
    pub reordered_packets: u64,
    /// Packets marked Congestion Experienced.
    pub marked_packets: u64,
    /// Bits sent ÷ the integral of capacity; null without a rate.
    #[schemars(extend("unit" = "ratio (0‥1)"))]
    pub utilization: Option<f64>,
    /// Time-weighted mean of the packets waiting.
    pub mean_queue_packets: Option<f64>,
    /// The most packets that waited at once.
    pub max_queue_packets: u32,
    /// 95th percentile of the time in the queue.
    pub p95_queue_delay_ms: Option<f64>,
    /// 99th percentile of the time in the queue.
    pub p99_queue_delay_ms: Option<f64>,
}

/// A link group.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct GroupSummary {
    /// Time-weighted mean number of members that carry forward packets.
    #[schemars(extend("unit" = "members"))]
    pub mean_active_members: Option<f64>,
    /// Time that members slept, summed over all members; a member with one sleeping end counts half.
    #[schemars(extend("unit" = "s"))]
    pub member_seconds_off: f64,
    /// Energy of the ports of both ends.
    pub energy_joules: f64,
    /// Energy per gigabit of packets sent in both directions.
    #[schemars(extend("unit" = "J/Gbit"))]
    pub joules_per_gigabit: Option<f64>,
    /// Decisions that changed the number of members.
    pub changes: u64,
    /// Share of whole milliseconds of the measured time in which the bytes arriving before the
    /// forward queue exceeded the capacity of the members active in that millisecond.
    pub overloaded_ms_share: Option<f64>,
    /// Time of ports in each state, summed over both ends.
    pub port_seconds: PortSeconds,
    /// LACPDUs sent.
    pub lacpdus_sent: u64,
    /// LACPDUs lost or damaged in flight.
    pub lacpdus_lost: u64,
}

/// Time of ports in each state, summed over both ends of a group.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct PortSeconds {
    /// Sending.
    #[schemars(extend("unit" = "s"))]
    pub active: f64,
    /// Awake, but not sending.
    #[schemars(extend("unit" = "s"))]
    pub idle: f64,
    /// Asleep, or in low-power idle.
    #[schemars(extend("unit" = "s"))]
    pub sleeping: f64,
    /// Waking up.
    #[schemars(extend("unit" = "s"))]
    pub waking: f64,
}

impl From<&GroupReport> for GroupSummary {
    fn from(report: &GroupReport) -> Self {
        let sum = |of: fn(&PortTimes) -> Duration| -> f64 {
            let ports = report.ports.iter().flatten();
            ports.map(|port| of(port).as_secs_f64()).sum()
        };
        let sleeping = sum(|port| port.sleeping);
        let gigabits = report.sent_bits as f64 / 1e9;
        Self {
            mean_active_members: report.mean_active_members,
            member_seconds_off: sleeping / 2.0,
            energy_joules: report.energy_joules,
            joules_per_gigabit: (gigabits > 0.0).then(|| report.energy_joules / gigabits),
            changes: report.counters.changes,
            overloaded_ms_share: report.overloaded_share,
            port_seconds: PortSeconds {
                active: sum(|port| port.active),
                idle: sum(|port| port.idle),
                sleeping,
                waking: sum(|port| port.waking),
            },
            lacpdus_sent: report.counters.lacpdus_sent,
            lacpdus_lost: report.counters.lacpdus_lost,
        }
    }
}

/// Packets with data, and every retransmission: of data, or of a SYN.
const fn sent_packets(sender: &Stats) -> u64 {
    sender.sent_packets + sender.retransmitted_syns as u64
}

/// A time of the run in seconds.
#[must_use]
pub fn seconds(at: Instant) -> f64 {
    at.saturating_since(Instant::START).as_secs_f64()
}

fn mbit_s(bytes: u64, time: Duration) -> Option<f64> {
    (!time.is_zero()).then(|| bytes as f64 * 8.0 / time.as_secs_f64() / 1e6)
}

impl From<&FlowReport> for FlowSummary {
    fn from(report: &FlowReport) -> Self {
        let snapshot = report.snapshot.as_ref();
        let order = report.reordering.as_ref();
        let tcp = |count| report.is_tcp.then_some(count);
        let delay = report.one_way_delay.as_ref();
        let sends = report.is_tcp || delay.is_some();
        let share = |of: fn(&LimitTimes) -> Duration| {
            let limits = report.limits.filter(|_| !report.measured.is_zero())?;
            Some((of(&limits).as_secs_f64() / report.measured.as_secs_f64()).min(1.0))
        };
        Self {
            goodput_mbit_s: mbit_s(report.receiver.delivered_bytes, report.measured),
            throughput_mbit_s: mbit_s(report.ip_bytes, report.measured),
            delivered_bytes: Some(report.receiver.delivered_bytes),
            sent_packets: sends.then(|| sent_packets(&report.sender)),
            retransmitted_packets: tcp(report.sender.retransmitted_packets),
            spurious_retransmissions: tcp(report.spurious_retransmissions),
            fast_recoveries: tcp(report.sender.fast_recoveries),
            timeouts: tcp(report.sender.timeouts),
            mean_cwnd_packets: report
                .mean_cwnd_bytes
                .map(|bytes| bytes / report.smss as f64),
            mean_srtt_ms: report.mean_srtt_ms,
            min_rtt_ms: snapshot
                .map(|s| s.min_rtt)
                .filter(|rtt| !rtt.is_zero())
                .map(Duration::as_millis_f64),
            cwnd_limited_share: share(|limits| limits.cwnd),
            rwnd_limited_share: share(|limits| limits.rwnd),
            sndbuf_limited_share: share(|limits| limits.send_buffer),
            application_limited_share: share(|limits| limits.application),
            flow_completion_time_s: report.completion_time.map(Duration::as_secs_f64),
            ended: report.ended.map(|(ended, _)| ended),
            ended_at_s: report.ended.and_then(|(_, at)| at).map(seconds),
            reordered_ratio: order.filter(|o| o.arrived > 0).map(|o| o.reordered_ratio),
            reordering_extent_p95_packets: order
                .and_then(|o| o.extent.as_ref())
                .map(|extent| extent.p95),
            reordering: order.filter(|o| o.arrived > 0).map(ReorderingSummary::from),
            malformed_segments: tcp(report.refused.malformed()),
            refused: report.is_tcp.then(|| {
                let counts = Refusal::ALL.map(|reason| (reason.name(), report.refused.of(reason)));
                counts.into_iter().filter(|(_, count)| *count > 0).collect()
            }),
            transfers: report.completions.as_ref().map(TransferSummary::from),
            exchanges: report.exchanges.as_ref().map(ExchangeSummary::from),
            mean_one_way_delay_ms: delay.and_then(OneWayDelay::mean_ms),
            p95_one_way_delay_ms: delay
                .and_then(|delay| delay.percentile(95.0))
                .map(Duration::as_millis_f64),
            fec: report
                .fec
                .as_ref()
                .map(|fec| FecSummary::new(fec, report.sender.sent_packets)),
        }
    }
}

impl From<&reordering::Summary> for ReorderingSummary {
    fn from(summary: &reordering::Summary) -> Self {
        Self {
            arrived_packets: summary.arrived,
            reordered_packets: summary.reordered,
            extent_max_packets: summary.extent.as_ref().map(|extent| extent.max),
            n_reordering: summary.n_reordering.iter().copied().collect(),
            density: summary.density.iter().copied().collect(),
        }
    }
}

impl From<&Completions> for TransferSummary {
    fn from(completions: &Completions) -> Self {
        let times = Times::of(completions, Duration::as_secs_f64);
        Self {
            started: completions.started,
            completed: times.0.len() as u64,
            mean_completion_time_s: times.mean(),
            p50_completion_time_s: times.percentile(50),
            p95_completion_time_s: times.percentile(95),
            p99_completion_time_s: times.percentile(99),
        }
    }
}

impl From<&Completions> for ExchangeSummary {
    fn from(exchanges: &Completions) -> Self {
        let times = Times::of(exchanges, Duration::as_millis_f64);
        Self {
            started: exchanges.started,
            completed: times.0.len() as u64,
            mean_response_time_ms: times.mean(),
            p50_response_time_ms: times.percentile(50),
            p95_response_time_ms: times.percentile(95),
            p99_response_time_ms: times.percentile(99),
        }
    }
}

/// Times in ascending order, in some unit.
struct Times(Vec<f64>);

impl Times {
    fn of(completions: &Completions, unit: impl Fn(Duration) -> f64) -> Self {
        let mut times = completions.times.clone();
        times.sort_unstable();
        Self(times.into_iter().map(unit).collect())
    }
    fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.iter().sum::<f64>() / self.0.len() as f64)
    }
    /// The smallest value such that at least `p` percent of all values do not exceed it: no
    /// interpolation.
    fn percentile(&self, p: usize) -> Option<f64> {
        let place = (self.0.len() * p).div_ceil(100).saturating_sub(1);
        self.0.get(place).copied()
    }
}

impl From<&LinkReport> for LinkSummary {
    fn from(report: &LinkReport) -> Self {
        let counted = &report.statistics;
        let time = report.measured.as_picos();
        Self {
            sent_packets: counted.sent_packets,
            dropped_packets: counted.dropped_packets,
            too_big_packets: report.too_big_packets,
            lost_packets: counted.lost_packets,
            reordered_packets: counted.reordered_packets,
            marked_packets: counted.marked_packets,
            utilization: report
                .capacity_bits
                .filter(|bits| *bits > 0.0)
                // A transmission counts at its end: one that began before the measured time can
                // exceed the capacity.
                .map(|bits| (counted.sent_bytes as f64 * 8.0 / bits).min(1.0)),
            mean_queue_packets: (time > 0).then(|| counted.queue_time as f64 / time as f64),
            max_queue_packets: counted.max_queue_packets,
            p95_queue_delay_ms: counted
                .queue_delay_percentile(95.0)
                .map(Duration::as_millis_f64),
            p99_queue_delay_ms: counted
                .queue_delay_percentile(99.0)
                .map(Duration::as_millis_f64),
        }
    }
}

/// Jain's index of fairness: (Σx)² ÷ (n Σx²) (Jain, Chiu and Hawe, DEC-TR-301, 1984).
#[must_use]
pub fn jain_index(values: &[f64]) -> Option<f64> {
    let squares: f64 = values.iter().map(|x| x * x).sum();
    let sum: f64 = values.iter().sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

impl Summary {
    /// The summary of a network after its run. `links` names the pairs of link directions. `shown`
    /// returns a flow as the summary has it; `None` leaves it out.
    ///
    /// # Panics
    /// Never: the summary's parts are plain data.
    pub fn of<B: Body>(
        network: &mut Network<B>,
        about: About,
        links: &[(String, [LinkId; 2])],
        groups: &[(String, GroupId)],
        gateways: &[CompiledGateway],
        shown: impl Fn(usize, FlowSummary) -> Option<FlowSummary>,
    ) -> Self {
        let mut flows = Map::new();
        let mut goodputs = Vec::new();
        for index in 0..network.flow_count() {
            let id = FlowId(u32::try_from(index).expect("flows are counted in 32 bits"));
            let report = network.flow_report(id);
            let Some(flow) = shown(index, FlowSummary::from(&report)) else {
                continue;
            };
            goodputs.extend(flow.goodput_mbit_s);
            flows.insert(report.name, serde_json::to_value(flow).expect("plain data"));
        }
        let mut by_link = Map::new();
        for (name, ids) in links {
            let mut directions = Map::new();
            for (direction, id) in ["forward", "reverse"].into_iter().zip(ids) {
                let link = LinkSummary::from(&network.link_statistics(*id));
                directions.insert(
                    direction.into(),
                    serde_json::to_value(link).expect("plain data"),
                );
            }
            by_link.insert(name.clone(), Value::Object(directions));
        }
        let mut by_group = Map::new();
        for (name, id) in groups {
            let group = GroupSummary::from(&network.group_report(*id));
            by_group.insert(
                name.clone(),
                serde_json::to_value(group).expect("plain data"),
            );
        }
        Self {
            format: FORMAT,
            scenario: about.scenario,
            seed: about.seed,
            engine: "sim",
            duration_s: network.end().as_secs_f64(),
            digest: network.digest().map(|digest| digest.to_string()),
            anabranch_version: env!("CARGO_PKG_VERSION"),
            resolved_scenario: about.resolved_scenario,
            platform: about.platform,
            captures: about.captures,
            flows,
            links: by_link,
            groups: by_group,
            gateways: gateway::by_name(network, gateways),
            fairness: Fairness {
                jain_index: jain_index(&goodputs),
            },
            engine_stats: EngineStats {
                events: network.events(),
                delivered_packets: network.delivered_packets(),
                ..EngineStats::default()
            },
            tainted: None,
            live: None,
        }
    }
}

/// The scenario's part of a summary.
#[derive(Debug, Clone)]
pub struct About {
    /// Title, or the name of the file.
    pub scenario: String,
    /// Seed of the run.
    pub seed: u64,
    /// The scenario with every default written out.
    pub resolved_scenario: ResolvedText,
    /// Operating system and processor.
    pub platform: String,
    /// Statistics of captures that flows replay.
    pub captures: Map<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_index_of_known_shares() {
        assert_eq!(jain_index(&[1.0, 1.0, 1.0]), Some(1.0));
        assert_eq!(jain_index(&[1.0, 0.0]), Some(0.5));
        assert_eq!(jain_index(&[0.0, 0.0]), None);
        assert_eq!(jain_index(&[]), None);
    }

    #[test]
    fn percentiles_are_not_interpolated() {
        let times = (1..=100).map(Duration::from_secs).collect();
        let summary = TransferSummary::from(&Completions {
            started: 120,
            times,
        });
        assert_eq!(summary.p50_completion_time_s, Some(50.0));
        assert_eq!(summary.p99_completion_time_s, Some(99.0));
        assert_eq!(summary.mean_completion_time_s, Some(50.5));
    }
}
