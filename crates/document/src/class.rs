//! Classes of a gateway's packets, common to scenarios and gateway configurations.

use core::{net::IpAddr, ops::RangeInclusive};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Named,
    error::choice,
    select::{Dscp, Many, Ports, Prefix},
};

/// Packets with a different treatment in the tunnel. The first class that matches a packet applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "GatewayClass")]
pub struct Class {
    /// The packets of the class.
    #[serde(rename = "match")]
    pub matches: ClassMatch,
    /// Treatment of the packets.
    pub mode: Mode,
    /// With `mode = "pinned"`: the path of the packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// The packets of a class: they match each key that is given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClassMatch {
    /// Code points (RFC 2474): `"ef"`, `"af41"`, `"cs5"`, a number, or a list of these.
    #[serde(skip_serializing_if = "Many::is_empty")]
    pub dscp: Many<Dscp>,
    /// Ports of either end, over TCP or UDP: `443`, `"5000-5010"`, or a list of these.
    #[serde(skip_serializing_if = "Many::is_empty")]
    pub port: Many<Ports>,
    /// Addresses of either end: `"192.0.2.0/24"`, or a list of these.
    #[serde(skip_serializing_if = "Many::is_empty")]
    pub prefix: Many<Prefix>,
}

impl ClassMatch {
    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.dscp.is_empty() && self.port.is_empty() && self.prefix.is_empty()
    }
    /// The code points.
    pub fn code_points(&self) -> impl Iterator<Item = u8> {
        self.dscp.0.iter().map(|dscp| dscp.get())
    }
    /// The ports.
    pub fn ports(&self) -> impl Iterator<Item = RangeInclusive<u16>> {
        self.port.0.iter().map(|ports| ports.first..=ports.last)
    }
    /// The networks, each with its prefix length.
    pub fn networks(&self) -> impl Iterator<Item = (IpAddr, u8)> {
        let networks = self.prefix.0.iter();
        networks.map(|prefix| (prefix.0.network(), prefix.0.prefix_len()))
    }
}

/// Treatment of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ClassMode")]
pub enum Mode {
    /// For throughput, over all paths.
    Bulk,
    /// For low delay: the path with the lowest delay, and copies on other paths if these have spare
    /// capacity.
    Interactive,
    /// One path while it is alive.
    Pinned,
}

/// An error in a class, and its position in the class's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The class's name.
    pub class: String,
    /// The key in its table; `None` for the table.
    pub key: Option<&'static str>,
    /// Description of the error.
    pub message: String,
    /// The expected value, and the nearest name.
    pub help: Vec<String>,
}

impl Wrong {
    /// The path of the class, given the keys that lead to the classes.
    #[must_use]
    pub fn path<'a>(&'a self, classes: &[&'a str]) -> Vec<&'a str> {
        let own = [Some(self.class.as_str()), self.key];
        classes
            .iter()
            .copied()
            .chain(own.into_iter().flatten())
            .collect()
    }
}

/// Checks the keys of each class against each other. `paths` are the names to which a class may be
/// pinned.
///
/// # Errors
/// The first invalid class.
pub fn check(classes: &Named<Class>, paths: &[&str]) -> Result<(), Wrong> {
    for (name, class) in &classes.0 {
        let wrong = |key, message: String, help: Vec<String>| {
            Err(Wrong {
                class: name.clone(),
                key,
                message,
                help,
            })
        };
        if class.matches.is_empty() {
            let message = format!("the class `{name}` does not select any packets");
            let help = "expected `dscp`, `port` or `prefix`".to_owned();
            return wrong(Some("match"), message, vec![help]);
        }
        match (class.mode, &class.path) {
            (Mode::Pinned, None) => {
                let message = format!("the class `{name}` has no path to pin packets to");
                let help = "expected `path`, the name of a path".to_owned();
                return wrong(None, message, vec![help]);
            }
            (Mode::Pinned, Some(path)) if !paths.contains(&path.as_str()) => {
                let message = format!("there is no path `{path}`");
                return wrong(Some("path"), message, choice(path, paths));
            }
            (Mode::Bulk | Mode::Interactive, Some(_)) => {
                let message = "`path` belongs to `mode = \"pinned\"`".to_owned();
                return wrong(
                    Some("path"),
                    message,
                    vec!["leave it out, or pin".to_owned()],
                );
            }
            (Mode::Pinned, Some(_)) | (Mode::Bulk | Mode::Interactive, None) => {}
        }
    }
    Ok(())
}
