//! The form of the file.

use std::{net::SocketAddr, path::PathBuf};

use anabranch_document::Named;
use serde::Deserialize;

use super::value::{Dscp, Endpoint, Interface, Ports, Prefix};
use crate::key::Key;

/// A gateway's configuration. Rates, delays, loss and path MTU are measured and have no key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// This end.
    pub tunnel: Tunnel,
    /// The other ends, by name.
    #[serde(default)]
    pub peer: Named<Peer>,
    /// The ways out of this machine, by name; without one the system's routes are the only way.
    #[serde(default)]
    pub path: Named<Way>,
    /// What packets are treated otherwise, by name; the first that fits holds.
    #[serde(default)]
    pub policy: Named<Policy>,
    /// Where the daemon says how it is.
    #[serde(default)]
    pub status: Status,
}

/// This end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tunnel {
    /// Its addresses inside the tunnel, each with the length of its network's prefix.
    pub address: Vec<Prefix>,
    /// Its private key (X25519, base64).
    #[serde(default)]
    pub private_key: Option<Key>,
    /// The file that holds it, beside this one; nobody but its owner may read it.
    #[serde(default)]
    pub private_key_file: Option<PathBuf>,
    /// The TUN interface's name.
    #[serde(default)]
    pub interface: Interface,
    /// The UDP port; needed where the other end begins.
    #[serde(default)]
    pub listen: Option<u16>,
    /// The private key, wherever it stands.
    #[serde(skip)]
    pub secret: Secret,
}

/// A private key; it is not shown.
#[derive(Default)]
pub struct Secret(pub Option<Key>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// Another end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Its public key (X25519, base64).
    pub public_key: Key,
    /// A key that both ends share besides (base64).
    #[serde(default)]
    pub preshared_key_file: Option<PathBuf>,
    /// The addresses behind it: packets from others are dropped, packets to these go to it.
    pub allowed: Vec<Prefix>,
    /// Where it listens; without, it has to begin.
    #[serde(default)]
    pub endpoint: Vec<Endpoint>,
    /// The key of `preshared_key_file`.
    #[serde(skip)]
    pub preshared: Secret,
}

/// A way out of this machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// The interface that it leaves by.
    pub interface: Interface,
    /// When it is used.
    #[serde(default)]
    pub role: Role,
}

/// When a path is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Always.
    #[default]
    Active,
    /// Where no active path is alive.
    Backup,
    /// As a backup, and probed as little as possible.
    Metered,
}

/// What packets are treated otherwise. A packet fits if it fits each key that is given.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Code points (RFC 2474): `ef`, `af41`, `cs5`, or a number.
    #[serde(default)]
    pub dscp: Vec<Dscp>,
    /// Ports of either end, `443` or `"5000-5010"`.
    #[serde(default)]
    pub port: Vec<Ports>,
    /// Addresses of either end.
    #[serde(default)]
    pub prefix: Vec<Prefix>,
    /// How they are treated.
    pub class: Class,
    /// With `class = "pinned"`: the path that they take.
    #[serde(default)]
    pub path: Option<String>,
}

/// How packets are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// For throughput, over all paths.
    Bulk,
    /// For low delay: the path with the lowest, and copies on others where these have room.
    Interactive,
    /// One path while it is alive.
    Pinned,
}

/// Where the daemon says how it is.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// The socket that `anabranch-gateway status` asks.
    #[serde(default)]
    pub socket: Option<PathBuf>,
    /// Where Prometheus reads metrics; loopback only.
    #[serde(default)]
    pub metrics: Option<SocketAddr>,
}
