//! Changes of the configuration while the tunnel is up: sessions and flows go on.

use anabranch_core::units::Instant;

use super::{PathConfig, Tunnel};
use crate::{
    inner::Prefix,
    path::{Liveness, Mtu, Path, RateControl},
    policy::{Role, Rule},
    wire::PathId,
};

impl Tunnel {
    /// Adds a path, or gives one that is there another address or policy. It is validated before packets use it.
    pub fn set_path(&mut self, config: PathConfig, now: Instant) {
        self.remove_path(config.id, now);
        self.config.paths.push(config);
        let path = self
            .paths
            .get_or_insert_with(config.id, || Path::new(None, config.role));
        path.route = config.route;
        path.roles[0] = config.role;
        path.liveness = Liveness::new(config.role.max(path.roles[1]));
        path.liveness.probe_now(self.now);
    }

    /// Takes a path out of use. What is outstanding on it is retransmitted on others. Its numbers and reports are kept: should the path
    /// come back, both ends go on with them.
    pub fn remove_path(&mut self, id: PathId, now: Instant) {
        self.set_now(now);
        self.is_advanced = false;
        self.config.paths.retain(|path| path.id != id);
        let Some(path) = self.paths.get_mut(id) else {
            return;
        };
        path.route = None;
        path.liveness = Liveness::new(Role::Active);
        path.mtu = Mtu::default();
        path.control_due = false;
        path.cookie = None;
        path.rate = RateControl::default();
        for kept in path.ledger.take_kept(self.now) {
            self.lanes.repair(kept, &mut self.pool);
        }
    }

    /// The way out of a path has changed: its interface has another address, or has come back. It is probed at once, and its MTU is
    /// searched anew.
    pub fn validate_path(&mut self, id: PathId, now: Instant) {
        self.set_now(now);
        self.is_advanced = false;
        if let Some(path) = self.paths.get_mut(id) {
            path.mtu = Mtu::default();
            path.cookie = None;
            path.liveness.probe_now(self.now);
        }
    }

    /// Sets how packets are treated. Those that wait are treated as before.
    pub fn set_rules(&mut self, rules: &[Rule]) {
        self.lanes.set_rules(rules);
        self.config.rules = rules.to_vec();
    }

    /// Sets the source addresses that the other end's packets may have.
    pub fn set_sources(&mut self, sources: Vec<Prefix>) {
        self.config.sources = sources;
    }
}
