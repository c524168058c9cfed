//! The configuration of another end, derived from this end's.

use std::fmt::Write;

use anabranch_core::shown;

use crate::{
    config::{Config, Endpoint},
    key::public,
};

/// The matching configuration of a peer. Its private key must be generated there.
///
/// # Errors
/// If there is no such peer, or if there are several and none is named.
pub fn other_end(
    config: &Config,
    name: Option<&str>,
    endpoints: &[Endpoint],
) -> Result<String, String> {
    let names = || config.peer.names().collect::<Vec<_>>().join(", ");
    let peer = match name {
        Some(name) => config.peer.0.iter().find(|(other, _)| other == name),
        None if config.peer.0.len() == 1 => config.peer.0.first(),
        None => return Err(format!("there are several peers; name one: {}", names())),
    };
    let Some((name, peer)) = peer else {
        return Err(format!(
            "there is no peer {:?}; there are: {}",
            name.unwrap_or_default(),
            names()
        ));
    };
    let Some(secret) = &config.gateway.secret.0 else {
        return Err("the configuration has no private key".to_owned());
    };
    let quoted = |items: Vec<String>| {
        let items: Vec<String> = items.iter().map(|item| format!("\"{item}\"")).collect();
        format!("[{}]", items.join(", "))
    };
    // The other end's addresses: hosts in this end's networks.
    let inside = |prefix: &&anabranch_document::select::Prefix| {
        let is_host = prefix.0.prefix_len() == prefix.0.max_prefix_len();
        is_host
            && config
                .gateway
                .addresses
                .iter()
                .any(|own| own.0.contains(&prefix.0))
    };
    let addresses: Vec<String> = peer
        .allowed
        .iter()
        .filter(inside)
        .map(|host| {
            let network = config
                .gateway
                .addresses
                .iter()
                .find(|own| own.0.contains(&host.0));
            let length = network.map_or(host.0.prefix_len(), |own| own.0.prefix_len());
            format!("{}/{length}", host.0.addr())
        })
        .collect();
    let mut text = format!(
        "# The peer `{}`. Make its key there: anabranch-gateway keygen --out key\n[gateway]\n",
        shown::plain(name)
    );
    if addresses.is_empty() {
        text.push_str("# addresses = [\"…\"]  # none of its addresses is in this end's networks\n");
    } else {
        let _ = writeln!(text, "addresses = {}", quoted(addresses));
    }
    text.push_str("private_key_file = \"key\"\n");
    let port = peer.endpoints.first().map(Endpoint::port);
    if let Some(port) = port {
        let _ = writeln!(text, "listen = [\"0.0.0.0:{port}\", \"[::]:{port}\"]");
    }
    let own = config
        .gateway
        .addresses
        .iter()
        .map(|own| ipnet::IpNet::from(own.0.addr()).to_string());
    let _ = writeln!(
        text,
        "\n[peer.gateway]\npublic_key = \"{}\"\nallowed = {}",
        public(secret),
        quoted(own.collect())
    );
    if endpoints.is_empty() {
        if !config.gateway.listen.is_empty() {
            text.push_str(
                "# endpoints = [\"HOST:PORT\"]  # where this end is reached: --endpoint\n",
            );
        }
    } else {
        let _ = writeln!(
            text,
            "endpoints = {}",
            quoted(endpoints.iter().map(ToString::to_string).collect())
        );
    }
    Ok(text)
}
