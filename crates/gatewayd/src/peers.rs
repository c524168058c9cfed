//! The other ends: their tunnels, and where these go.

use std::net::{SocketAddr, ToSocketAddrs};

use anabranch_core::{system::words, units::Instant};
use anabranch_gateway::{
    crypto::{Entropy, Keys},
    inner,
    path::Route,
    policy::{Class, Match, Role, Rule},
    tunnel::{self, PathConfig, Tunnel},
    wire::{PATHS, PathId},
};
use ipnet::IpNet;

use crate::{
    config::{self, Config, Endpoint, Mode, Policy},
    ways::Ways,
};

/// The kernel's random octets.
struct System;

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
    /// What is behind it.
    pub allowed: Vec<IpNet>,
    /// The tunnel to it.
    pub tunnel: Tunnel,
    /// What its paths carried.
    pub traffic: [Traffic; PATHS],
}

/// The addresses of each peer's endpoints, in the configuration's order.
///
/// # Errors
/// If a name has no address now.
pub fn resolve(config: &Config) -> Result<Vec<Vec<SocketAddr>>, String> {
    let peers = config.peer.0.iter();
    peers
        .map(|(_, peer)| peer.endpoints.iter().map(resolve_one).collect())
        .collect()
}

fn resolve_one(endpoint: &Endpoint) -> Result<SocketAddr, String> {
    match endpoint {
        Endpoint::Address(address) => Ok(*address),
        Endpoint::Name(host, port) => (host.as_str(), *port)
            .to_socket_addrs()
            .map_err(|error| format!("{endpoint}: {}", words(&error)))?
            .next()
            .ok_or_else(|| format!("{endpoint}: the name has no address")),
    }
}

/// A peer that has just been configured.
///
/// # Errors
/// If it has too many endpoints.
pub fn peer(
    config: &Config,
    (name, peer): &(String, config::Peer),
    remotes: &[SocketAddr],
    ways: &Ways,
    now: Instant,
) -> Result<Peer, String> {
    let secret = config.gateway.secret.0.as_ref();
    let keys = Keys {
        private: secret.ok_or("there is no private key")?.0,
        peer: peer.public_key.0,
        psk: peer.preshared.0.as_ref().map(|key| key.0),
    };
    let allowed: Vec<IpNet> = peer.allowed.iter().map(|prefix| prefix.0.trunc()).collect();
    let source = |net: &IpNet| inner::Prefix::new(net.addr(), net.prefix_len());
    let tunnel = tunnel::Config {
        keys,
        paths: paths(config, remotes, ways)?,
        sources: allowed.iter().filter_map(source).collect(),
        rules: rules(config, ways),
    };
    Ok(Peer {
        name: name.clone(),
        allowed,
        tunnel: Tunnel::new(tunnel, Box::new(System), now),
        traffic: [Traffic::default(); PATHS],
    })
}

/// How packets are treated, in the configuration's order.
fn rules(config: &Config, ways: &Ways) -> Vec<Rule> {
    let path = |name: &String| ways.paths().find(|(_, other)| *other == name);
    let rules = config.class.0.iter().filter_map(|(_, class)| {
        let matches = &class.matches;
        let prefix = |net: IpNet| inner::Prefix::new(net.addr(), net.prefix_len());
        let prefixes = matches.prefix.0.iter().map(|prefix| prefix.0.trunc());
        let class = match class.mode {
            Mode::Bulk => Class::Bulk,
            Mode::Interactive => Class::Interactive,
            Mode::Pinned => Class::Pinned(class.path.as_ref().and_then(path)?.0),
        };
        let matches = Match {
            dscp: matches.dscp.0.iter().map(|dscp| dscp.0).collect(),
            ports: matches
                .port
                .0
                .iter()
                .map(|ports| ports.first..=ports.last)
                .collect(),
            prefixes: prefixes.filter_map(prefix).collect(),
        };
        Some(Rule { matches, class })
    });
    rules.collect()
}

/// The paths to a peer. Path `i` goes to endpoint `i`; where there are fewer endpoints they are used in turn, and where no path is
/// configured there is one for each endpoint.
///
/// # Errors
/// If there are more than a tunnel has.
pub fn paths(
    config: &Config,
    remotes: &[SocketAddr],
    ways: &Ways,
) -> Result<Vec<PathConfig>, String> {
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
        // A source address reaches addresses of its own family.
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
            role: match way.policy {
                Policy::Active => Role::Active,
                Policy::Backup => Role::Backup,
                Policy::Metered => Role::Metered,
            },
        })
    });
    Ok(paths.collect())
}
