//! Reports of gateways.

use std::collections::BTreeMap;

use anabranch_core::{body::Body, units::Duration};
use anabranch_path::multipath::{Report, RestoreReport, TunnelPath, TunnelReceiver, TunnelSender};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    network::{MiddleboxId, Network},
    topology::CompiledGateway,
};

/// One direction of a gateway: the packets sent over each route, and the packets held to restore
/// order. Counts are of the measured time unless stated otherwise.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct GatewaySummary {
    /// Packets sent over each route, by its link.
    pub routes: BTreeMap<String, RouteSummary>,
    /// Tunnels only: packets that entered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("engine" = "simulator"))]
    pub entered_packets: Option<u64>,
    /// Tunnels with classes only: packets of each class that entered, by the class's name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("engine" = "simulator", "unit" = "packets"))]
    pub class_packets: BTreeMap<String, u64>,
    /// Tunnels only: packets that exceeded the MTU.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("engine" = "simulator"))]
    pub refused_packets: Option<u64>,
    /// Tunnels only: packets that were dropped in the queue before the paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("engine" = "simulator"))]
    pub queue_dropped_packets: Option<u64>,
    /// Tunnels only: packets that no path could carry any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("engine" = "simulator"))]
    pub unsendable_packets: Option<u64>,
    /// Tunnels only: packets that were retransmitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("engine" = "simulator"))]
    pub repaired_packets: Option<u64>,
    /// Packets that were forwarded at the end of the routes.
    pub released_packets: u64,
    /// Tunnels only: packets released after a later packet of their flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("engine" = "simulator"))]
    pub reordered_packets: Option<u64>,
    /// Splitters only: released packets that had waited for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_packets: Option<u64>,
    /// Splitters only: released packets that a timer released.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("unit" = "packets"))]
    pub released_by_timer: Option<u64>,
    /// Gaps in a flow's order that were given up.
    pub gaps_given_up: u64,
    /// Copies that were dropped because their packet had arrived already.
    #[schemars(extend("unit" = "packets"))]
    pub duplicates_dropped: u64,
    /// Tunnels only: packets that left a second time, or that never entered; a correct tunnel has
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("engine" = "simulator"))]
    pub unmatched_packets: Option<u64>,
    /// The most packets held at once; of a tunnel, since the start of the run.
    pub max_held_packets: u64,
    /// Splitters only: the most octets held at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_held_bytes: Option<u64>,
    /// Splitters only: mean waiting time of all packets, including packets that did not wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("nullable" = true))]
    pub mean_wait_ms: Option<Option<f64>>,
    /// Splitters only: 95th percentile of the waiting time of all packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("nullable" = true))]
    pub p95_wait_ms: Option<Option<f64>>,
    /// Tunnels only: sessions since the start of the run, including the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("engine" = "simulator"))]
    pub sessions: Option<u64>,
    /// The longest time without a delivered packet while packets were waiting or being sent.
    pub silent_ms: f64,
}

/// Packets sent over a route; of a tunnel, also the state of its path at the end of the run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct RouteSummary {
    /// Packets, including copies, and the control messages of a tunnel.
    pub sent_packets: u64,
    /// Octets of these packets, including the tunnel's overhead.
    pub sent_bytes: u64,
    /// Tunnels only: state of the path at the end: `validating`, `active`, `standby`, `suspect` or
    /// `dead`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("engine" = "simulator"))]
    pub state: Option<&'static str>,
    /// Tunnels only: number of times that the path died since the start of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("engine" = "simulator"))]
    pub deaths: Option<u64>,
    /// Tunnels only: smoothed round-trip time on the path at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("engine" = "simulator", "nullable" = true))]
    pub rtt_ms: Option<Option<f64>>,
    /// Tunnels only: sending rate on the path at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("engine" = "simulator"))]
    pub rate_mbit_s: Option<f64>,
    /// Tunnels only: the largest datagram that the path is known to deliver, without the headers of
    /// IP and UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("engine" = "simulator", "unit" = "bytes"))]
    pub mtu: Option<usize>,
}

impl GatewaySummary {
    fn of_splitter(names: &[String], sent: &[(u64, u64)], restored: &RestoreReport) -> Self {
        let route = |(name, (packets, bytes)): (&String, &(u64, u64))| {
            let sent = RouteSummary {
                sent_packets: *packets,
                sent_bytes: *bytes,
                ..RouteSummary::default()
            };
            (name.clone(), sent)
        };
        Self {
            routes: names.iter().zip(sent).map(route).collect(),
            released_packets: restored.released,
            held_packets: Some(restored.waited),
            released_by_timer: Some(restored.released_by_timer),
            gaps_given_up: restored.gaps_given_up,
            duplicates_dropped: restored.duplicates,
            max_held_packets: restored.max_held_packets,
            max_held_bytes: Some(restored.max_held_bytes),
            mean_wait_ms: Some(restored.mean_wait_ms()),
            p95_wait_ms: Some(restored.p95_wait().map(Duration::as_millis_f64)),
            silent_ms: restored.silent.as_millis_f64(),
            ..Self::default()
        }
    }

    fn of_tunnel(
        (names, classes): (&[String], &[String]),
        sent: &TunnelSender,
        received: &TunnelReceiver,
    ) -> Self {
        let route = |(name, path): (&String, &TunnelPath)| {
            let summary = RouteSummary {
                sent_packets: path.sent_packets,
                sent_bytes: path.sent_bytes,
                state: Some(path.state),
                deaths: Some(path.deaths),
                rtt_ms: Some(path.srtt.map(Duration::as_millis_f64)),
                rate_mbit_s: Some(path.rate * 8e-6),
                mtu: Some(path.mtu),
            };
            (name.clone(), summary)
        };
        Self {
            routes: names.iter().zip(&sent.paths).map(route).collect(),
            entered_packets: Some(sent.entered),
            class_packets: classes
                .iter()
                .cloned()
                .zip(sent.entered_by_class.iter().copied())
                .collect(),
            refused_packets: Some(sent.refused),
            queue_dropped_packets: Some(sent.queue_dropped),
            unsendable_packets: Some(sent.unsendable),
            repaired_packets: Some(sent.retransmitted),
            released_packets: received.delivered,
            reordered_packets: Some(received.late),
            gaps_given_up: received.gaps_given_up,
            duplicates_dropped: received.duplicates,
            unmatched_packets: Some(received.unmatched),
            max_held_packets: received.max_held_packets,
            sessions: Some(sent.sessions),
            silent_ms: received.silent.as_millis_f64(),
            ..Self::default()
        }
    }
}

/// All gateways, by name and direction.
pub(super) fn by_name<B: Body>(
    network: &Network<B>,
    gateways: &[CompiledGateway],
) -> Map<String, Value> {
    let direction = |[split, restore]: [MiddleboxId; 2], gateway: &CompiledGateway| {
        let summary = match (
            network.gateway_report(split)?,
            network.gateway_report(restore)?,
        ) {
            (Report::Split(sent), Report::Restore(restored)) => {
                GatewaySummary::of_splitter(&gateway.routes, &sent.routes, &restored)
            }
            (Report::Tunnel(sent), Report::Tunnel(received)) => {
                let names = (&gateway.routes[..], &gateway.classes[..]);
                GatewaySummary::of_tunnel(names, &sent.sender, &received.receiver)
            }
            _ => return None,
        };
        Some(serde_json::to_value(summary).expect("plain data"))
    };
    let both = |gateway: &CompiledGateway| {
        let mut directions = Map::new();
        for (name, ids) in ["forward", "reverse"].into_iter().zip(gateway.ends) {
            directions.insert(name.to_owned(), direction(ids, gateway).into());
        }
        (gateway.name.clone(), Value::Object(directions))
    };
    gateways.iter().map(both).collect()
}
