//! What the values of a file must have in common, and the files that it names.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use anabranch_core::system::words;
use anabranch_document::{
    Error,
    error::{Sources, choice},
    tree::Node,
};

use anabranch_files::Files;

use super::format::{Class, Config, Secret};
use crate::key::{Key, public};

/// The most octets of a key file.
const MAX_KEY_FILE: u64 = 1024;

struct Checker<'a> {
    root: &'a Node,
    sources: &'a Sources,
    folder: &'a Path,
}

impl Checker<'_> {
    fn error(&self, path: &[&str], message: impl Into<String>, help: &str) -> Error {
        self.errors(path, message, vec![help.to_owned()])
    }

    fn errors(&self, path: &[&str], message: impl Into<String>, help: Vec<String>) -> Error {
        self.sources.error(self.root.locate(path), message, help)
    }

    /// A key that stands in a file of its own.
    fn key_file(&self, path: &[&str], file: &Path) -> Result<Key, Error> {
        let at = self.folder.join(file);
        let name = at.display();
        let help = "expected a file that holds a key in base64";
        let bytes = Files::default()
            .read(&at, MAX_KEY_FILE)
            .map_err(|why| self.error(path, format!("{name}: {why}"), help))?;
        let about = fs::metadata(&at)
            .map_err(|why| self.error(path, format!("{name}: {}", words(&why)), help))?;
        let mode = about.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let message = format!("{name} can be read by others (mode {mode:04o})");
            return Err(self.error(
                path,
                message,
                &format!("expected mode 0600: chmod 600 {name}"),
            ));
        }
        String::from_utf8_lossy(&bytes)
            .trim()
            .parse()
            .map_err(|why| self.error(path, format!("the content of {name} {why}"), help))
    }
}

/// Refuses what cannot be, and reads the keys.
pub fn check(
    mut config: Config,
    root: &Node,
    sources: &Sources,
    folder: &Path,
) -> Result<Config, Error> {
    let checker = Checker {
        root,
        sources,
        folder,
    };
    let tunnel = &mut config.tunnel;
    if tunnel.address.is_empty() {
        let path = ["tunnel", "address"];
        return Err(checker.error(&path, "there is no address", "expected one at least"));
    }
    let secret = match (&tunnel.private_key, &tunnel.private_key_file) {
        (Some(key), None) => key.clone(),
        (None, Some(file)) => checker.key_file(&["tunnel", "private_key_file"], file)?,
        (Some(_), Some(_)) => {
            let path = ["tunnel", "private_key_file"];
            let message = "`private_key` is given as well";
            return Err(checker.error(&path, message, "expected one of them"));
        }
        (None, None) => {
            let message = "there is no private key";
            let help = "expected `private_key_file`: anabranch-gateway keygen --out FILE";
            return Err(checker.error(&["tunnel"], message, help));
        }
    };
    let own = public(&secret);
    tunnel.secret = Secret(Some(secret));
    peers(&mut config, &own, &checker)?;
    paths(&config, &checker)?;
    policies(&config, &checker)?;
    if let Some(metrics) = config.status.metrics
        && !metrics.ip().is_loopback()
    {
        let message = format!("{metrics} can be reached by others");
        let help = "expected an address of this machine's own, for example \"127.0.0.1:9469\"";
        return Err(checker.error(&["status", "metrics"], message, help));
    }
    Ok(config)
}

fn peers(config: &mut Config, own: &Key, checker: &Checker<'_>) -> Result<(), Error> {
    if config.peer.is_empty() {
        let help = "expected a `[peer.NAME]` with `public_key` and `allowed`";
        return Err(checker.error(&[], "there is no peer", help));
    }
    for i in 0..config.peer.0.len() {
        let (name, peer) = &config.peer.0[i];
        let name = name.clone();
        if peer.public_key == *own {
            let message = "this is the public key of this end";
            let help = "expected the other end's: anabranch-gateway check prints it there";
            return Err(checker.error(&["peer", &name, "public_key"], message, help));
        }
        let before = &config.peer.0[..i];
        if let Some((other, _)) = before.iter().find(|(_, p)| p.public_key == peer.public_key) {
            let message = format!("the peer `{other}` has the same public key");
            return Err(checker.error(
                &["peer", &name, "public_key"],
                message,
                "expected one key for each",
            ));
        }
        for (n, prefix) in peer.allowed.iter().enumerate() {
            let overlaps = |net: &ipnet::IpNet| net.contains(&prefix.0) || prefix.0.contains(net);
            for (other, earlier) in before {
                if let Some(taken) = earlier.allowed.iter().find(|p| overlaps(&p.0)) {
                    let message = format!("{prefix} overlaps {taken} of the peer `{other}`");
                    let help = "expected prefixes that have no address in common: one peer is behind each address";
                    return Err(checker.error(
                        &["peer", &name, "allowed", &n.to_string()],
                        message,
                        help,
                    ));
                }
            }
            if let Some(address) = config
                .tunnel
                .address
                .iter()
                .find(|a| prefix.0.contains(&a.0.addr()))
            {
                let message = format!("{prefix} has this end's own address {address}");
                let help = "expected addresses behind the other end";
                return Err(checker.error(
                    &["peer", &name, "allowed", &n.to_string()],
                    message,
                    help,
                ));
            }
        }
        if peer.endpoint.is_empty() && config.tunnel.listen.is_none() {
            let message = format!(
                "neither end begins: the peer `{name}` has no `endpoint`, and this end does not listen"
            );
            let help = "expected `endpoint` here, or `listen` in `[tunnel]`";
            return Err(checker.error(&["peer", &name], message, help));
        }
        if let Some(file) = peer.preshared_key_file.clone() {
            let key = checker.key_file(&["peer", &name, "preshared_key_file"], &file)?;
            config.peer.0[i].1.preshared = Secret(Some(key));
        }
    }
    Ok(())
}

fn paths(config: &Config, checker: &Checker<'_>) -> Result<(), Error> {
    for (i, (name, way)) in config.path.0.iter().enumerate() {
        let at = ["path", name, "interface"];
        if way.interface == config.tunnel.interface {
            let message = format!("`{}` is the tunnel's own interface", way.interface.0);
            return Err(checker.error(&at, message, "expected one that leads out"));
        }
        let before = &config.path.0[..i];
        if let Some((other, _)) = before.iter().find(|(_, w)| w.interface == way.interface) {
            let message = format!("the path `{other}` leaves by `{}`, too", way.interface.0);
            return Err(checker.error(&at, message, "expected one path for each interface"));
        }
    }
    Ok(())
}

fn policies(config: &Config, checker: &Checker<'_>) -> Result<(), Error> {
    for (name, policy) in &config.policy.0 {
        if policy.dscp.is_empty() && policy.port.is_empty() && policy.prefix.is_empty() {
            let message = format!("the policy `{name}` does not say which packets it is for");
            return Err(checker.error(
                &["policy", name],
                message,
                "expected `dscp`, `port` or `prefix`",
            ));
        }
        match (policy.class, &policy.path) {
            (Class::Pinned, None) => {
                let message = format!("the policy `{name}` pins to no path");
                return Err(checker.error(
                    &["policy", name],
                    message,
                    "expected `path`, the name of one",
                ));
            }
            (Class::Pinned, Some(path)) => {
                let names: Vec<&str> = config.path.names().collect();
                if !names.contains(&path.as_str()) {
                    let at = ["policy", name, "path"];
                    return Err(checker.errors(
                        &at,
                        format!("there is no path `{path}`"),
                        choice(path, &names),
                    ));
                }
            }
            (_, Some(_)) => {
                let message = "`path` belongs to `class = \"pinned\"`";
                return Err(checker.error(
                    &["policy", name, "path"],
                    message,
                    "leave it out, or pin",
                ));
            }
            (_, None) => {}
        }
    }
    Ok(())
}
