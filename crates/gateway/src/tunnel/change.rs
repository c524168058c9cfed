//! Changes of the configuration while the tunnel is up; sessions and flows continue.

use super::{PathConfig, Tunnel};
use crate::{
    path::{Liveness, Mtu, Path, Route},
    policy::{Role, Rule},
    sources::Sources,
    time::Instant,
    wire::PathId,
};

impl Tunnel {
    /// Adds a path, or changes the address or role of an existing one. The path is validated before
    /// packets use it.
    pub fn set_path(&mut self, config: PathConfig, now: Instant) {
        self.remove_path(config.id, now);
        self.config.paths.push(config);
        let path = self
            .paths
            .get_or_insert_with(config.id, || Path::new(None, config.role));
        path.route = config.route;
        path.roles[0] = config.role;
        path.is_down = false;
        path.liveness = Liveness::new(config.role.max(path.roles[1]));
        path.liveness.probe_now(self.now);
    }

    /// Removes a path. Packets outstanding on it are retransmitted on others. Its numbers and
    /// reports are kept, so that both ends can continue them if the path is added again.
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
        path.confirm_due = false;
        path.cookie = None;
        path.rate = path.rate.renewed();
        for kept in path.ledger.take_kept(self.now) {
            self.lanes.repair(kept, &mut self.pool);
        }
    }

    /// Changes the role of a path; sessions and packets continue. The other end learns the role
    /// with the next report.
    pub fn set_role(&mut self, id: PathId, role: Role, now: Instant) {
        self.set_now(now);
        self.is_advanced = false;
        let mut configured = self.config.paths.iter_mut();
        if let Some(configured) = configured.find(|path| path.id == id) {
            configured.role = role;
        }
        if let Some(path) = self.paths.get_mut(id) {
            path.roles[0] = role;
            path.liveness.set_role(role.max(path.roles[1]));
        }
    }

    /// Limits the sending rate of a path to this number of octets per second.
    pub fn limit_rate(&mut self, id: PathId, octets_per_s: Option<f64>) {
        if let Some(path) = self.paths.get_mut(id) {
            path.rate.set_limit(octets_per_s.unwrap_or(f64::INFINITY));
        }
    }

    /// Leads a path to another address of the other end. The path is probed there at once. Its
    /// numbers, reports and deaths continue.
    pub fn redirect_path(&mut self, id: PathId, route: Route, now: Instant) {
        self.set_now(now);
        self.is_advanced = false;
        let mut configured = self.config.paths.iter_mut();
        let Some(configured) = configured.find(|path| path.id == id) else {
            return;
        };
        configured.route = Some(route);
        if let Some(path) = self.paths.get_mut(id)
            && path.route != Some(route)
        {
            path.move_to(route);
            path.liveness.probe_now(self.now);
        }
    }

    /// Handles a change of a path's interface: it has another address, or has come back. The path
    /// is probed at once, and its MTU is searched again.
    pub fn validate_path(&mut self, id: PathId, now: Instant) {
        self.set_now(now);
        self.is_advanced = false;
        if let Some(path) = self.paths.get_mut(id) {
            path.mtu = Mtu::default();
            path.cookie = None;
            path.is_down = false;
            path.initiations.renew();
            path.liveness.probe_now(self.now);
        }
    }

    /// Sets the treatment of packets. Packets that wait are treated as before.
    pub fn set_rules(&mut self, rules: &[Rule]) {
        self.lanes.set_rules(rules);
        self.config.rules = rules.to_vec();
    }

    /// Sets the permitted source addresses of the other end's packets.
    pub fn set_sources(&mut self, sources: Sources) {
        self.config.sources = sources;
    }
}
