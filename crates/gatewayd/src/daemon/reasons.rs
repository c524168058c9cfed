//! The reasons why paths do not deliver, for status, metrics and log.

use anabranch_gateway::{time::Instant, wire::PathId};

use super::Gateway;
use crate::{
    peers::Peer,
    reason::{self, Reason, SilentPath},
};

impl Gateway {
    /// Finds the reasons of a peer's silent paths, and logs new ones.
    pub(super) fn find_reasons(&mut self, number: u32, now: Instant) {
        let Some(peer) = self.peers.polled(number) else {
            return;
        };
        let silent = peer.silent_paths();
        let delivering = peer.delivering();
        let mut reasons = Vec::new();
        for (path, since) in silent {
            let route = peer.tunnel.route(path);
            let local = route.map_or(u32::from(path.number()), |route| route.local);
            let Some(bind) = self.ways.bind(local) else {
                continue;
            };
            let socket = self.ways.socket(local);
            let silent = SilentPath {
                bind,
                remote: route.map(|route| route.remote),
                failure: route.and_then(|route| socket?.failure(route.remote)),
                since,
                others_deliver: delivering.iter().any(|&other| other != path),
                hindrance: peer.tunnel.hindrance(),
            };
            let reason = if self.ways.is_closed(local) {
                Some(Reason::CapReached)
            } else {
                silent.reason(&self.links, &mut self.reach, now)
            };
            reasons.extend(reason.map(|reason| (path, reason)));
        }
        for (path, reason) in peer.set_reasons(reasons) {
            let path = self.ways.name(path);
            self.log
                .say(&format!("peer {}: path {path}: {reason}", peer.name));
        }
    }

    /// The reason why a path does not deliver, if one is known.
    pub(super) fn reason(&self, peer: &Peer, path: PathId) -> Option<Reason> {
        // The interfaces are known at once, other reasons by the last check.
        let lack = if self.config.path.is_empty() {
            None
        } else {
            self.lack(path)
        };
        // The path may deliver since.
        let is_well = peer.delivering().contains(&path);
        let known = peer.reason(path).filter(|_| !is_well);
        lack.or_else(|| known.cloned())
    }

    /// The cap of a path, or the interface, address or carrier that this machine lacks for it now.
    pub(super) fn lack(&self, path: PathId) -> Option<Reason> {
        let number = path.number().into();
        if self.ways.is_closed(number) {
            return Some(Reason::CapReached);
        }
        reason::lack(self.ways.bind(number)?, &self.links)
    }
}
