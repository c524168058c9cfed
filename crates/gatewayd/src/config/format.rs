//! The format of the file.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anabranch_document::{Named, class::Class, select::Prefix};
use serde::Deserialize;

use super::{
    bypass::Bypass,
    cap::{AtCap, Cap, MaxRate},
    value::{Endpoint, Interface, Listen, Source},
};
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
    /// The local paths, by name; without any, the system's routes are the only path.
    #[serde(default)]
    pub path: Named<Way>,
    /// Packet classes, by name; the first class that matches applies.
    #[serde(default)]
    pub class: Named<Class>,
    /// Traffic that does not use the tunnel, by name.
    #[serde(default)]
    pub bypass: Named<Bypass>,
    /// Sockets for queries of the daemon's state.
    #[serde(default)]
    pub status: Status,
    /// The message about the first cap, if the file has no folder for its count.
    #[serde(skip)]
    pub uncounted: Option<String>,
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

    /// The folder of state that survives a restart: that of `file`, else systemd's
    /// `StateDirectory`.
    pub fn state_folder(&self, file: &Path) -> Option<PathBuf> {
        if let Some(folder) = &self.gateway.state_directory {
            return Some(file.parent().unwrap_or(Path::new("/")).join(folder));
        }
        let given = std::env::var("STATE_DIRECTORY").ok()?;
        let first = given.split(':').next().filter(|first| !first.is_empty())?;
        Some(PathBuf::from(first))
    }

    /// Whether there is a folder for the counts of caps.
    ///
    /// # Errors
    /// A message about the first cap if there is none.
    pub fn counts_caps(&self, file: &Path) -> Result<(), String> {
        match &self.uncounted {
            Some(why) if self.state_folder(file).is_none() => Err(why.clone()),
            _ => Ok(()),
        }
    }

    /// Whether a peer has a default route, so that queries for names may take the tunnel.
    pub fn routes_all(&self) -> bool {
        let allowed = self.peer.0.iter().flat_map(|(_, peer)| &peer.allowed);
        allowed.into_iter().any(|prefix| prefix.0.prefix_len() == 0)
    }

    /// Whether a running daemon can change from `before` to this configuration.
    ///
    /// # Errors
    /// A message that names the key that requires a restart.
    pub fn is_reloadable(&self, before: &Self) -> Result<(), String> {
        let (new, old) = (&self.gateway, &before.gateway);
        let secrets = [&new.secret, &old.secret].map(|secret| secret.0.as_ref().map(|key| key.0));
        let needs = [
            (new.interface != old.interface, "`interface`"),
            (new.addresses != old.addresses, "`addresses`"),
            (secrets[0] != secrets[1], "the private key"),
            (
                new.state_directory != old.state_directory,
                "`state_directory`",
            ),
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
    /// Its addresses inside the tunnel, each with a prefix length.
    pub addresses: Vec<Prefix>,
    /// The file with its private key (X25519, base64), relative to this file; only its owner may
    /// have read permission.
    pub private_key_file: PathBuf,
    /// The TUN interface's name.
    #[serde(default)]
    pub interface: Interface,
    /// Addresses and UDP ports; needed if the other end initiates.
    #[serde(default)]
    pub listen: Vec<Listen>,
    /// The folder of state that survives a restart, such as the history, relative to this file;
    /// systemd's `StateDirectory` if it is left out.
    #[serde(default)]
    pub state_directory: Option<PathBuf>,
    /// Whether packets to the peers' `allowed` are refused while the gateway is down, until
    /// `anabranch-gateway down`.
    #[serde(default)]
    pub protect: bool,
    /// The key of `private_key_file`.
    #[serde(skip)]
    pub secret: Secret,
}

/// A private key, which is never printed.
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
    /// An additional key that both ends share (base64).
    #[serde(default)]
    pub preshared_key_file: Option<PathBuf>,
    /// Addresses reached through it: packets from other sources are dropped, and packets to these
    /// addresses are sent to it.
    pub allowed: Vec<Prefix>,
    /// A group of peers that serve the same prefixes: the best one that is up carries the traffic.
    #[serde(default)]
    pub group: Option<String>,
    /// The rank in the group; the lowest is best, and the earlier one in the file of equal ranks.
    #[serde(default)]
    pub priority: Option<u16>,
    /// Its listening addresses; without any, it must initiate.
    #[serde(default)]
    pub endpoints: Vec<Endpoint>,
    /// The key of `preshared_key_file`.
    #[serde(skip)]
    pub preshared: Secret,
}

/// A local path: over an interface, or from a source address.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// The interface of its datagrams.
    #[serde(default)]
    pub interface: Option<Interface>,
    /// The source address of its datagrams; the system's routes choose the interface.
    #[serde(default)]
    pub source: Option<Source>,
    /// The role of the path.
    #[serde(default)]
    pub policy: Policy,
    /// The octets that the path may carry in a period, in both directions.
    #[serde(default)]
    pub cap: Option<Cap>,
    /// The day of the month on which the period of a monthly cap begins; 1 if it is left out.
    #[serde(default)]
    pub reset_day: Option<u8>,
    /// The use of the path once its cap is reached.
    #[serde(default)]
    pub at_cap: Option<AtCap>,
    /// Percentages of the cap at which a message is logged; 80 and 95 if it is left out.
    #[serde(default)]
    pub alarms: Option<Vec<u8>>,
    /// The greatest rate at which this end sends on the path.
    #[serde(default)]
    pub max_rate: Option<MaxRate>,
}

impl Way {
    /// The interface or the address.
    pub fn place(&self) -> String {
        let interface = self.interface.as_ref().map(|interface| interface.0.clone());
        let source = || self.source.map(|source| source.0.to_string());
        interface.or_else(source).unwrap_or_default()
    }
}

/// The role of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Used always.
    #[default]
    Active,
    /// Used while all active paths are full, or if none is alive.
    Overflow,
    /// Used if no active or overflow path is alive.
    Backup,
    /// Used if no other path is alive.
    Metered,
}

/// Sockets for queries of the daemon's state.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// The socket for `anabranch-gateway status`.
    #[serde(default)]
    pub socket: Option<PathBuf>,
    /// The address at which Prometheus reads metrics; loopback only.
    #[serde(default)]
    pub metrics: Option<SocketAddr>,
}
