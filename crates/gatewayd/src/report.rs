//! A description of a configuration for its author.

use std::fmt::Write;

use anabranch_document::class::Mode;

use crate::{
    config::{Config, Policy},
    key::public,
    protect,
};

/// The description, in a few lines.
pub fn report(config: &Config) -> String {
    let mut text = String::new();
    let list = |items: Vec<String>| items.join(", ");
    let gateway = &config.gateway;
    if let Some(secret) = &gateway.secret.0 {
        let _ = writeln!(text, "public key  {}", public(secret));
    }
    let addresses = list(gateway.addresses.iter().map(ToString::to_string).collect());
    let _ = writeln!(text, "interface   {} with {addresses}", gateway.interface.0);
    let protected = list(
        protect::nets(config)
            .iter()
            .map(ToString::to_string)
            .collect(),
    );
    if !protected.is_empty() {
        let _ = writeln!(
            text,
            "protected   {protected}: refused while the gateway is down"
        );
    }
    if !gateway.listen.is_empty() {
        let listen = list(gateway.listen.iter().map(|at| at.0.to_string()).collect());
        let _ = writeln!(text, "listens     {listen}");
    }
    for (name, way) in &config.path.0 {
        let policy = match way.policy {
            Policy::Active => "",
            Policy::Overflow => ", overflow",
            Policy::Backup => ", backup",
            Policy::Metered => ", metered",
        };
        let cap = way.cap.map_or(String::new(), |cap| format!(", {cap}"));
        let rate = way.max_rate;
        let rate = rate.map_or(String::new(), |rate| format!(", sends {} at most", rate.0));
        let _ = writeln!(
            text,
            "path        {name}: {}{policy}{cap}{rate}",
            way.place()
        );
    }
    if config.path.is_empty() {
        let _ = writeln!(text, "path        the system's routes");
    }
    for (name, peer) in &config.peer.0 {
        let allowed = list(peer.allowed.iter().map(ToString::to_string).collect());
        let endpoints = if peer.endpoints.is_empty() {
            "calls this end".to_owned()
        } else {
            list(peer.endpoints.iter().map(ToString::to_string).collect())
        };
        let group = peer.group.as_ref().map_or(String::new(), |group| {
            format!(
                "; server of {group}, priority {}",
                peer.priority.unwrap_or(0)
            )
        });
        let _ = writeln!(
            text,
            "peer        {name}: {endpoints}; behind it {allowed}{group}"
        );
    }
    for (name, class) in &config.class.0 {
        let mode = match (class.mode, &class.path) {
            (Mode::Pinned, Some(path)) => format!("pinned to {path}"),
            (Mode::Pinned, None) => "pinned".to_owned(),
            (Mode::Interactive, _) => "interactive".to_owned(),
            (Mode::Bulk, _) => "bulk".to_owned(),
        };
        let _ = writeln!(text, "class       {name}: {mode}");
    }
    for (name, bypass) in &config.bypass.0 {
        let _ = writeln!(text, "bypass      {name}: {}", bypass.text());
    }
    if let Some(socket) = &config.status.socket {
        let _ = writeln!(text, "status      {}", socket.display());
    }
    if let Some(metrics) = config.status.metrics {
        let _ = writeln!(text, "metrics     http://{metrics}/metrics");
    }
    text
}
