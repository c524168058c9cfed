//! Consistency checks of the values of a file, and of the files that it names.

use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, SocketAddr},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use anabranch_core::system::words;
use anabranch_document::{Error, class, error::Sources, select::Prefix, tree::Node};

use anabranch_files::Files;
use ipnet::IpNet;

use super::{
    bypass::{Mark, RULES},
    format::{Config, Peer, Secret, Way},
    value::Endpoint,
};
use crate::{
    calendar::Period,
    key::{Key, public},
    netlink::MARK,
};

/// The largest size of a key file in octets.
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

    /// Reads a key from a separate file.
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

/// Refuses inconsistent values, and reads the keys.
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
    let gateway = &mut config.gateway;
    if gateway.addresses.is_empty() {
        let path = ["gateway", "addresses"];
        return Err(checker.error(&path, "there is no address", "expected one at least"));
    }
    let path = ["gateway", "private_key_file"];
    let secret = checker.key_file(&path, &gateway.private_key_file)?;
    let own = public(&secret);
    gateway.secret = Secret(Some(secret));
    listens(&config, &checker)?;
    peers(&mut config, &own, &checker)?;
    paths(&config, &checker)?;
    config.uncounted = uncounted(&config, &checker);
    classes(&config, &checker)?;
    bypasses(&mut config, &checker)?;
    if let Some(metrics) = config.status.metrics
        && !metrics.ip().is_loopback()
    {
        let message = format!("{metrics} can be reached by others");
        let help = "expected an address of this machine's own, for example \"127.0.0.1:9469\"";
        return Err(checker.error(&["status", "metrics"], message, help));
    }
    Ok(config)
}

fn listens(config: &Config, checker: &Checker<'_>) -> Result<(), Error> {
    let listen: Vec<SocketAddr> = config.gateway.listen.iter().map(|at| at.0).collect();
    for (n, at) in listen.iter().enumerate() {
        let n_text = n.to_string();
        let path = ["gateway", "listen", &n_text];
        if listen[..n].contains(at) {
            let message = format!("{at} is in the list before");
            return Err(checker.error(&path, message, "expected each address and port once"));
        }
        // The sockets of paths are bound to interfaces or source addresses.
        if !config.path.is_empty() && !at.ip().is_unspecified() {
            let message = format!("{at} is one address, and each path has its own");
            let help = format!(
                "expected \"0.0.0.0:{0}\" or \"[::]:{0}\": each path listens there",
                at.port()
            );
            return Err(checker.error(&path, message, &help));
        }
        if !config.path.is_empty() && at.port() != listen[0].port() {
            let message = format!("{at} has another port than {}", listen[0]);
            let help = "expected one port where there are paths: each path listens there";
            return Err(checker.error(&path, message, help));
        }
    }
    Ok(())
}

fn peers(config: &mut Config, own: &Key, checker: &Checker<'_>) -> Result<(), Error> {
    if config.peer.is_empty() {
        let help = "expected a `[peer.NAME]` with `public_key` and `allowed`";
        return Err(checker.error(&[], "there is no peer", help));
    }
    let endpoints = endpoints(config);
    let mut before = Before::default();
    for i in 0..config.peer.0.len() {
        let (name, peer) = &config.peer.0[i];
        let name = name.clone();
        public_key(&name, peer, own, &before, config, checker)?;
        for (n, prefix) in peer.allowed.iter().enumerate() {
            let path = ["peer", &name, "allowed", &n.to_string()];
            let (message, help) = if let Some((other, taken)) = before.taken(*prefix, peer, config)
            {
                (
                    format!("the peer `{other}` has {taken}, too"),
                    "expected each prefix at one peer, or the same `group` in both peers: the best one that is up carries the traffic. A longer prefix within it is permitted",
                )
            } else if let Some(address) = own_address(*prefix, config) {
                (
                    format!("{prefix} is this end's own address {address}"),
                    "expected addresses of networks at the other end",
                )
            } else if let Some(endpoint) = looping(*prefix, &endpoints) {
                (
                    format!("the tunnel's datagrams to {endpoint} would enter the tunnel"),
                    "expected a prefix without it, \"0.0.0.0/0\" or \"::/0\", or a `[path.NAME]` with `interface`",
                )
            } else {
                continue;
            };
            return Err(checker.error(&path, message, help));
        }
        if let (Some(priority), None) = (peer.priority, &peer.group) {
            let message = format!("priority {priority} has no effect without a group");
            let help = "expected `group`: the peers of a group serve the same prefixes";
            return Err(checker.error(&["peer", &name, "priority"], message, help));
        }
        if let Some(group) = &peer.group
            && group.is_empty()
        {
            let message = "the group has no name";
            let help =
                "expected a name, the same at each of the peers that serve the same prefixes";
            return Err(checker.error(&["peer", &name, "group"], message, help));
        }
        if peer.endpoints.is_empty() && config.gateway.listen.is_empty() {
            let message = format!(
                "neither end begins: the peer `{name}` has no `endpoints`, and this end does not listen"
            );
            let help = "expected `endpoints` here, or `listen` in `[gateway]`";
            return Err(checker.error(&["peer", &name], message, help));
        }
        before.add(i, peer);
        if let Some(file) = peer.preshared_key_file.clone() {
            let key = checker.key_file(&["peer", &name, "preshared_key_file"], &file)?;
            config.peer.0[i].1.preshared = Secret(Some(key));
        }
    }
    Ok(())
}

fn public_key(
    name: &str,
    peer: &Peer,
    own: &Key,
    before: &Before,
    config: &Config,
    checker: &Checker<'_>,
) -> Result<(), Error> {
    let path = ["peer", name, "public_key"];
    if peer.public_key == *own {
        let message = "this is the public key of this end";
        let help = "expected the other end's: anabranch-gateway check prints it there";
        return Err(checker.error(&path, message, help));
    }
    if let Some(other) = before.keys.get(&peer.public_key.0) {
        let (other, _) = &config.peer.0[*other];
        let message = format!("the peer `{other}` has the same public key");
        return Err(checker.error(&path, message, "expected one key for each"));
    }
    Ok(())
}

/// Keys and prefixes of the peers that have been checked. A hub has thousands of peers, and
/// comparing each with each takes seconds.
#[derive(Default)]
struct Before {
    /// The peer with a public key.
    keys: BTreeMap<[u8; 32], usize>,
    /// The first peer with a prefix, and the prefix as its file has it.
    prefixes: BTreeMap<IpNet, (usize, Prefix)>,
}

impl Before {
    fn add(&mut self, index: usize, peer: &Peer) {
        self.keys.insert(peer.public_key.0, index);
        for prefix in &peer.allowed {
            let prefixes = self.prefixes.entry(prefix.0.trunc());
            prefixes.or_insert((index, *prefix));
        }
    }

    /// The same prefix of an earlier peer that is not in the same group. All earlier peers with a prefix
    /// are in one group, so that it suffices to compare with the first.
    fn taken<'a>(
        &self,
        prefix: Prefix,
        peer: &Peer,
        config: &'a Config,
    ) -> Option<(&'a str, Prefix)> {
        let (index, taken) = self.prefixes.get(&prefix.0.trunc())?;
        let (name, other) = &config.peer.0[*index];
        let is_grouped = other.group.is_some() && other.group == peer.group;
        (!is_grouped).then_some((name.as_str(), *taken))
    }
}

/// This end's address, if the prefix consists of exactly that address.
fn own_address(prefix: Prefix, config: &Config) -> Option<Prefix> {
    let is_host = prefix.0.prefix_len() == prefix.0.max_prefix_len();
    let mut own = config.gateway.addresses.iter().copied();
    own.find(|own| is_host && own.0.addr() == prefix.0.addr())
}

/// Endpoints whose datagrams enter the tunnel if a prefix has them. A default route and protected
/// prefixes are exempt because they have separate tables, and a socket bound to an interface does
/// not use routes over others.
fn endpoints(config: &Config) -> BTreeMap<IpAddr, SocketAddr> {
    let ways = &config.path.0;
    let is_bound = !ways.is_empty() && ways.iter().all(|(_, way)| way.interface.is_some());
    let peers = config.peer.0.iter().flat_map(|(_, peer)| &peer.endpoints);
    let addresses = peers.filter_map(|endpoint| match endpoint {
        Endpoint::Address(address) if !is_bound && !config.gateway.protect => Some(*address),
        _ => None,
    });
    addresses.map(|address| (address.ip(), address)).collect()
}

/// An endpoint inside the prefix.
fn looping(prefix: Prefix, endpoints: &BTreeMap<IpAddr, SocketAddr>) -> Option<SocketAddr> {
    let (_, first) = endpoints.range(prefix.0.network()..).next()?;
    (prefix.0.prefix_len() > 0 && prefix.0.contains(&first.ip())).then_some(*first)
}

fn paths(config: &Config, checker: &Checker<'_>) -> Result<(), Error> {
    for (i, (name, way)) in config.path.0.iter().enumerate() {
        let at = ["path", name];
        match (&way.interface, way.source) {
            (None, None) => {
                let message = format!("the path `{name}` has no way out");
                return Err(checker.error(&at, message, "expected `interface` or `source`"));
            }
            (Some(_), Some(_)) => {
                let at = ["path", name, "source"];
                let message = "`interface` is given as well";
                return Err(checker.error(&at, message, "expected one of them"));
            }
            _ => {}
        }
        let key = if way.interface.is_some() {
            "interface"
        } else {
            "source"
        };
        let at = ["path", name, key];
        let place = way.place();
        if way.interface.as_ref() == Some(&config.gateway.interface) {
            let message = format!("`{place}` is the tunnel's own interface");
            return Err(checker.error(&at, message, "expected one that leads out"));
        }
        cap(name, way, checker)?;
        let before = &config.path.0[..i];
        if let Some((other, _)) = before.iter().find(|(_, w)| w.place() == place) {
            let message = format!("the path `{other}` leaves by `{place}`, too");
            return Err(checker.error(&at, message, "expected one path for each way out"));
        }
    }
    Ok(())
}

/// The message about the first cap without a folder, which systemd may give all the same.
fn uncounted(config: &Config, checker: &Checker<'_>) -> Option<String> {
    let mut paths = config.path.0.iter();
    let (name, _) = paths.find(|(_, way)| way.cap.is_some())?;
    let message = format!("path {name}: the count of a `cap` needs a folder");
    let help = "expected `state_directory` in `[gateway]`, or StateDirectory= of the systemd unit";
    let error = checker.error(&["path", name, "cap"], message, help);
    (config.gateway.state_directory.is_none()).then(|| error.to_string())
}

/// Checks the keys of a path's data cap.
fn cap(name: &str, way: &Way, checker: &Checker<'_>) -> Result<(), Error> {
    let at = |key| ["path", name, key];
    let given = [
        ("reset_day", way.reset_day.is_some()),
        ("at_cap", way.at_cap.is_some()),
        ("alarms", way.alarms.is_some()),
    ];
    let without = given.iter().find(|(_, is_given)| *is_given);
    if let (Some((key, _)), None) = (without, way.cap) {
        let message = format!("`{key}` has no effect without a cap");
        let help = "expected `cap` too, for example cap = \"20 GB/month\"";
        return Err(checker.error(&at(key), message, help));
    }
    let is_monthly = way
        .cap
        .is_some_and(|cap| matches!(cap.period, Period::Month(_)));
    if let Some(day) = way.reset_day
        && !(is_monthly && (1..=31).contains(&day))
    {
        let (message, help) = if is_monthly {
            (
                format!("no month has a day {day}"),
                "expected 1 to 31; in a shorter month the period begins on the last day",
            )
        } else {
            (
                "only a month has a `reset_day`".to_owned(),
                "expected `cap` by the month; a day begins at midnight, a week on Monday (UTC)",
            )
        };
        return Err(checker.error(&at("reset_day"), message, help));
    }
    let alarms = way.alarms.iter().flatten().copied();
    for (n, alarm) in alarms.enumerate() {
        if !(1..=99).contains(&alarm) {
            let path = ["path", name, "alarms", &n.to_string()];
            let message = format!("{alarm} is no level below the cap");
            return Err(checker.error(&path, message, "expected percentages from 1 to 99"));
        }
    }
    Ok(())
}

fn classes(config: &Config, checker: &Checker<'_>) -> Result<(), Error> {
    let paths: Vec<&str> = config.path.names().collect();
    class::check(&config.class, &paths).map_err(|wrong| {
        checker.errors(&wrong.path(&["class"]), &wrong.message, wrong.help.clone())
    })
}

fn bypasses(config: &mut Config, checker: &Checker<'_>) -> Result<(), Error> {
    for (name, bypass) in &mut config.bypass.0 {
        if bypass.is_empty() {
            let message = format!("the bypass `{name}` does not select any packets");
            let help = "expected `prefix`, `source`, `domain`, `port`, `protocol`, `dscp`, `user` or `mark`";
            return Err(checker.error(&["bypass", name], message, help));
        }
        let mut users = bypass.user.0.iter_mut();
        if let Some(user) = users.find_map(|user| (!user.look_up()).then_some(user)) {
            let message = format!("there is no user `{user}`");
            return Err(checker.errors(&["bypass", name, "user"], message, user.help()));
        }
        if bypass.dscp.0.iter().any(|dscp| dscp.get() == 0) {
            let message = "no rule of the kernel has the code point 0 alone";
            let help = "expected code points from 1 to 63; 0 (cs0) is that of all usual packets";
            return Err(checker.error(&["bypass", name, "dscp"], message, help));
        }
        let is_own = |mark: &&Mark| MARK & mark.mask == mark.value;
        if let Some(mark) = bypass.mark.0.iter().find(is_own) {
            let message = format!("the mark {mark} is that of the tunnel's datagrams, {MARK}");
            return Err(checker.error(&["bypass", name, "mark"], message, "expected another"));
        }
        let count = bypass.rules();
        if count > RULES {
            let message = format!("the bypass `{name}` needs up to {count} rules of the kernel");
            let help = format!("expected {RULES} at most: one for each combination of its values");
            return Err(checker.error(&["bypass", name], message, &help));
        }
    }
    Ok(())
}
