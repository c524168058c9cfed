//! The state that the daemon reports.

use std::collections::BTreeMap;

use anabranch_gateway::{policy::Class, tunnel::ClassStats, wire::PathId};

use super::{Gateway, octets};
use crate::{
    config::Bypass,
    peers::Peer,
    status::{BypassReport, ClassReport, PathReport, PeerDropped, PeerReport, Report},
};

impl Gateway {
    pub(super) fn report(&self) -> Report {
        let mut rejected = self.rejected;
        for counters in self.peers.iter().map(|peer| peer.tunnel.counters()) {
            rejected.replayed += counters.replayed;
            rejected.stale += counters.stale_initiations;
            rejected.unauthentic += counters.unauthentic;
            rejected.malformed += counters.malformed;
            rejected.foreign_sources += counters.foreign_sources;
        }
        let peers = self.peers.iter();
        Report {
            interface: self.config.gateway.interface.0.clone(),
            mtu: self.device.mtu(),
            protect: self.config.gateway.protect,
            peers: peers
                .map(|peer| (peer.name.clone(), self.report_of(peer)))
                .collect(),
            bypass: self
                .config
                .bypass
                .0
                .iter()
                .map(|(name, bypass)| (name.clone(), self.report_of_bypass(bypass)))
                .collect(),
            rejected,
            dropped: self.dropped,
            caps: self.usage.reports(),
        }
    }

    /// Classes by treatment; there is one for each.
    fn classes(&self, classes: &[ClassStats]) -> BTreeMap<String, ClassReport> {
        let class = |stats: &ClassStats| {
            let name = match stats.class {
                Class::Bulk => "bulk".to_owned(),
                Class::Interactive => "interactive".to_owned(),
                Class::Pinned(path) => format!("pinned to {}", self.ways.name(path)),
            };
            let report = ClassReport {
                sent_packets: stats.packets,
                sent_bytes: stats.octets,
                queued_packets: stats.queued as u64,
                dropped_packets: stats.dropped,
            };
            (name, report)
        };
        classes.iter().map(class).collect()
    }

    fn report_of_bypass(&self, bypass: &Bypass) -> BypassReport {
        let names = bypass.domain.0.iter();
        let addresses = names.flat_map(|domain| self.domains.addresses(&domain.0));
        let names = bypass.domain.0.iter();
        let unresolved = names.filter_map(|domain| {
            let why = self.domains.failure(&domain.0)?;
            Some((domain.0.clone(), why.to_owned()))
        });
        BypassReport {
            addresses: addresses.collect(),
            unresolved: unresolved.collect(),
        }
    }

    pub(super) fn report_of(&self, peer: &Peer) -> PeerReport {
        let stats = peer.tunnel.stats();
        // Whether a path was removed from the configuration.
        let is_gone = |path: PathId| {
            !self.config.path.is_empty() && !self.ways.paths().any(|(known, _)| known == path)
        };
        let paths = stats
            .paths
            .iter()
            .filter(|path| !is_gone(path.path))
            .map(|path| {
                let reason = self.reason(peer, path.path);
                let report = PathReport {
                    state: path.state.name().to_owned(),
                    cause: reason.as_ref().map(|reason| reason.code().to_owned()),
                    reason: reason.map(|reason| reason.to_string()),
                    endpoint: path.remote,
                    rtt_ms: path.srtt.map(|srtt| srtt.as_secs_f64() * 1e3),
                    rate_mbit_s: path.rate * 8e-6,
                    loss: path.loss,
                    mtu: path.mtu,
                    sent_bytes: peer.traffic[path.path.index()].sent,
                    received_bytes: peer.traffic[path.path.index()].received,
                    deaths: path.deaths,
                };
                (self.ways.name(path.path), report)
            });
        let hindrance = peer.tunnel.hindrance();
        PeerReport {
            state: if stats.is_up { "up" } else { "down" }.to_owned(),
            group: peer.rank.group.clone(),
            carries: peer.rank.is_grouped().then_some(peer.carries),
            reason: hindrance.map(|why| why.to_string()),
            cause: hindrance.map(|why| why.code().to_owned()),
            mtu: octets(peer.tunnel.inner_mtu()),
            paths: paths.collect(),
            classes: self.classes(&stats.classes),
            repaired_packets: stats.counters.retransmitted,
            correction_packets: stats.counters.repairs,
            rebuilt_packets: stats.counters.rebuilt,
            reordered_packets: stats.order.late,
            sent_packets: stats.counters.entered,
            received_packets: stats.order.delivered,
            sessions: stats.sessions,
            restarts: stats.counters.peer_restarts,
            dropped: PeerDropped {
                queue: stats.queue_dropped,
                unsendable: stats.counters.unsendable,
                duplicates: stats.order.duplicates,
            },
        }
    }
}
