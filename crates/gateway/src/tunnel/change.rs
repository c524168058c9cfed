//! Changes of the configuration while the tunnel is up: sessions and flows go on.

use anabranch_core::units::Instant;

use super::{PathConfig, Tunnel, repair};
use crate::{
    inner::Prefix,
    path::{Liveness, Mtu, Path},
    wire::PathId,
};

impl Tunnel {
    /// Adds a path, or gives one that is there another address or policy. It is validated before packets use it.
    pub fn set_path(&mut self, config: PathConfig, now: Instant) {
        self.remove_path(config.id, now);
        self.config.paths.push(config);
        let path = self
            .paths
            .entry(config.id)
            .or_insert_with(|| Path::new(None, config.standby));
        path.route = config.route;
        path.liveness = Liveness::new(config.standby);
        path.liveness.probe_now(self.now);
    }

    /// Takes a path out of use. What is outstanding on it is retransmitted on others. Its numbers and reports are kept: should the path
    /// come back, both ends go on with them.
    pub fn remove_path(&mut self, id: PathId, now: Instant) {
        self.now = self.now.max(now);
        self.config.paths.retain(|path| path.id != id);
        let Some(path) = self.paths.get_mut(&id) else {
            return;
        };
        path.route = None;
        path.liveness = Liveness::new(false);
        path.mtu = Mtu::default();
        path.control_due = false;
        path.cookie = None;
        path.rate.clear_flight();
        for kept in path.ledger.take_kept(self.now) {
            repair(&mut self.repairs, kept);
        }
    }

    /// The way out of a path has changed: its interface has another address, or has come back. It is probed at once, and its MTU is
    /// searched anew.
    pub fn validate_path(&mut self, id: PathId, now: Instant) {
        self.now = self.now.max(now);
        if let Some(path) = self.paths.get_mut(&id) {
            path.mtu = Mtu::default();
            path.cookie = None;
            path.liveness.probe_now(self.now);
        }
    }

    /// Sets the source addresses that the other end's packets may have.
    pub fn set_sources(&mut self, sources: Vec<Prefix>) {
        self.config.sources = sources;
    }
}
