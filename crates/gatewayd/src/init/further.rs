//! Another branch of a server that has a file.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::PathBuf,
};

use anabranch_core::system::words;
use anabranch_document::select::Prefix;
use ipnet::IpNet;

use super::{Facts, Options, ask::Asker, files::Set, generate, instructions, other, shown};
use crate::{
    Failure,
    config::{self, Config},
    key::public,
    store::replace_kept,
};

/// A server and its file.
pub struct Server {
    file: PathBuf,
    text: String,
    config: Config,
}

/// The server in the folder, if there is one to which a branch can be added.
///
/// # Errors
/// If a branch is to be added, and there is none.
pub fn server(options: &Options) -> Result<Option<Server>, Failure> {
    let file = options.folder.join("gateway.toml");
    let input = Failure::Input;
    match (config::load(&file), options.add) {
        (Ok(config), _) if !config.gateway.listen.is_empty() => {
            // A link to the file stays.
            let failed = |error| input(format!("{}: {}", shown(&file), words(&error)));
            let file = fs::canonicalize(&file).map_err(failed)?;
            let text = fs::read_to_string(&file);
            let failed = |error| input(format!("{}: {}", shown(&file), words(&error)));
            let text = text.map_err(failed)?;
            Ok(Some(Server { file, text, config }))
        }
        (Ok(_), true) => Err(input(format!(
            "{} has no `listen`; expected --folder of the end that branches reach",
            shown(&file)
        ))),
        (Err(failure), true) => Err(input(failure.to_string())),
        (_, false) => Ok(None),
    }
}

/// Adds a branch to the server, or prints the lines to add.
///
/// # Errors
/// If a fact is missing or wrong, the branch exists, or the system refuses.
pub fn further(
    options: &Options,
    server: &Server,
    asker: &Asker,
    is_terminal: bool,
) -> Result<String, Failure> {
    let input = Failure::Input;
    let name = &options.name.0;
    let Server { file, text, config } = server;
    if config.peer.0.iter().any(|(other, _)| other == name) {
        return Err(input(format!(
            "{} exists and is left as it is: it has the peer `{name}`; expected --name of another branch, or another --folder",
            shown(file)
        )));
    }
    let (theirs, their_key) = (format!("{name}/gateway.toml"), format!("{name}/key"));
    let mut set = Set::new(&options.folder);
    set.plan(&[&theirs, &their_key]).map_err(input)?;
    let inside = inside(config).map_err(input)?;
    let facts = Facts::with(options, asker, inside).map_err(input)?;
    let secret = config.gateway.secret.0.as_ref();
    let own = secret.ok_or_else(|| input(format!("{}: there is no private key", shown(file))))?;
    let key = generate()?;
    let lines = format!("\n{}", facts.peer(&public(&key)));
    let gap = if text.ends_with('\n') { "" } else { "\n" };
    let whole = format!("{text}{gap}{lines}");
    // Facts may contradict the file.
    let folder = file.parent().unwrap_or(&options.folder);
    config::parse(&whole, &shown(file), folder).map_err(|error| input(error.to_string()))?;
    let invitation = facts.invitation(key.clone(), public(own));
    let mut said = if options.add {
        set.add(&theirs, other(&invitation, &[]), 0o600);
        set.add(&their_key, format!("{key}\n"), 0o600);
        let said = set.write(&[&theirs])?;
        if let Err(error) = replace_kept(file, whole.as_bytes()) {
            set.remove();
            return Err(Failure::System(format!(
                "{}: {}",
                shown(file),
                words(&error)
            )));
        }
        format!("added [peer.{name}] to {}, {said}", shown(file))
    } else {
        format!(
            "nothing was written. Add these lines to {}, or repeat the command with --add, which makes another key and line:\n{lines}",
            shown(file)
        )
    };
    said.push_str(&instructions(&invitation, is_terminal || options.qr));
    let _ = writeln!(
        said,
        "The line has the other end's private key: who reads it can take that end's place."
    );
    if options.add {
        let folder = options.folder.display();
        let _ = writeln!(
            said,
            "{folder}/{name} has the same files to copy; remove it once the other end has them."
        );
    }
    let ports: BTreeSet<u16> = config.gateway.listen.iter().map(|at| at.0.port()).collect();
    let foreign = facts.ports().into_iter().find(|port| !ports.contains(port));
    if let Some(port) = foreign {
        let _ = writeln!(
            said,
            "\nThis end does not listen at port {port}: a router must translate it to one of `listen`."
        );
    }
    let _ = writeln!(
        said,
        "\nThen here: anabranch-gateway reload {}",
        shown(file)
    );
    if facts.is_internet {
        said.push_str(&facts.forwarding());
    }
    Ok(said)
}

/// The addresses of the server and of a new branch: the first that no peer has, in each network.
fn inside(config: &Config) -> Result<Vec<[IpNet; 2]>, String> {
    let allowed = || {
        let peers = config.peer.0.iter();
        peers.flat_map(|(_, peer)| peer.allowed.iter().map(|&Prefix(net)| net))
    };
    let of_one = |net: &IpNet| net.prefix_len() == net.max_prefix_len();
    let taken: BTreeSet<IpAddr> = allowed().filter(of_one).map(|net| net.addr()).collect();
    let pair = |&Prefix(own): &Prefix| {
        // A prefix that contains the whole network does not give its addresses to one peer.
        let parts = allowed().filter(|net| !of_one(net) && own.trunc().contains(net));
        let parts: Vec<IpNet> = parts.filter(|net| net.trunc() != own.trunc()).collect();
        // In IPv6 the first address is that of the network's routers (RFC 4291 §2.6.1).
        let of_routers = (own.max_prefix_len() - own.prefix_len() > 1).then(|| own.network());
        let is_free = |host: &IpAddr| {
            *host != own.addr()
                && Some(*host) != of_routers
                && !taken.contains(host)
                && !parts.iter().any(|part| part.contains(host))
        };
        // A part may have more addresses than can be tried in turn.
        let mut host = own.hosts().next();
        while let Some(used) = host.filter(|host| !is_free(host)) {
            let part = parts.iter().find(|net| net.contains(&used));
            let last = part.map_or(host, |net| Some(net.broadcast()));
            host = last.and_then(after).filter(|host| own.contains(host));
        }
        let is_last =
            |host: &IpAddr| host.is_ipv4() && of_routers.is_some() && *host == own.broadcast();
        let free = host.filter(|host| !is_last(host));
        let free = free.ok_or_else(|| format!("{} has no address left", own.trunc()))?;
        let branch = IpNet::new(free, own.prefix_len());
        Ok([own, branch.map_err(|error| error.to_string())?])
    };
    let own = config.gateway.addresses.iter();
    own.map(pair).collect()
}

/// The address that follows.
fn after(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V4(address) => u32::from(address)
            .checked_add(1)
            .map(|next| Ipv4Addr::from(next).into()),
        IpAddr::V6(address) => u128::from(address)
            .checked_add(1)
            .map(|next| Ipv6Addr::from(next).into()),
    }
}
