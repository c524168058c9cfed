//! The other ends: their tunnels, and the addresses of these.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_document::class::Mode;
use anabranch_gateway::{
    crypto::{Entropy, Identity, Keys},
    path::{Route, State},
    policy::{Class, Match, Rule},
    sources::Sources,
    time::Instant,
    tunnel::{self, Hindrance, PathConfig, Tunnel},
    wire::{PATHS, PathId},
};
use ipnet::IpNet;

use crate::{
    config::{self, Config},
    endpoints::{self, Candidates, Trial, delivers},
    reason::Reason,
    resolver::{Addresses, Name},
    servers::Health,
    ways::Ways,
};

/// The kernel's source of random octets.
pub struct System;

impl Entropy for System {
    fn fill(&mut self, octets: &mut [u8]) {
        // A gateway without randomness must not send: its nonces and keys would repeat.
        getrandom::fill(octets).expect("the kernel has random octets");
    }
}

/// Octets of one path.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traffic {
    /// Octets of datagrams sent.
    pub sent: u64,
    /// Octets of datagrams received.
    pub received: u64,
}

/// Another end.
pub struct Peer {
    /// Its name in the configuration.
    pub name: String,
    /// The networks reached through it.
    pub allowed: Vec<IpNet>,
    /// Its place among peers that serve the same networks.
    pub rank: Rank,
    /// Whether it is up, and since when.
    pub health: Health,
    /// Whether it carried the traffic of a group at the last choice.
    pub carries: bool,
    /// The tunnel to it.
    pub tunnel: Tunnel,
    /// The traffic of its paths.
    pub traffic: [Traffic; PATHS],
    /// Whether its routes are set: all its names have addresses, or it was up.
    pub is_routed: bool,
    /// The paths that delivered at the last call of [`Self::report_changes`].
    delivered: [bool; PATHS],
    keys: PeerKeys,
    paths: Vec<PathConfig>,
    /// The trial of addresses by each path that has endpoints.
    trials: BTreeMap<PathId, Trial>,
    /// The reasons of silent paths.
    reasons: BTreeMap<PathId, Reason>,
    /// The reason without a session at the last call of [`Self::new_hindrance`].
    hindrance: Option<Hindrance>,
    /// The codes of reasons that were returned to be logged since the path last delivered.
    logged: BTreeSet<(PathId, &'static str)>,
}

/// The place of a peer among peers that serve the same networks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rank {
    /// The group of these peers.
    pub group: Option<String>,
    /// The lowest is best.
    pub priority: u16,
}

impl Rank {
    /// Whether it belongs to a group.
    pub const fn is_grouped(&self) -> bool {
        self.group.is_some()
    }
}

/// The other end's public key and the pre-shared key. A change of either makes it another tunnel.
pub type PeerKeys = ([u8; 32], Option<[u8; 32]>);

impl Peer {
    /// Its keys. A peer of another configuration with the same ones is this one.
    pub const fn keys(&self) -> PeerKeys {
        self.keys
    }

    /// Its public key.
    pub const fn key(&self) -> [u8; 32] {
        self.keys.0
    }

    /// Calls `report` for each path that has begun to deliver since the last call or has died, with
    /// the peer's name, the path and whether it delivers.
    pub fn report_changes(&mut self, mut report: impl FnMut(&str, PathId, bool)) {
        for (path, state) in self.tunnel.states() {
            let delivers = match state {
                State::Active | State::Standby => true,
                State::Dead { .. } => false,
                State::Suspect | State::Validating { .. } => continue,
            };
            let before = &mut self.delivered[path.index()];
            if std::mem::replace(before, delivers) != delivers {
                report(&self.name, path, delivers);
            }
        }
    }

    /// Whether a path delivered at the last call of [`Self::report_changes`], according to the
    /// other end's reports.
    pub fn delivers(&self, path: PathId) -> bool {
        self.delivered[path.index()]
    }

    /// The reason why no session begins, if it is new since the last call.
    pub fn new_hindrance(&mut self) -> Option<Hindrance> {
        let now = self.tunnel.hindrance();
        let before = std::mem::replace(&mut self.hindrance, now);
        now.filter(|_| now != before)
    }

    /// Whether it has addresses to try.
    pub fn has_trials(&self) -> bool {
        self.trials.values().any(Trial::has_candidates)
    }

    /// The time since which a path with endpoints has been silent, of the path that has been silent
    /// longest.
    pub fn silent(&self) -> Option<Instant> {
        self.trials.values().filter_map(Trial::silent).min()
    }

    /// Leads silent paths to other addresses of the other end. `is_usable` says whether the path's
    /// interface is usable, `has_route` whether the kernel has a route. Returns whether a path goes
    /// to another address.
    pub fn try_addresses(
        &mut self,
        is_usable: impl Fn(PathId) -> bool,
        mut has_route: impl FnMut(Route) -> bool,
        now: Instant,
    ) -> bool {
        let states: Vec<(PathId, State)> = self.tunnel.states().collect();
        let mut is_changed = false;
        for (path, trial) in &mut self.trials {
            let state = states.iter().find(|(id, _)| id == path);
            let delivers = state.map_or(Some(false), |(_, state)| delivers(*state));
            if delivers == Some(false) && !is_usable(*path) {
                trial.pause();
                continue;
            }
            let actual = self.tunnel.route(*path);
            let Some(next) = trial.follow(delivers, actual, &mut has_route, now) else {
                continue;
            };
            if let Some(config) = self.paths.iter_mut().find(|config| config.id == *path) {
                config.route = Some(next);
            }
            self.tunnel.redirect_path(*path, next, now);
            is_changed = true;
        }
        is_changed
    }

    /// The paths with endpoints that are silent, and since when.
    pub fn silent_paths(&self) -> Vec<(PathId, Instant)> {
        let states = self.tunnel.states();
        let silent = states.filter(|(_, state)| delivers(*state) == Some(false));
        let since = |path| Some((path, self.trials.get(&path)?.silent()?));
        silent.filter_map(|(path, _)| since(path)).collect()
    }

    /// The paths that deliver.
    pub fn delivering(&self) -> Vec<PathId> {
        let states = self.tunnel.states();
        let delivering = states.filter(|(_, state)| delivers(*state) == Some(true));
        delivering.map(|(path, _)| path).collect()
    }

    /// The reason why a path is silent.
    pub fn reason(&self, path: PathId) -> Option<&Reason> {
        self.reasons.get(&path)
    }

    /// Sets the reasons of silent paths. Returns the reasons to be logged: each kind once while a
    /// path does not deliver.
    pub fn set_reasons(&mut self, reasons: Vec<(PathId, Reason)>) -> Vec<(PathId, Reason)> {
        let delivering = self.delivering();
        self.logged.retain(|(path, _)| !delivering.contains(path));
        self.reasons = reasons.into_iter().collect();
        let mut new = Vec::new();
        for (path, reason) in &self.reasons {
            if self.logged.insert((*path, reason.code())) {
                new.push((*path, reason.clone()));
            }
        }
        new
    }

    /// Applies a changed configuration of the peer; its sessions continue.
    pub fn change(&mut self, new: Change, now: Instant) {
        let mut paths = Vec::new();
        let mut trials = BTreeMap::new();
        for (candidates, first) in new.paths {
            let known = self.trials.remove(&candidates.path);
            let mut trial = known.unwrap_or_default();
            let route = trial.change(candidates.routes.clone(), first);
            paths.push(candidates.with(route));
            trials.insert(candidates.path, trial);
        }
        self.trials = trials;
        for path in &self.paths {
            if !paths.iter().any(|other| other.id == path.id) {
                self.tunnel.remove_path(path.id, now);
            }
        }
        for path in &paths {
            let before = self.paths.iter().find(|before| before.id == path.id);
            match (before, path.route) {
                (Some(before), _) if before == path => {}
                (Some(before), Some(route))
                    if before.role == path.role && before.route.is_some() =>
                {
                    self.tunnel.redirect_path(path.id, route, now);
                }
                _ => self.tunnel.set_path(*path, now),
            }
        }
        self.tunnel.set_rules(&new.rules);
        self.allowed = new.allowed;
        self.rank = new.rank;
        self.paths = paths;
        self.name = new.name;
    }
}

/// The part of a peer's configuration that may change.
pub struct Change {
    name: String,
    allowed: Vec<IpNet>,
    rank: Rank,
    /// The paths, and the first route of each.
    paths: Vec<(Candidates, Option<Route>)>,
    rules: Vec<Rule>,
}

impl Change {
    /// The configuration of a peer. `first` chooses the first of several routes.
    ///
    /// # Errors
    /// If it has too many endpoints.
    pub fn of(
        config: &Config,
        (name, peer): &(String, config::Peer),
        known: &Addresses,
        ways: &Ways,
        mut first: impl FnMut(&[Route]) -> Option<Route>,
    ) -> Result<Self, String> {
        let paths = endpoints::candidates(config, peer, known, ways)?;
        let paths = paths.into_iter().map(|candidates| {
            let first = first(&candidates.routes);
            (candidates, first)
        });
        Ok(Self {
            name: name.clone(),
            allowed: peer.allowed.iter().map(|prefix| prefix.0.trunc()).collect(),
            rank: Rank {
                group: peer.group.clone(),
                priority: peer.priority.unwrap_or(0),
            },
            paths: paths.collect(),
            rules: rules(config, ways),
        })
    }
}

/// The keys of a configured peer.
pub fn keys(peer: &config::Peer) -> PeerKeys {
    (
        peer.public_key.0,
        peer.preshared.0.as_ref().map(|key| key.0),
    )
}

/// The names of a peer's endpoints without a known address.
pub fn unknown<'a>(
    peer: &'a config::Peer,
    known: &'a Addresses,
) -> impl Iterator<Item = Name> + use<'a> {
    endpoints::names(peer).filter(|name| !known.contains_key(name))
}

/// Whether the routes to a peer are set although it has not been up: all its names have addresses, or
/// its prefixes are protected. With an earlier default route, the queries of the system's resolver
/// would enter the tunnel, which waits for the addresses; the protection would refuse them anyway.
pub fn is_routable(config: &Config, peer: &config::Peer, known: &Addresses) -> bool {
    config.gateway.protect || unknown(peer, known).next().is_none()
}

/// The names of all peers' endpoints without a known address, without duplicates.
pub fn all_unknown(config: &Config, known: &Addresses) -> Vec<Name> {
    let peers = config.peer.0.iter();
    let mut names: Vec<Name> = peers.flat_map(|(_, peer)| unknown(peer, known)).collect();
    names.sort();
    names.dedup();
    names
}

/// Creates a newly configured peer.
/// `epoch` is the time at [`Instant::START`] for stamps.
pub fn peer(
    (identity, epoch): (&Identity, u64),
    peer: &config::Peer,
    change: Change,
    now: Instant,
) -> Peer {
    let keys = keys(peer);
    let paths = change.paths.iter();
    let paths: Vec<PathConfig> = paths.map(|(path, first)| path.with(*first)).collect();
    let trials = change.paths.into_iter();
    let trials = trials.map(|(path, first)| (path.path, Trial::new(path.routes, first)));
    let tunnel = tunnel::Config {
        keys: Keys {
            private: *identity.private(),
            peer: keys.0,
            psk: keys.1,
        },
        paths: paths.clone(),
        // The directory sets them.
        sources: Sources::of([]),
        rules: change.rules,
        epoch,
    };
    Peer {
        name: change.name,
        allowed: change.allowed,
        rank: change.rank,
        health: Health::default(),
        carries: false,
        tunnel: Tunnel::behind(identity, tunnel, Box::new(System), now),
        traffic: [Traffic::default(); PATHS],
        is_routed: false,
        delivered: [false; PATHS],
        keys,
        paths,
        trials: trials.collect(),
        reasons: BTreeMap::new(),
        hindrance: None,
        logged: BTreeSet::new(),
    }
}

/// The treatment of packets, in the configuration's order.
fn rules(config: &Config, ways: &Ways) -> Vec<Rule> {
    let path = |name: &String| ways.paths().find(|(_, other)| *other == name);
    let rules = config.class.0.iter().filter_map(|(_, class)| {
        let matches = &class.matches;
        let (dscp, ports) = (matches.code_points(), matches.ports());
        Some(Rule {
            matches: Match::of(dscp, ports, matches.networks()),
            class: match class.mode {
                Mode::Bulk => Class::Bulk,
                Mode::Interactive => Class::Interactive,
                Mode::Pinned => Class::Pinned(class.path.as_ref().and_then(path)?.0),
            },
        })
    });
    rules.collect()
}
