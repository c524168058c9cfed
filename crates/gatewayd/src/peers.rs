//! The other ends: their tunnels, and the addresses of these.

use std::net::SocketAddr;

use anabranch_core::units::Instant;
use anabranch_document::class::Mode;
use anabranch_gateway::{
    crypto::{Entropy, Identity, Keys},
    path::{Route, State},
    policy::{Class, Match, Role, Rule},
    sources::Sources,
    tunnel::{self, PathConfig, Tunnel},
    wire::{PATHS, PathId},
};
use ipnet::IpNet;

use crate::{
    config::{self, Config, Endpoint, Policy},
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

    /// Applies a changed configuration of the peer; its sessions continue.
    pub fn change(&mut self, new: Change, now: Instant) {
        for path in &self.paths {
            if !new.paths.iter().any(|other| other.id == path.id) {
                self.tunnel.remove_path(path.id, now);
            }
        }
        for path in &new.paths {
            if !self.paths.contains(path) {
                self.tunnel.set_path(*path, now);
            }
        }
        self.tunnel.set_rules(&new.rules);
        self.allowed = new.allowed;
        self.rank = new.rank;
        self.paths = new.paths;
        self.name = new.name;
    }
}

/// The part of a peer's configuration that may change.
pub struct Change {
    name: String,
    allowed: Vec<IpNet>,
    rank: Rank,
    paths: Vec<PathConfig>,
    rules: Vec<Rule>,
}

impl Change {
    /// The configuration of a peer.
    ///
    /// # Errors
    /// If it has too many endpoints.
    pub fn of(
        config: &Config,
        (name, peer): &(String, config::Peer),
        remotes: &[SocketAddr],
        ways: &Ways,
    ) -> Result<Self, String> {
        Ok(Self {
            name: name.clone(),
            allowed: peer.allowed.iter().map(|prefix| prefix.0.trunc()).collect(),
            rank: Rank {
                group: peer.group.clone(),
                priority: peer.priority.unwrap_or(0),
            },
            paths: paths(config, remotes, ways)?,
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

/// The known addresses of each peer's endpoints, in the configuration's order.
pub fn remotes(config: &Config, known: &Addresses) -> Vec<Vec<SocketAddr>> {
    let address = |endpoint: &Endpoint| match endpoint {
        Endpoint::Address(address) => Some(*address),
        Endpoint::Name(host, port) => known.get(&(host.clone(), *port)).copied(),
    };
    let peers = config.peer.0.iter();
    peers
        .map(|(_, peer)| peer.endpoints.iter().filter_map(address).collect())
        .collect()
}

/// The names of a peer's endpoints without a known address.
pub fn unknown<'a>(
    peer: &'a config::Peer,
    known: &'a Addresses,
) -> impl Iterator<Item = Name> + use<'a> {
    peer.endpoints.iter().filter_map(|endpoint| match endpoint {
        Endpoint::Address(_) => None,
        Endpoint::Name(host, port) => {
            let name = (host.clone(), *port);
            (!known.contains_key(&name)).then_some(name)
        }
    })
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
    let tunnel = tunnel::Config {
        keys: Keys {
            private: *identity.private(),
            peer: keys.0,
            psk: keys.1,
        },
        paths: change.paths.clone(),
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
        paths: change.paths,
    }
}

/// The role of a path.
pub const fn role(policy: Policy) -> Role {
    match policy {
        Policy::Active => Role::Active,
        Policy::Overflow => Role::Overflow,
        Policy::Backup => Role::Backup,
        Policy::Metered => Role::Metered,
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

/// The paths to a peer. Path `i` leads to endpoint `i`; if there are fewer endpoints, paths take
/// them in turn. If no path is configured, there is one for each endpoint.
///
/// # Errors
/// If there are more paths than a tunnel supports.
fn paths(config: &Config, remotes: &[SocketAddr], ways: &Ways) -> Result<Vec<PathConfig>, String> {
    if config.path.is_empty() {
        let path = |(number, &remote): (u8, &SocketAddr)| {
            let id = PathId::new(number).ok_or_else(|| {
                format!(
                    "a peer has {PATHS} endpoints at most, not {}",
                    remotes.len()
                )
            })?;
            let local = ways.serving(remote);
            let route = Some(Route { local, remote });
            let role = Role::Active;
            Ok(PathConfig { id, route, role })
        };
        return (0..=u8::MAX).zip(remotes).map(path).collect();
    }
    let paths = ways.paths().filter_map(|(id, name)| {
        let mut ways = config.path.0.iter().enumerate();
        let (place, (_, way)) = ways.find(|(_, (other, _))| other == name)?;
        // A source address reaches only addresses of its family.
        let is_fit = |remote: &&SocketAddr| {
            let source = way.source;
            source.is_none_or(|source| source.0.is_ipv4() == remote.is_ipv4())
        };
        let fit: Vec<&SocketAddr> = remotes.iter().filter(is_fit).collect();
        let remote = (!fit.is_empty()).then(|| *fit[place % fit.len()]);
        Some(PathConfig {
            id,
            route: remote.map(|remote| Route {
                local: id.number().into(),
                remote,
            }),
            role: role(way.policy),
        })
    });
    Ok(paths.collect())
}
