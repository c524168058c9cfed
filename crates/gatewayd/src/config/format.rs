//! The form of the file.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anabranch_document::{Named, class::Class, select::Prefix};
use serde::Deserialize;

use super::value::{Endpoint, Interface, Listen, Source};
use crate::key::Key;

/// A gateway's configuration. Rates, delays, loss and path MTU are measured and have no key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// This end.
    pub gateway: Gateway,
    /// The other ends, by name.
    #[serde(default)]
    pub peer: Named<Peer>,
    /// The ways out of this machine, by name; without one the system's routes are the only way.
    #[serde(default)]
    pub path: Named<Way>,
    /// Packets that are treated otherwise, by name; the first class that fits holds.
    #[serde(default)]
    pub class: Named<Class>,
    /// Where the daemon answers questions about its state.
    #[serde(default)]
    pub status: Status,
}

impl Config {
    /// The folders that a reload of `file` reads.
    pub fn folders(&self, file: &Path) -> Vec<PathBuf> {
        let folder = file.parent().unwrap_or(Path::new("/"));
        let peers = self.peer.0.iter();
        let keys = peers.filter_map(|(_, peer)| peer.preshared_key_file.as_ref());
        let keys = keys.chain([&self.gateway.private_key_file]);
        let key_folders = keys.filter_map(|key| Some(folder.join(key.parent()?)));
        key_folders.chain([folder.to_owned()]).collect()
    }

    /// Whether a daemon that is up with another configuration can take this one.
    ///
    /// # Errors
    /// A message that names what needs a restart.
    pub fn is_reloadable(&self, before: &Self) -> Result<(), String> {
        let (new, old) = (&self.gateway, &before.gateway);
        let secrets = [&new.secret, &old.secret].map(|secret| secret.0.as_ref().map(|key| key.0));
        let needs = [
            (new.interface != old.interface, "`interface`"),
            (new.addresses != old.addresses, "`addresses`"),
            (secrets[0] != secrets[1], "the private key"),
            (self.status != before.status, "`[status]`"),
        ];
        match needs.iter().find(|(is_changed, _)| *is_changed) {
            Some((_, what)) => Err(format!("{what} has changed, which needs a restart")),
            None => Ok(()),
        }
    }
}

/// This end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gateway {
    /// Its addresses inside the tunnel, each with the length of its network's prefix.
    pub addresses: Vec<Prefix>,
    /// The file that holds its private key (X25519, base64), beside this one; nobody but its owner may read it.
    pub private_key_file: PathBuf,
    /// The TUN interface's name.
    #[serde(default)]
    pub interface: Interface,
    /// Addresses and UDP ports; needed where the other end begins.
    #[serde(default)]
    pub listen: Vec<Listen>,
    /// The key of `private_key_file`.
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
    pub endpoints: Vec<Endpoint>,
    /// The key of `preshared_key_file`.
    #[serde(skip)]
    pub preshared: Secret,
}

/// A way out of this machine: by an interface, or from an address.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// The interface that it leaves by.
    #[serde(default)]
    pub interface: Option<Interface>,
    /// The address that it leaves from; the system's routes choose the interface.
    #[serde(default)]
    pub source: Option<Source>,
    /// When it is used.
    #[serde(default)]
    pub policy: Policy,
}

impl Way {
    /// The interface or the address.
    pub fn place(&self) -> String {
        let interface = self.interface.as_ref().map(|interface| interface.0.clone());
        let source = || self.source.map(|source| source.0.to_string());
        interface.or_else(source).unwrap_or_default()
    }
}

/// When a path is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Always.
    #[default]
    Active,
    /// Where no active path is alive.
    Backup,
    /// As a backup, and probed as little as possible.
    Metered,
}

/// Where the daemon answers questions about its state.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// The socket that `anabranch-gateway status` asks.
    #[serde(default)]
    pub socket: Option<PathBuf>,
    /// Where Prometheus reads metrics; loopback only.
    #[serde(default)]
    pub metrics: Option<SocketAddr>,
}
