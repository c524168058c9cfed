//! Reports of gateways.

use std::collections::BTreeMap;

use anabranch_core::{body::Body, units::Duration};
use anabranch_path::multipath::{Report, RestoreReport, TunnelPath, TunnelReceiver, TunnelSender};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    network::{MiddleboxId, Network},
    topology::CompiledGateway,
};

/// The report of one direction of a gateway.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GatewaySummary {
    /// By route: the packets sent on it by the splitter.
    pub routes: BTreeMap<String, RouteSummary>,
    /// Packets that were forwarded at the end of the routes.
    pub released_packets: u64,
    /// Released packets that had waited for others.
    pub held_packets: u64,
    /// Released packets that a timer released.
    pub released_by_timer: u64,
    /// Gaps in a flow's order that were given up.
    pub gaps_given_up: u64,
    /// Copies that were dropped because their packet had arrived already.
    pub duplicates_dropped: u64,
    /// The most packets held at once.
    pub max_held_packets: u64,
    /// The most bytes held at once.
    pub max_held_bytes: u64,
    /// Mean waiting time of all packets, including packets that did not wait.
    pub mean_wait_ms: Option<f64>,
    /// 95th percentile of the waiting time.
    pub p95_wait_ms: Option<f64>,
    /// The longest time without a delivered packet while packets were waiting or being sent.
    pub silent_ms: f64,
}

/// The packets sent over a route.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RouteSummary {
    /// Packets, including copies.
    pub sent_packets: u64,
    /// Their bytes, including the tunnel's overhead.
    pub sent_bytes: u64,
}

impl GatewaySummary {
    fn of(names: &[String], sent: &[(u64, u64)], restored: &RestoreReport) -> Self {
        let route = |(name, (packets, bytes)): (&String, &(u64, u64))| {
            let sent = RouteSummary {
                sent_packets: *packets,
                sent_bytes: *bytes,
            };
            (name.clone(), sent)
        };
        Self {
            routes: names.iter().zip(sent).map(route).collect(),
            released_packets: restored.released,
            held_packets: restored.waited,
            released_by_timer: restored.released_by_timer,
            gaps_given_up: restored.gaps_given_up,
            duplicates_dropped: restored.duplicates,
            max_held_packets: restored.max_held_packets,
            max_held_bytes: restored.max_held_bytes,
            mean_wait_ms: restored.mean_wait_ms(),
            p95_wait_ms: restored.p95_wait().map(Duration::as_millis_f64),
            silent_ms: restored.silent.as_millis_f64(),
        }
    }
}

/// The report of one direction of a tunnel. Counts are of the measured time unless stated
/// otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TunnelSummary {
    /// By route: the packets sent on it, and its state at the end of the run.
    pub routes: BTreeMap<String, PathSummary>,
    /// Packets that entered.
    pub entered_packets: u64,
    /// Entered packets by class; omitted without classes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub class_packets: BTreeMap<String, u64>,
    /// Packets that exceeded the tunnel's MTU.
    pub refused_packets: u64,
    /// Packets that were dropped in the queue before the paths.
    pub queue_dropped_packets: u64,
    /// Packets that no path could carry any more.
    pub unsendable_packets: u64,
    /// Packets that the tunnel retransmitted.
    pub repaired_packets: u64,
    /// Packets that were forwarded at the end of the routes.
    pub released_packets: u64,
    /// Released packets that a later packet of their flow had overtaken.
    pub reordered_packets: u64,
    /// Gaps in a flow's order that were given up.
    pub gaps_given_up: u64,
    /// Copies that were dropped because their packet had arrived already.
    pub duplicates_dropped: u64,
    /// Packets that left a second time, or that never entered: a correct tunnel has none.
    pub unmatched_packets: u64,
    /// The most packets held at once since the start of the run.
    pub max_held_packets: u64,
    /// Sessions since the start of the run, including the first.
    pub sessions: u64,
    /// The longest time without a delivered packet while packets were waiting or being sent.
    pub silent_ms: f64,
}

/// The datagrams sent over a path of a tunnel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathSummary {
    /// Datagrams, including the tunnel's control messages.
    pub sent_packets: u64,
    /// Their bytes, including the tunnel's overhead.
    pub sent_bytes: u64,
    /// `"validating"`, `"active"`, `"standby"`, `"suspect"` or `"dead"` at the end of the run.
    pub state: &'static str,
    /// The number of times that the path died since the start of the run.
    pub deaths: u64,
    /// The tunnel's smoothed round-trip time at the end of the run.
    pub rtt_ms: Option<f64>,
    /// The tunnel's sending rate on the path at the end of the run.
    pub rate_mbit_s: f64,
    /// The largest packet that the path is known to deliver, without the headers of IP and UDP.
    pub mtu: usize,
}

impl TunnelSummary {
    fn of(
        (names, classes): (&[String], &[String]),
        sent: &TunnelSender,
        received: &TunnelReceiver,
    ) -> Self {
        let route = |(name, path): (&String, &TunnelPath)| {
            let summary = PathSummary {
                sent_packets: path.sent_packets,
                sent_bytes: path.sent_bytes,
                state: path.state,
                deaths: path.deaths,
                rtt_ms: path.srtt.map(Duration::as_millis_f64),
                rate_mbit_s: path.rate * 8e-6,
                mtu: path.mtu,
            };
            (name.clone(), summary)
        };
        Self {
            routes: names.iter().zip(&sent.paths).map(route).collect(),
            entered_packets: sent.entered,
            class_packets: classes
                .iter()
                .cloned()
                .zip(sent.entered_by_class.iter().copied())
                .collect(),
            refused_packets: sent.refused,
            queue_dropped_packets: sent.queue_dropped,
            unsendable_packets: sent.unsendable,
            repaired_packets: sent.retransmitted,
            released_packets: received.delivered,
            reordered_packets: received.late,
            gaps_given_up: received.gaps_given_up,
            duplicates_dropped: received.duplicates,
            unmatched_packets: received.unmatched,
            max_held_packets: received.max_held_packets,
            sessions: sent.sessions,
            silent_ms: received.silent.as_millis_f64(),
        }
    }
}

/// All gateways, by name and direction.
pub(super) fn by_name<B: Body>(
    network: &Network<B>,
    gateways: &[CompiledGateway],
) -> Map<String, Value> {
    let direction = |[split, restore]: [MiddleboxId; 2], gateway: &CompiledGateway| match (
        network.gateway_report(split),
        network.gateway_report(restore),
    ) {
        (Some(Report::Split(sent)), Some(Report::Restore(restored))) => {
            let summary = GatewaySummary::of(&gateway.routes, &sent.routes, &restored);
            serde_json::to_value(summary).expect("plain data")
        }
        (Some(Report::Tunnel(sent)), Some(Report::Tunnel(received))) => {
            let names = (&gateway.routes[..], &gateway.classes[..]);
            let summary = TunnelSummary::of(names, &sent.sender, &received.receiver);
            serde_json::to_value(summary).expect("plain data")
        }
        _ => Value::Null,
    };
    let both = |gateway: &CompiledGateway| {
        let mut directions = Map::new();
        for (name, ids) in ["forward", "reverse"].into_iter().zip(gateway.ends) {
            directions.insert(name.to_owned(), direction(ids, gateway));
        }
        (gateway.name.clone(), Value::Object(directions))
    };
    gateways.iter().map(both).collect()
}
