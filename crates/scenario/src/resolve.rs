//! Resolves the tables of a file into the input of the engine: defaults written out, copies of
//! flows expanded, routes found, limits in bytes.

mod change;
mod device;
mod flow;
mod gateway;
mod host;
mod link;
mod round_trip;
mod route;
mod side_file;
mod traffic;
mod wire;

use core::net::IpAddr;
use std::sync::Arc;

use anabranch_core::{
    packet::Direction,
    units::{Duration, Instant, Rate},
};
use anabranch_document::{
    class::{ClassMatch, Mode},
    every::{Joints, Wrong, errors},
};
use anabranch_path::link::Properties;

use super::{
    Extensions,
    error::{Error, Fault, Place, Sources},
    format::{Family, File, Match, Named, Policy, PowerModel, Protocol, Spread, TraceFile},
    kind::{Kind, Seam},
    path::no_such,
    reading::read,
    text::ResolvedText,
    tree::{Entry, Node, Value},
    types::{cc, control, fec, impair, lacp, queue, restore, split, tcp, workload},
    unavailable,
};

/// A fully resolved scenario: a run is a function of it.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// A title in one line; by default the file's name.
    pub title: String,
    /// How long the run lasts.
    pub duration: Duration,
    /// Metrics are counted from this time on.
    pub warmup: Duration,
    /// Selects the random streams.
    pub seed: u64,
    /// The nodes' names, in the order in which links name them.
    pub nodes: Vec<String>,
    /// By node: the longest processing time of a packet that it sends.
    pub processing_jitter: Vec<Duration>,
    /// By node: delays from the arrival of data to the application's read, each drawn with equal
    /// probability; empty if applications read at once.
    pub read_delays: Vec<Arc<[Duration]>>,
    /// By node: the same for the first read, and after 10 ms without a read.
    pub idle_read_delays: Vec<Arc<[Duration]>>,
    /// By node: likewise the delays from the establishment of a connection to the first write.
    pub first_write_delays: Vec<Arc<[Duration]>>,
    /// By node: its attachment in the live engine.
    pub attached: Vec<Attached>,
    /// The links, in the order of the file.
    pub links: Vec<ResolvedLink>,
    /// The gateways, in the order of the file.
    pub gateways: Vec<ResolvedGateway>,
    /// The flows, copies in order, tables in the order of the file.
    pub flows: Vec<ResolvedFlow>,
    /// Changes in mid-run, in order of time; changes at one time keep the order of the file.
    pub changes: Vec<Change>,
    /// The scenario with every default written out, for results. As TOML it is a scenario that
    /// resolves to this one.
    pub json: ResolvedText,
    /// Its `[flow.NAME]` tables, by name.
    pub flow_tables: serde_json::Map<String, serde_json::Value>,
}

/// The attachment of a node in the live engine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attached {
    /// The interface that it represents; `None` for a namespace.
    pub interface: Option<String>,
    /// The program to run there, with its arguments.
    pub exec: Option<Vec<String>>,
    /// Whether it uses our TCP instead of the kernel's.
    pub has_own_tcp: bool,
    /// The links, groups and gateways with a device each; empty if one device serves all.
    pub devices: Vec<String>,
    /// Additional addresses, next to the addresses of its devices.
    pub addresses: Vec<IpAddr>,
}

/// A link.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedLink {
    /// Its name.
    pub name: String,
    /// Its ends, as indices into [`Resolved::nodes`].
    pub ends: [usize; 2],
    /// Forward, then reverse. For a group, one member's.
    pub directions: [Properties; 2],
    /// By direction: the largest base round-trip time of the flows that cross, for limits in bdp;
    /// the link's own two-way delay if no flow does.
    pub base_rtt: [Duration; 2],
    /// By direction: the file of its delay's trace, if the delay is not fixed.
    pub delay_files: [Option<TraceFile>; 2],
    /// The group, if it is one.
    pub group: Option<ResolvedGroup>,
}

/// The properties of a group that a link lacks.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedGroup {
    /// The number of its links.
    pub members: u32,
    /// The choice of the member for the next packet.
    pub spread: Spread,
    /// The controller that decides how many members are on.
    pub control: control::Config,
    /// The time to wake up a member.
    pub wake_time: Duration,
    /// How often the ends send LACPDUs.
    pub lacp_rate: lacp::LacpRate,
    /// The power of one port.
    pub power: PowerModel,
    /// Bytes that will arrive per bin, for a controller that requires them; a run without them
    /// records them.
    pub arrivals: Option<Arc<Vec<u64>>>,
}

/// A link in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Index into [`Resolved::links`].
    pub link: usize,
    /// The direction along it.
    pub direction: Direction,
}

impl Hop {
    /// The same link in the other direction.
    #[must_use]
    pub const fn back(self) -> Self {
        Self {
            link: self.link,
            direction: self.direction.opposite(),
        }
    }
}

/// A gateway: two nodes that spread the traffic between them over several links.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedGateway {
    /// Its name.
    pub name: String,
    /// Its ends, as indices into [`Resolved::nodes`].
    pub ends: [usize; 2],
    /// The routes, each in the direction from the first end to the second.
    pub routes: Vec<Hop>,
    /// The devices at its ends.
    pub elements: GatewayEnds,
}

impl ResolvedGateway {
    /// The names of its classes, in the order of the file.
    #[must_use]
    pub fn class_names(&self) -> Vec<String> {
        match &self.elements {
            GatewayEnds::Split { .. } => Vec::new(),
            GatewayEnds::Tunnel { classes, .. } => {
                classes.iter().map(|class| class.name.clone()).collect()
            }
        }
    }
}

/// The devices at the ends of a gateway.
#[derive(Debug, Clone, PartialEq)]
pub enum GatewayEnds {
    /// A splitter and a restorer in each direction.
    Split {
        /// The choice of the route for the next packet.
        split: split::Config,
        /// How order is restored.
        restore: restore::Config,
        /// Bytes that the tunnel adds to each packet.
        overhead: u32,
    },
    /// The tunnel of `anabranch-gateway`.
    Tunnel {
        /// When each route is used.
        policies: Vec<Policy>,
        /// Classes of packets with a different treatment; the first that fits applies.
        classes: Vec<ResolvedClass>,
        /// The readings of the ends' clocks at the start.
        clock_offset: [Duration; 2],
    },
}

/// A class of a tunnel's packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedClass {
    /// Its name.
    pub name: String,
    /// The packets of the class.
    pub matches: ClassMatch,
    /// Their treatment.
    pub mode: Mode,
    /// The route that they are pinned to.
    pub path: Option<usize>,
}

/// A step of a flow's route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Over one link.
    Link(Hop),
    /// Over the routes of a gateway.
    Gateway {
        /// Index into [`Resolved::gateways`].
        gateway: usize,
        /// Forward: from its first end to its second.
        direction: Direction,
    },
}

impl Step {
    /// The same step in the other direction.
    #[must_use]
    pub const fn back(self) -> Self {
        match self {
            Self::Link(hop) => Self::Link(hop.back()),
            Self::Gateway { gateway, direction } => Self::Gateway {
                gateway,
                direction: direction.opposite(),
            },
        }
    }

    /// The links that a packet can take in this step: one, or a gateway's routes.
    pub fn hops(self, gateways: &[ResolvedGateway]) -> impl Iterator<Item = Hop> + '_ {
        let (link, routes, direction) = match self {
            Self::Link(hop) => (Some(hop), &[][..], hop.direction),
            Self::Gateway { gateway, direction } => {
                (None, &gateways[gateway].routes[..], direction)
            }
        };
        let routes = routes.iter().map(move |route| match direction {
            Direction::Forward => *route,
            Direction::Reverse => route.back(),
        });
        link.into_iter().chain(routes)
    }
}

/// One flow.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedFlow {
    /// Its name: `main`, or `main/0`, `main/1`, … if there are several copies.
    pub name: String,
    /// The table that it is a copy of.
    pub table: String,
    /// The number of the copy.
    pub copy: u32,
    /// The keys that the scenario gives the table.
    pub written: Written,
    /// Its first and last node, as indices into [`Resolved::nodes`].
    pub ends: [usize; 2],
    /// The start time, including the random part.
    pub start: Instant,
    /// The stop time; `None` for the end of the run.
    pub stop: Option<Instant>,
    /// The transport protocol.
    pub protocol: Protocol,
    /// The version of IP.
    pub family: Family,
    /// The differentiated services code point of its packets.
    pub dscp: u8,
    /// The port at `to`.
    pub port: Option<u16>,
    /// Bytes of the headers around each payload, over UDP.
    pub udp_headers: u32,
    /// Every switch of both ends' stack; unused over UDP.
    pub stack: tcp::Settings,
    /// The congestion control; unused over UDP.
    pub cc: cc::Config,
    /// Error correction; off over UDP.
    pub fec: fec::Config,
    /// The traffic of the application.
    pub workload: workload::Config,
    /// The recording, for a replay.
    pub replayed: Option<Replayed>,
    /// The route of the data.
    pub route: Vec<Step>,
    /// The route of the acknowledgments.
    pub return_route: Vec<Step>,
    /// The device of [`Attached::devices`] over which each end sends; `None` if the host has no
    /// devices.
    pub devices: [Option<usize>; 2],
    /// The packets of programs that it carries; empty for all packets that no other flow carries.
    pub select: Match,
}

/// A recording to replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// The recording, shared by the copies of a flow.
    pub recording: Arc<workload::Recording>,
    /// The speed relative to the recording.
    pub factor: f64,
    /// Whether it begins again at its end.
    pub repeat: bool,
}

/// A change in mid-run of one direction of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The time of the change.
    pub time: Instant,
    /// Index into [`Resolved::links`].
    pub link: usize,
    /// The direction.
    pub direction: Direction,
    /// The new value.
    pub what: What,
}

/// The value that changes.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// Whether the direction works.
    Up(bool),
    /// The rate at which it sends.
    Rate(Option<Rate>),
    /// The delay of packets that are sent from now on.
    Delay(Duration),
    /// Parameters of the queue; its kind stays.
    Queue(Box<queue::Config>),
    /// Parameters of the impairment at this index of the list; its kind stays.
    Impair(usize, Box<impair::Config>),
}

impl Resolved {
    /// Returns the statistics of the captures that flows replay, by the flow's table, as results
    /// show them.
    ///
    /// # Panics
    /// Never: statistics are plain data.
    #[must_use]
    pub fn captures(&self) -> serde_json::Map<String, serde_json::Value> {
        let replaying = self.flows.iter().filter(|flow| flow.copy == 0);
        let captures = replaying.filter_map(|flow| {
            let replayed = flow.replayed.as_ref()?;
            let summary = serde_json::to_value(replayed.recording.summary());
            Some((flow.table.clone(), summary.expect("plain data")))
        });
        captures.collect()
    }
}

impl ResolvedFlow {
    /// Whether the scenario gives this key of the flow's table.
    #[must_use]
    pub fn gives(&self, key: &str) -> bool {
        self.written.0.iter().any(|written| written == key)
    }
}

/// The keys that a scenario gives a table. All values are equal, because the origin of a value is
/// not part of a scenario.
#[derive(Debug, Clone, Default)]
pub struct Written(pub Arc<[String]>);

impl PartialEq for Written {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl ResolvedLink {
    fn way(&self, hop: &Hop) -> &Properties {
        &self.directions[hop.direction as usize]
    }
}

/// The most flows of one run, copies counted.
const MAX_FLOWS: usize = 1_000_000;

/// The input of all steps.
struct Resolver<'a> {
    root: &'a Node,
    sources: &'a Sources,
    extensions: &'a Extensions,
}

impl Resolver<'_> {
    fn error(&self, path: &[&str], message: String, help: Vec<String>) -> Error {
        self.sources.error(self.root.locate(path), message, help)
    }

    fn fault(&self, path: &[&str], fault: Fault) -> Error {
        self.sources.fault(fault, self.root.locate(path))
    }

    /// Makes a component; `path` is its position in the file.
    fn build<T: Seam>(&self, kind: &Kind<T>, path: &[&str]) -> Result<T, Error> {
        self.extensions
            .build(kind)
            .map_err(|message| self.fault(path, <Fault as serde::de::Error>::custom(message)))
    }

    /// Checks the name of a table, which becomes a part of elements' names.
    fn check_name(&self, section: &str, name: &str) -> Result<(), Error> {
        let bad = name.is_empty() || name.contains(['.', '/']) || name.contains(char::is_control);
        if !bad {
            return Ok(());
        }
        let message = format!("{name:?} cannot name a {section}");
        let help = "expected a name without dots, slashes and control characters".to_owned();
        let place = self
            .root
            .find(&[section])
            .and_then(Node::as_table)
            .and_then(|table| table.entry(name))
            .map_or(self.root.place, |entry| entry.key_place);
        Err(self.sources.error(place, message, vec![help]))
    }
}

/// Reads the whole tree as tables, and refuses keys that this engine does not implement.
pub(super) fn typed(
    root: &Node,
    sources: &Sources,
    extensions: &Extensions,
) -> Result<File, Error> {
    let Value::Table(table) = &root.value else {
        unreachable!("a document is a table");
    };
    if table.0.is_empty() {
        return Err(sources.error(
            root.place,
            "the scenario is empty",
            vec![
                "expected `duration`, a `[link.NAME]` with `between`, and a `[flow.NAME]` with `from` and `to`"
                    .to_owned(),
            ],
        ));
    }
    let file: File = read(root, extensions)
        .map_err(|fault| sources.fault(mistyped_table(root, fault), root.place))?;
    if extensions.is_untrusted() {
        refuse_untrusted(root, sources, &file)?;
    }
    if extensions.is_live() {
        return Ok(file);
    }
    let first: Option<(Place, &str)> = unavailable::only_live(&file)
        .into_iter()
        .map(|(path, what)| (root.locate(&path), what))
        .min_by_key(|(place, _)| *place);
    match first {
        Some((place, what)) => Err(sources.error(
            place,
            format!("{what} exists only in the live engine"),
            vec!["expected a scenario without it, or `--engine live`".to_owned()],
        )),
        None => Ok(file),
    }
}

/// Refuses programs and interfaces of this machine in an untrusted scenario.
fn refuse_untrusted(root: &Node, sources: &Sources, file: &File) -> Result<(), Error> {
    for (name, host) in &file.host.0 {
        let asked = [
            ("exec", host.exec.is_some(), "runs a program"),
            ("attach", host.attach.is_some(), "names an interface"),
        ];
        if let Some((key, _, what)) = asked.into_iter().find(|(_, is_there, _)| *is_there) {
            return Err(sources.error(
                root.locate(&["host", name, key]),
                format!("`{key}` {what} of this machine, which --untrusted refuses"),
                vec![format!(
                    "remove `{key}`, or leave --untrusted out where you trust the author"
                )],
            ));
        }
    }
    Ok(())
}

/// Improves the fault of a table that a path of `--set` created without its main keys: its name is
/// probably a mistyped existing name. A table that was set as a whole is meant to be new.
fn mistyped_table(root: &Node, fault: Fault) -> Fault {
    let place = fault.place.filter(|place| !place.is_in_file());
    for section in ["link", "group", "gateway", "flow"] {
        let tables = root.find(&[section]).and_then(Node::as_table);
        for entry in tables.into_iter().flat_map(|tables| &tables.0) {
            if Some(entry.node.place) == place && entry.node.place == entry.key_place {
                let mut better = no_such(section, &entry.key, root, |other| {
                    other.node.place.is_in_file()
                });
                better.help.extend(
                    fault
                        .help
                        .iter()
                        .map(|help| format!("to make a new one: {help}")),
                );
                return better.at(entry.node.place);
            }
        }
    }
    fault
}

/// Adds a delay to each link of a partial scenario that has lost the source of its packets' time.
/// Without it, its flows would take no time, which would be a further error.
fn with_delays(rest: &Node, whole: &Node) -> Node {
    let mut made = rest.clone();
    let Value::Table(sections) = &mut made.value else {
        return made;
    };
    let links = sections
        .get_mut("link")
        .and_then(|links| match &mut links.value {
            Value::Table(links) => Some(&mut links.0),
            _ => None,
        });
    for entry in links.into_iter().flatten() {
        let has_lost = |key: &&str| {
            let was = whole.find(&["link", &entry.key, key]);
            was.is_some() && entry.node.find(&[key]).is_none()
        };
        if ["path", "rate", "delay", "service"].iter().any(has_lost)
            && entry.node.find(&["delay"]).is_none()
            && let Value::Table(link) = &mut entry.node.value
        {
            link.0.push(Entry {
                key: "delay".to_owned(),
                key_place: entry.key_place,
                node: Node {
                    value: Value::String("1 ms".to_owned()),
                    place: entry.key_place,
                },
            });
        }
    }
    made
}

/// Finds all errors of a scenario for which [`resolve`] returns `first`.
pub(super) fn every_error(
    root: &Node,
    sources: &Sources,
    extensions: &Extensions,
    seed: Option<u64>,
    first: Error,
) -> Error {
    let joints = Joints {
        sections: &["link", "group", "gateway", "host"],
        keys: &["between"],
    };
    errors(root, first, joints, &|rest| {
        let root = &with_delays(rest, root);
        if let Err(fault) = read::<File>(root, extensions) {
            return Some(Wrong {
                is_missing: fault.is_missing,
                error: sources.fault(mistyped_table(root, fault), root.place),
                is_of_many: false,
            });
        }
        let error = resolve(root, sources, extensions, seed).err()?;
        Some(Wrong {
            error,
            is_missing: false,
            is_of_many: true,
        })
    })
}

/// Resolves the tree; `seed` overrides the file's.
pub(super) fn resolve(
    root: &Node,
    sources: &Sources,
    extensions: &Extensions,
    seed: Option<u64>,
) -> Result<Resolved, Error> {
    let resolver = Resolver {
        root,
        sources,
        extensions,
    };
    let mut file = typed(root, sources, extensions)?;
    file.seed = seed.unwrap_or(file.seed);
    resolver.check_times(&file)?;
    for (section, names) in [
        (
            "link",
            file.link.0.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        ),
        ("group", file.group.0.iter().map(|(name, _)| name).collect()),
        (
            "gateway",
            file.gateway.0.iter().map(|(name, _)| name).collect(),
        ),
        ("flow", file.flow.0.iter().map(|(name, _)| name).collect()),
    ] {
        for name in names {
            resolver.check_name(section, name)?;
        }
    }
    let wires = wire::wires(&resolver, &file)?;
    let mut graph = route::Graph::new(&resolver, &wires)?;
    let gateways = gateway::gateways(&resolver, &file, &graph)?;
    graph.join(&gateways);
    let processing_jitter = host::processing_jitter(&resolver, &file, &graph)?;
    let read_delays = host::application_delays(&resolver, &file, &graph, host::READ)?;
    let idle_read_delays = host::application_delays(&resolver, &file, &graph, host::IDLE_READ)?;
    let first_write_delays = host::application_delays(&resolver, &file, &graph, host::FIRST_WRITE)?;
    let mut attached = host::attached(&resolver, &file, &graph)?;
    device::add(&resolver, &file, &graph, &mut attached)?;
    let routes = file
        .flow
        .0
        .iter()
        .map(|(name, flow)| graph.routes(&resolver, name, flow))
        .collect::<Result<Vec<_>, _>>()?;
    graph.check_parallel(&resolver, &file, &wires, &routes)?;
    let links = link::links(&resolver, &file, &wires, &graph, &gateways, &routes)?;
    gateway::check_rates(&resolver, &gateways, &links)?;
    let way = |hop: &Hop| links[hop.link].way(hop);
    if let Some(flow) = round_trip::without_time(&file, &gateways, &routes, way) {
        return Err(resolver.error(
            &["flow", flow],
            format!("the round trip of the flow `{flow}` takes no time"),
            vec![round_trip::HELP.to_owned()],
        ));
    }
    let (flows, settings) = flow::flows(&resolver, &file, &graph, &routes)?;
    wire::check_open_loop(&resolver, file.duration, &links, (&gateways, &flows))?;
    link::check_mtus(&resolver, &links, &gateways, &flows)?;
    let changes = change::changes(&resolver, &file, &links, &gateways, &routes)?;
    let title = file
        .title
        .clone()
        .unwrap_or_else(|| sources.file().to_owned());
    file.title = Some(title.clone());
    link::write_out(&mut file, &links);
    gateway::write_out(&mut file, &gateways);
    change::write_out(&mut file, &changes, &links);
    flow::write_out(&mut file, &flows, &links, &gateways);
    let flow_tables = flow::with_settings(&file, &settings, &flows);
    file.flow = Named::default();
    let json = flow::text(&file, &flow_tables);
    Ok(Resolved {
        title,
        duration: file.duration,
        warmup: file.warmup,
        seed: file.seed,
        nodes: graph.nodes,
        processing_jitter,
        read_delays,
        idle_read_delays,
        first_write_delays,
        attached,
        links,
        gateways,
        flows,
        changes,
        json,
        flow_tables,
    })
}

impl Resolver<'_> {
    /// Checks that `kernel` is a release, not a folder of one machine.
    fn check_kernel(&self, file: &File) -> Result<(), Error> {
        let is_release = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_digit())
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "._+~-".contains(c))
        };
        match &file.kernel {
            Some(name) if !is_release(name) => Err(self.error(
                &["kernel"],
                format!("`{name}` is no release of Linux"),
                vec!["expected the beginning of one, for example \"6.12\"".to_owned()],
            )),
            _ => Ok(()),
        }
    }

    fn check_times(&self, file: &File) -> Result<(), Error> {
        if file.duration.is_zero() {
            return Err(self.error(
                &["duration"],
                "the run lasts no time".to_owned(),
                vec!["expected a duration above zero, for example \"10 s\"".to_owned()],
            ));
        }
        if file.warmup >= file.duration {
            return Err(self.error(
                &["warmup"],
                format!(
                    "metrics would start at {}, when the run is over",
                    file.warmup
                ),
                vec![format!("expected less than `duration`, {}", file.duration)],
            ));
        }
        self.check_kernel(file)?;
        if file.flow.is_empty() {
            return Err(self.error(
                &["flow"],
                "there is no flow".to_owned(),
                vec!["expected a `[flow.NAME]` with `from` and `to`".to_owned()],
            ));
        }
        let mut total = 0_usize;
        for (name, flow) in &file.flow.0 {
            let end = flow.stop.unwrap_or(file.duration);
            if flow.start >= end.min(file.duration) {
                let key = if flow.stop.is_some_and(|stop| stop <= flow.start) {
                    "stop"
                } else {
                    "start"
                };
                return Err(self.error(
                    &["flow", name, key],
                    format!(
                        "the flow `{name}` starts at {} and ends at {}",
                        flow.start,
                        end.min(file.duration)
                    ),
                    vec!["expected `start` before `stop` and before `duration`".to_owned()],
                ));
            }
            if flow.count == 0 {
                return Err(self.error(
                    &["flow", name, "count"],
                    format!("there are no copies of the flow `{name}`"),
                    vec![format!("expected a whole number from 1 to {MAX_FLOWS}")],
                ));
            }
            total = total.saturating_add(flow.count as usize);
            if total > MAX_FLOWS {
                return Err(self.error(
                    &["flow", name, "count"],
                    "these are too many flows".to_owned(),
                    vec![format!("expected {MAX_FLOWS} at most, copies counted")],
                ));
            }
        }
        Ok(())
    }
}
