//! `init`: writes the files of both ends from a few facts, and one line from which the other end
//! makes its own.
//!
//! The end that the other one reaches runs it first. The line has the other end's private key.

mod ask;
mod files;
mod further;
mod invitation;
mod system;

use std::{
    fmt::Write as _,
    net::IpAddr,
    path::{Path, PathBuf},
    str::FromStr,
};

use anabranch_document::{nearest, select::Prefix};
use ipnet::IpNet;

use self::{
    ask::Asker,
    files::{Set, end_at, toml_key},
    invitation::Invitation,
};
use crate::{
    Failure,
    config::Endpoint,
    key::{self, Key, public},
    links::Links,
};

/// The UDP port of an endpoint without one.
const PORT: u16 = 51900;
/// The name of the end that is reached in the other end's file.
const SERVER: &str = "server";

/// Arguments of the command.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "one for each option")]
pub struct Options {
    /// The folder for the files
    #[arg(long, value_name = "FOLDER", default_value = "/etc/anabranch-gateway")]
    folder: PathBuf,
    /// The line that init printed at the other end; - asks for it, or reads it from standard input
    #[arg(long, value_name = "LINE", conflicts_with_all = ["endpoint", "name", "network", "lan", "internet"])]
    from: Option<String>,
    /// Where the other end reaches this one; the port is 51900 if it is left out
    #[arg(long, value_name = "HOST[:PORT]")]
    endpoint: Vec<Reached>,
    /// The name of the other end
    #[arg(long, value_name = "NAME", default_value = "branch")]
    name: PeerName,
    /// The network inside the tunnel, of which the two ends take the first addresses
    #[arg(long, value_name = "PREFIX", default_value = "10.9.0.0/24")]
    network: Vec<Prefix>,
    /// A network behind the other end
    #[arg(long, value_name = "PREFIX")]
    lan: Vec<Prefix>,
    /// The other end sends all its IPv4 traffic through the tunnel
    #[arg(long)]
    internet: bool,
    /// An interface of this end that leads to the other one, with a policy if it is not active
    #[arg(long, value_name = "[NAME=]INTERFACE[,POLICY]")]
    path: Vec<PathFact>,
    /// Add a branch to the gateway in the folder, whose file is replaced as a whole; without it,
    /// print the lines to add
    #[arg(long, conflicts_with_all = ["from", "network"])]
    add: bool,
    /// Ask nothing: take the default of each question
    #[arg(long)]
    yes: bool,
    /// Print the line as QR code too; done by itself on a terminal
    #[arg(long)]
    qr: bool,
}

/// An endpoint whose port may be left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached(Endpoint);

impl FromStr for Reached {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let whole = match text.parse::<IpAddr>() {
            Ok(IpAddr::V6(_)) => format!("[{text}]:{PORT}"),
            Ok(IpAddr::V4(_)) => format!("{text}:{PORT}"),
            Err(_) if text.starts_with('[') && text.ends_with(']') => format!("{text}:{PORT}"),
            Err(_) if !text.contains(':') => format!("{text}:{PORT}"),
            Err(_) => text.to_owned(),
        };
        whole.parse().map(Self).map_err(|why: &str| {
            format!("this {why}; expected a name or an address, for example gw.example.net or 192.0.2.1:51900")
        })
    }
}

/// The name of a peer, which is also that of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerName(String);

impl FromStr for PeerName {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_letter = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-' || octet == b'_';
        if text.is_empty() || text.len() > 32 || !text.bytes().all(is_letter) {
            return Err("expected 1 to 32 letters, digits, - and _");
        }
        Ok(Self(text.to_owned()))
    }
}

/// A path of `--path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathFact {
    name: String,
    interface: String,
    policy: Option<&'static str>,
}

const POLICIES: [&str; 4] = ["active", "overflow", "backup", "metered"];

impl FromStr for PathFact {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (rest, policy) = match text.split_once(',') {
            None => (text, None),
            Some((rest, policy)) => {
                let known = POLICIES.into_iter().find(|known| *known == policy);
                let known = known.ok_or_else(|| {
                    let near = nearest(policy, &POLICIES);
                    let near =
                        near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                    format!(
                        "there is no policy `{policy}`; expected {}{near}",
                        POLICIES.join(", ")
                    )
                })?;
                (rest, Some(known))
            }
        };
        let (name, interface) = rest.split_once('=').unwrap_or((rest, rest));
        let interface = interface.parse::<crate::config::Interface>().map_err(|why| {
            format!("`{interface}` {why}; expected an interface, for example fibre=eth0 or lte=wwan0,metered")
        })?;
        if name.is_empty() {
            return Err("the path has no name; expected NAME=INTERFACE".to_owned());
        }
        Ok(Self {
            name: name.to_owned(),
            interface: interface.0,
            policy,
        })
    }
}

/// Makes the files.
///
/// # Errors
/// If a fact is missing or wrong, a file exists, or the system refuses.
pub fn init(options: &Options, is_terminal: bool) -> Result<String, Failure> {
    let asker = Asker::new(options.yes);
    match &options.from {
        Some(line) => second(options, line, &asker),
        None if !options.path.is_empty() => Err(Failure::Input(
            "--path is of the end that takes the line; expected --from - with it".to_owned(),
        )),
        None => match further::server(options)? {
            Some(server) => further::further(options, &server, &asker, is_terminal),
            None => first(options, &asker, is_terminal),
        },
    }
}

/// The facts of the end that the other one reaches.
struct Facts {
    name: String,
    endpoints: Vec<Endpoint>,
    lan: Vec<IpNet>,
    is_internet: bool,
    /// The addresses of both ends in each network.
    inside: Vec<[IpNet; 2]>,
}

impl Facts {
    /// The facts of the first branch of a server.
    fn of(options: &Options, asker: &Asker) -> Result<Self, String> {
        let inside = options.network.iter().map(|network| pair(network.0));
        let inside = inside.collect::<Result<_, _>>()?;
        let facts = Self::with(options, asker, inside)?;
        free(&options.network)?;
        Ok(facts)
    }

    /// The facts of a branch with these addresses.
    fn with(options: &Options, asker: &Asker, inside: Vec<[IpNet; 2]>) -> Result<Self, String> {
        let endpoints = if options.endpoint.is_empty() {
            let question = "Name or address at which the other end reaches this one (HOST[:PORT])";
            vec![asker.required(question, "--endpoint HOST[:PORT]")?]
        } else {
            options.endpoint.clone()
        };
        let lan = match options.lan.as_slice() {
            [] => asker.list(
                "Networks behind the other end, such as 192.168.7.0/24",
                "none",
            )?,
            lan => lan.to_vec(),
        };
        let question = "Shall the other end send all its Internet traffic through the tunnel?";
        let is_internet = options.internet || asker.yes(question)?;
        Ok(Self {
            name: options.name.0.clone(),
            endpoints: endpoints
                .into_iter()
                .map(|Reached(endpoint)| endpoint)
                .collect(),
            lan: lan.iter().map(|lan| lan.0.trunc()).collect(),
            is_internet,
            inside,
        })
    }

    fn hosts(&self, end: usize) -> impl Iterator<Item = IpNet> {
        self.networks(end).map(|net| IpNet::from(net.addr()))
    }

    fn networks(&self, end: usize) -> impl Iterator<Item = IpNet> {
        self.inside
            .iter()
            .filter_map(move |pair| pair.get(end).copied())
    }

    fn ports(&self) -> Vec<u16> {
        let mut ports: Vec<u16> = self.endpoints.iter().map(Endpoint::port).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// The file of this end.
    fn own(&self, other: &Key) -> String {
        let ports = self.ports();
        let listen = ports
            .iter()
            .flat_map(|port| [format!("0.0.0.0:{port}"), format!("[::]:{port}")]);
        format!(
            "{}listen = {}\n\n{}",
            end_at(self.networks(0)),
            files::list(listen),
            self.peer(other),
        )
    }

    /// The lines of the other end in the file of this end.
    fn peer(&self, other: &Key) -> String {
        let behind = self.hosts(1).chain(self.lan.iter().copied());
        format!(
            "[peer.{}]\npublic_key = \"{other}\"\nallowed = {}\n",
            self.name,
            files::list(behind),
        )
    }

    fn invitation(&self, private: Key, public: Key) -> Invitation {
        let mut allowed: Vec<IpNet> = self.hosts(0).collect();
        if self.is_internet {
            allowed.retain(|host| host.addr().is_ipv6());
            allowed.insert(0, IpNet::from_str("0.0.0.0/0").unwrap_or_default());
        }
        Invitation {
            private,
            public,
            name: SERVER.to_owned(),
            addresses: self.networks(1).collect(),
            allowed,
            endpoints: self.endpoints.clone(),
        }
    }

    /// The commands that let the other end's traffic out of this machine.
    fn forwarding(&self) -> String {
        let sources = self
            .networks(0)
            .map(|net| net.trunc())
            .chain(self.lan.iter().copied());
        let sources = sources
            .filter(|net| net.addr().is_ipv4())
            .map(|net| net.to_string());
        let sources: Vec<String> = sources.collect();
        format!(
            "\nFor the other end's Internet traffic this machine must forward and translate, with its interface for eth0:\n\n  \
             sysctl -w net.ipv4.ip_forward=1\n  nft add table ip nat\n  \
             nft 'add chain ip nat post {{ type nat hook postrouting priority srcnat; }}'\n  \
             nft 'add rule ip nat post ip saddr {{ {} }} oifname eth0 masquerade'\n",
            sources.join(", ")
        )
    }
}

/// The end that the other one reaches.
fn first(options: &Options, asker: &Asker, is_terminal: bool) -> Result<String, Failure> {
    let name = &options.name.0;
    let (theirs, their_key) = (format!("{name}/gateway.toml"), format!("{name}/key"));
    let mut set = Set::new(&options.folder);
    let names = ["gateway.toml", "key", &theirs, &their_key];
    set.plan(&names).map_err(Failure::Input)?;
    let facts = Facts::of(options, asker).map_err(Failure::Input)?;
    let keys = [generate()?, generate()?];
    let invitation = facts.invitation(keys[1].clone(), public(&keys[0]));
    set.add("gateway.toml", facts.own(&public(&keys[1])), 0o600);
    set.add("key", format!("{}\n", keys[0]), 0o600);
    set.add(&theirs, other(&invitation, &[]), 0o600);
    set.add(&their_key, format!("{}\n", keys[1]), 0o600);
    let mut said = set.write(&["gateway.toml", &theirs])?;

    said.push_str(&instructions(&invitation, is_terminal || options.qr));
    let folder = options.folder.display();
    let ports: Vec<String> = facts.ports().iter().map(u16::to_string).collect();
    let _ = writeln!(
        said,
        "The line has the other end's private key: who reads it can take that end's place. {folder}/{name} has the\n\
         same files to copy; remove it once the other end has them.\n\n\
         Open UDP port {} here, then: anabranch-gateway up {folder}/gateway.toml",
        ports.join(", "),
    );
    if facts.is_internet {
        said.push_str(&facts.forwarding());
    }
    Ok(said)
}

/// The command and the line for the other end.
fn instructions(invitation: &Invitation, has_code: bool) -> String {
    let line = invitation.line();
    let mut said = format!(
        "\nAt the other end, as root:\n\n  anabranch-gateway init --from -\n\nIt asks for this line:\n\n  {line}\n\n"
    );
    if has_code {
        said.push_str(&invitation::qr(&line).unwrap_or_default());
        said.push('\n');
    }
    said
}

/// The end that reaches the other one.
fn second(options: &Options, line: &str, asker: &Asker) -> Result<String, Failure> {
    let input = Failure::Input;
    let line = if line == "-" {
        ask::line("Line of the other end: ", invitation::MOST).map_err(input)?
    } else {
        line.to_owned()
    };
    let invitation = Invitation::read(&line).map_err(input)?;
    let mut set = Set::new(&options.folder);
    set.plan(&["gateway.toml", "key"]).map_err(input)?;
    let nets: Vec<Prefix> = invitation
        .addresses
        .iter()
        .map(|&net| Prefix(net))
        .collect();
    free(&nets).map_err(input)?;
    let paths = paths(options, asker).map_err(input)?;
    let folder = options.folder.display();
    set.add("gateway.toml", other(&invitation, &paths), 0o600);
    set.add("key", format!("{}\n", invitation.private), 0o600);
    let mut said = set.write(&["gateway.toml"])?;
    for remark in system::remarks(&paths) {
        let _ = writeln!(said, "\n{remark}");
    }
    let _ = writeln!(
        said,
        "\nThen here: anabranch-gateway up {folder}/gateway.toml"
    );
    Ok(said)
}

/// The file of the end that reaches the other one.
fn other(invitation: &Invitation, paths: &[PathFact]) -> String {
    let mut text = end_at(invitation.addresses.iter().copied());
    let _ = writeln!(
        text,
        "\n[peer.{}]\npublic_key = \"{}\"\nallowed = {}\nendpoints = {}",
        toml_key(&invitation.name),
        invitation.public,
        files::list(&invitation.allowed),
        files::list(&invitation.endpoints),
    );
    for path in paths {
        let _ = writeln!(
            text,
            "\n[path.{}]\ninterface = \"{}\"",
            toml_key(&path.name),
            path.interface
        );
        if let Some(policy) = path.policy {
            let _ = writeln!(text, "policy = \"{policy}\"");
        }
    }
    if paths.is_empty() {
        text.push_str("\n# Without paths the system's routes are the only one:\n# [path.fibre]\n# interface = \"eth0\"\n");
    }
    text
}

/// The paths of this end: given, chosen, or those with a default route.
fn paths(options: &Options, asker: &Asker) -> Result<Vec<PathFact>, String> {
    let links =
        Links::now().map_err(|error| format!("the interfaces cannot be listed: {error}"))?;
    let paths = if options.path.is_empty() {
        let found: Vec<String> = system::with_default_route().into_iter().collect();
        let there: Vec<&str> = links
            .0
            .keys()
            .map(String::as_str)
            .filter(|name| *name != "lo")
            .collect();
        let question = format!(
            "Interfaces that lead to the Internet (there are: {})",
            there.join(", ")
        );
        let default = if found.is_empty() {
            "none".to_owned()
        } else {
            found.join(", ")
        };
        asker.list_of(&question, &default, |text| known(text.parse()?, &links))?
    } else {
        options.path.clone()
    };
    for (n, path) in paths.iter().enumerate() {
        known(path.clone(), &links)?;
        let before = &paths[..n];
        if before
            .iter()
            .any(|other| other.name == path.name || other.interface == path.interface)
        {
            return Err(format!(
                "the path `{}` or its interface is there twice",
                path.name
            ));
        }
    }
    Ok(paths)
}

/// The path, if there is its interface.
fn known(path: PathFact, links: &Links) -> Result<PathFact, String> {
    if links.0.contains_key(&path.interface) {
        return Ok(path);
    }
    let names: Vec<&str> = links.0.keys().map(String::as_str).collect();
    let near = nearest(&path.interface, &names);
    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    Err(format!(
        "there is no interface `{}`; there are: {}{near}",
        path.interface,
        names.join(", ")
    ))
}

/// The addresses of both ends in a network.
fn pair(network: IpNet) -> Result<[IpNet; 2], String> {
    // The first address of an IPv6 network is its routers' (RFC 4291 §2.6.1).
    let of_routers = matches!(network, IpNet::V6(net) if net.prefix_len() < 127);
    let mut hosts = network.hosts().skip(usize::from(of_routers));
    let pair = [hosts.next(), hosts.next()].map(|host| {
        let address = host?;
        IpNet::new(address, network.prefix_len()).ok()
    });
    match pair {
        [Some(first), Some(second)] => Ok([first, second]),
        _ => Err(format!(
            "{network} has no two addresses; expected a network such as 10.9.0.0/24"
        )),
    }
}

/// Refuses a network of which this machine has an address.
fn free(networks: &[Prefix]) -> Result<(), String> {
    let links =
        Links::now().map_err(|error| format!("the interfaces cannot be listed: {error}"))?;
    for (name, link) in &links.0 {
        for Prefix(network) in networks {
            if let Some(address) = link
                .addresses
                .iter()
                .find(|&address| network.contains(address))
            {
                let network = network.trunc();
                return Err(format!(
                    "{network} is in use here: {name} has {address}; expected another --network at the end that runs init first"
                ));
            }
        }
    }
    Ok(())
}

fn generate() -> Result<Key, Failure> {
    key::generate().map_err(|error| Failure::System(format!("no randomness: {error}")))
}

/// The folder of the files as part of messages.
fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::{PathFact, PeerName, Reached, pair};

    #[test]
    fn an_endpoint_may_lack_its_port() {
        for (text, whole) in [
            ("gw.example.net", "gw.example.net:51900"),
            ("gw.example.net:9", "gw.example.net:9"),
            ("192.0.2.1", "192.0.2.1:51900"),
            ("2001:db8::1", "[2001:db8::1]:51900"),
            ("[2001:db8::1]", "[2001:db8::1]:51900"),
            ("[2001:db8::1]:9", "[2001:db8::1]:9"),
        ] {
            assert_eq!(text.parse::<Reached>().expect(text).0.to_string(), whole);
        }
        for wrong in ["", "192.0.2.300", "gw:0", "a b"] {
            let why = wrong.parse::<Reached>().expect_err(wrong);
            assert!(why.contains("expected a name or an address"), "{why}");
        }
    }

    #[test]
    fn a_path_has_a_name_an_interface_and_a_policy() {
        let path = |text: &str| text.parse::<PathFact>();
        let fact = |name: &str, interface: &str, policy| PathFact {
            name: name.to_owned(),
            interface: interface.to_owned(),
            policy,
        };
        assert_eq!(path("eth0"), Ok(fact("eth0", "eth0", None)));
        assert_eq!(
            path("lte=wwan0,metered"),
            Ok(fact("lte", "wwan0", Some("metered")))
        );
        let why = path("lte=wwan0,metred").expect_err("a wrong policy");
        assert!(why.contains("did you mean `metered`?"), "{why}");
        for wrong in ["=eth0", "a=", "a=b c", "a=an interface of many letters"] {
            assert!(path(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_of_peers_are_valid_folders() {
        assert!("branch-7_b".parse::<PeerName>().is_ok());
        for wrong in ["", "a/b", "..", "a b", &"x".repeat(33)] {
            assert!(wrong.parse::<PeerName>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn both_ends_have_addresses_of_the_network() {
        let both = |text: &str| pair(text.parse().expect("a network"));
        let [first, second] = both("10.9.0.0/24").expect("two addresses");
        assert_eq!(
            (first.to_string().as_str(), second.to_string().as_str()),
            ("10.9.0.1/24", "10.9.0.2/24")
        );
        let ends = both("fd09::/64").map(|ends| ends.map(|end| end.to_string()));
        assert_eq!(ends, Ok(["fd09::1/64", "fd09::2/64"].map(str::to_owned)));
        let ends = both("fd09::/127").map(|ends| ends.map(|end| end.to_string()));
        assert_eq!(ends, Ok(["fd09::/127", "fd09::1/127"].map(str::to_owned)));
        assert!(both("10.9.0.0/32").is_err());
    }
}
