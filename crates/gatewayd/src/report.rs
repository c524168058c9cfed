//! What a configuration says, for its author.

use std::fmt::Write;

use crate::{
    config::{Class, Config, Role},
    key::public,
};

/// A few lines.
pub fn report(config: &Config) -> String {
    let mut text = String::new();
    let list = |items: Vec<String>| items.join(", ");
    let tunnel = &config.tunnel;
    if let Some(secret) = &tunnel.secret.0 {
        let _ = writeln!(text, "public key  {}", public(secret));
    }
    let addresses = list(tunnel.address.iter().map(ToString::to_string).collect());
    let _ = writeln!(text, "interface   {} with {addresses}", tunnel.interface.0);
    if let Some(port) = tunnel.listen {
        let _ = writeln!(text, "listens     UDP port {port}");
    }
    for (name, way) in &config.path.0 {
        let role = match way.role {
            Role::Active => "",
            Role::Backup => ", backup",
            Role::Metered => ", metered",
        };
        let _ = writeln!(text, "path        {name}: {}{role}", way.interface.0);
    }
    if config.path.is_empty() {
        let _ = writeln!(text, "path        the system's routes");
    }
    for (name, peer) in &config.peer.0 {
        let allowed = list(peer.allowed.iter().map(ToString::to_string).collect());
        let endpoint = if peer.endpoint.is_empty() {
            "begins itself".to_owned()
        } else {
            list(peer.endpoint.iter().map(ToString::to_string).collect())
        };
        let _ = writeln!(text, "peer        {name}: {endpoint}; behind it {allowed}");
    }
    for (name, policy) in &config.policy.0 {
        let class = match (policy.class, &policy.path) {
            (Class::Pinned, Some(path)) => format!("pinned to {path}"),
            (Class::Pinned, None) => "pinned".to_owned(),
            (Class::Interactive, _) => "interactive".to_owned(),
            (Class::Bulk, _) => "bulk".to_owned(),
        };
        let _ = writeln!(text, "policy      {name}: {class}");
    }
    if let Some(socket) = &config.status.socket {
        let _ = writeln!(text, "status      {}", socket.display());
    }
    if let Some(metrics) = config.status.metrics {
        let _ = writeln!(text, "metrics     http://{metrics}/metrics");
    }
    text
}
