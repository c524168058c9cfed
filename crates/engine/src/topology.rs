//! Compilation of a resolved scenario into a network.

use std::sync::Arc;

use anabranch_core::{
    body::Body,
    packet::Direction,
    rng::Stream,
    units::{Bytes, Duration, Instant},
};
use anabranch_gateway::{
    policy::{self, Role, Rule},
    wire::PathId,
};
use anabranch_path::{
    host::Host,
    multipath::{Entrance, EntranceParts, Exit, ExitParts, Meter, Peer, restore, split},
};
use anabranch_tcp::Settings;

use crate::{
    network::{
        App, Builder, Change, Datagrams, FlowSpec, GroupId, GroupSpec, LinkId, LinkSpec,
        MiddleboxId, Network, Schedule, Script, Stop, Timing, Traffic,
    },
    record::{Tapping, Taps},
    tunnel,
};
use anabranch_scenario::{
    GatewayEnds, Hop, Mode, Policy, Protocol, Resolved, ResolvedClass, ResolvedFlow,
    ResolvedGateway, ResolvedGroup, Step, What,
    workload::{self, Arrivals, Level, Pace, Paced, Sendings, sendings},
};

/// Options of the engine: none of them changes a result.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[derive(Debug, Clone, Copy)]
pub struct Engine {
    /// Computes plain links by arithmetic.
    pub fast_path: bool,
    /// Computes plain links fed by others ahead of time.
    pub fold: bool,
    /// Keeps a digest of all observations.
    pub digest: bool,
    /// Keeps a row per packet.
    pub packet_log: bool,
    /// Counts outcomes, for a census.
    pub tally: bool,
}

impl Default for Engine {
    fn default() -> Self {
        Self {
            fast_path: true,
            fold: true,
            digest: true,
            packet_log: false,
            tally: false,
        }
    }
}

/// Pairs of hosts that replace a flow's TCP, by the flow's name.
pub type Hosts<B> = Vec<(String, [Box<dyn Host<B>>; 2])>;

/// A network and the names of its parts.
#[derive(Debug)]
pub struct Compiled<B: Body> {
    /// The network, before its first event.
    pub network: Network<B>,
    /// Links by name; forward, then reverse. They include groups.
    pub links: Vec<(String, [LinkId; 2])>,
    /// Groups by name.
    pub groups: Vec<(String, GroupId)>,
    /// Gateways, in the order of the file.
    pub gateways: Vec<CompiledGateway>,
}

/// Compiles a scenario. `hosts` replace the TCP of the flows that they name.
///
/// # Errors
/// The first name in `hosts` that is not a flow's.
pub fn compile<B: Body>(
    resolved: &Resolved,
    engine: Engine,
    hosts: Hosts<B>,
) -> Result<Compiled<B>, String> {
    compile_tapped(resolved, engine, hosts, None)
}

/// Converts a change in mid-run for the network.
fn changed(what: &What, id: LinkId) -> Change {
    match what {
        What::Up(up) => Change::Up(id, *up),
        What::Rate(rate) => Change::Rate(id, *rate),
        What::Delay(delay) => Change::Delay(id, *delay),
        What::Queue(queue) => Change::Queue(id, queue.clone()),
        What::Impair(place, config) => Change::Impair(id, *place, config.clone()),
    }
}

/// Compiles a scenario with captures of some links. These links are never computed ahead; the
/// results are the same.
///
/// # Errors
/// The first name in `hosts` that is not a flow's.
pub fn compile_tapped<B: Body>(
    resolved: &Resolved,
    engine: Engine,
    mut hosts: Hosts<B>,
    tapping: Option<&Tapping>,
) -> Result<Compiled<B>, String> {
    let warmup = Instant::START + resolved.warmup;
    let end = Instant::START + resolved.duration;
    let mut builder = Builder::new(resolved.seed, warmup, end);
    builder
        .fast_path(engine.fast_path)
        .fold(engine.fold)
        .digest(engine.digest)
        .packet_log(engine.packet_log)
        .tally(engine.tally);
    let mut groups = Vec::new();
    let links: Vec<(String, [LinkId; 2])> = resolved
        .links
        .iter()
        .enumerate()
        .map(|(number, link)| {
            let specs = Direction::BOTH.map(|direction| {
                let way = direction as usize;
                LinkSpec {
                    name: format!("link.{}.{}", link.name, direction.name()),
                    link: link.directions[way].clone(),
                    router: node_number(link.ends[way]),
                    service: None,
                    may_change: tapping.is_some_and(|tapping| tapping.holds(number, direction)),
                    group: None,
                }
            });
            let ids = match &link.group {
                None => specs.map(|spec| builder.link(spec)),
                Some(group) => {
                    let (id, links) = builder.group(group_spec(specs, group));
                    groups.push((link.name.clone(), id));
                    links
                }
            };
            builder.opposite(ids);
            (link.name.clone(), ids)
        })
        .collect();
    for change in &resolved.changes {
        let id = links[change.link].1[change.direction as usize];
        builder.change(change.time, changed(&change.what, id));
    }
    let processing = processing(&mut builder, resolved);
    let gateways = gateways(&mut builder, resolved, &links);
    let stacks = shared_stacks(&resolved.flows);
    for (flow, settings) in resolved.flows.iter().zip(stacks) {
        let stops = |from: usize, steps: &[Step]| {
            let mut stops: Vec<Stop> = processing[from].into_iter().collect();
            for step in steps {
                match *step {
                    Step::Link(hop) => {
                        stops.push(Stop::Link(links[hop.link].1[hop.direction as usize]));
                    }
                    Step::Gateway { gateway, direction } => {
                        stops.extend(
                            gateways[gateway].ends[direction as usize].map(Stop::Middlebox),
                        );
                    }
                }
            }
            stops
        };
        let own = hosts.iter().position(|(name, _)| *name == flow.name);
        let traffic = match own {
            Some(index) => Traffic::Hosts(hosts.remove(index).1),
            None if flow.protocol == Protocol::Udp => Traffic::Datagrams(Datagrams {
                timing: timing(flow, resolved.seed),
                headers: flow.udp_headers,
            }),
            None => traffic(flow, settings),
        };
        builder.flow(FlowSpec {
            name: flow.name.clone(),
            ends: flow.ends.map(node_number),
            route: stops(flow.ends[0], &flow.route),
            return_route: stops(flow.ends[1], &flow.return_route),
            start: flow.start,
            stop: flow.stop,
            dscp: flow.dscp,
            traffic,
            fec: flow.fec.clone(),
            read_delays: Arc::clone(&resolved.read_delays[flow.ends[1]]),
            idle_read_delays: Arc::clone(&resolved.idle_read_delays[flow.ends[1]]),
            first_write_delays: Arc::clone(&resolved.first_write_delays[flow.ends[0]]),
        });
    }
    if let Some((name, _)) = hosts.first() {
        return Err(name.clone());
    }
    let mut network = builder.build();
    if let Some(tapping) = tapping {
        network.tap(Taps::new(tapping, resolved, network.element_names()));
    }
    Ok(Compiled {
        network,
        links,
        groups,
        gateways,
    })
}

/// The number of a node in the network.
fn node_number(node: usize) -> u32 {
    u32::try_from(node).unwrap_or(u32::MAX)
}

/// The processing stop of each host, if it has a processing delay.
fn processing<B: Body>(builder: &mut Builder<B>, resolved: &Resolved) -> Vec<Option<Stop>> {
    let hosts = resolved.nodes.iter().zip(&resolved.processing_jitter);
    hosts
        .map(|(name, longest)| {
            (!longest.is_zero())
                .then(|| Stop::Processing(builder.processing(format!("host.{name}"), *longest)))
        })
        .collect()
}

/// The transfers of a TCP flow with a Poisson workload; `None` for any other workload.
#[must_use]
pub fn arrivals(flow: &ResolvedFlow, seed: u64) -> Option<Arrivals> {
    let workload::Config::Poisson(poisson) = &flow.workload else {
        return None;
    };
    let load = (poisson.arrivals_per_s(), poisson.sizes.0, poisson.profile);
    Some(Arrivals::of_flow(load, seed, &flow.name, flow.start))
}

/// The datagrams of a UDP flow, from its start on, in order of time.
///
/// # Panics
/// If its workload is only for TCP, which resolving refuses.
#[must_use]
pub fn datagrams(flow: &ResolvedFlow, seed: u64) -> Schedule {
    Schedule::new(timing(flow, seed), flow.start)
}

/// The times and sizes of datagrams.
fn timing(flow: &ResolvedFlow, seed: u64) -> Timing {
    let stream = Stream::new(seed, &format!("flow.{}.workload", flow.name));
    let level = |profile| Level::of_flow(profile, seed, &flow.name);
    let sendings = match &flow.workload {
        workload::Config::Paced(paced) => match level(paced.profile) {
            None => return Timing::Paced(pace(paced)),
            Some(level) => {
                let phase = stream.at(0).uniform();
                let payload = pace(paced).payload(0);
                Sendings::Varying(sendings::Varying::new(
                    paced.rate, payload, level, phase, flow.start,
                ))
            }
        },
        workload::Config::Poisson(poisson) => Sendings::Poisson(sendings::Poisson {
            now: flow.start,
            rate: poisson.arrivals_per_s(),
            payload: octets(poisson.sizes.0.fixed()).expect("resolving refuses other sizes"),
            level: level(poisson.profile),
            stream,
            count: 0,
        }),
        workload::Config::OnOff(on_off) => {
            let pace = octets(on_off.payload)
                .and_then(|payload| Pace::new(on_off.rate, payload))
                .expect("resolving fills the payload in and checks the times");
            let (on, off) = (on_off.on.0, on_off.off.0);
            Sendings::OnOff(sendings::OnOff::new(pace, on, off, stream, flow.start))
        }
        workload::Config::Replay(_) => {
            let replayed = flow
                .replayed
                .clone()
                .expect("resolving reads the recording");
            Sendings::Replay(sendings::Replay {
                recording: replayed.recording,
                start: flow.start,
                factor: replayed.factor,
                repeat: replayed.repeat,
                headers: flow.udp_headers,
                index: 0,
            })
        }
        workload::Config::Bulk
        | workload::Config::File(_)
        | workload::Config::RequestResponse(_) => unreachable!("resolving refuses them over UDP"),
    };
    Timing::Listed(Box::new(sendings))
}

fn octets(bytes: Option<Bytes>) -> Option<u32> {
    u32::try_from(bytes?.get()).ok()
}

/// The traffic of a flow with our TCP.
fn traffic<B: Body>(flow: &ResolvedFlow, settings: Arc<Settings>) -> Traffic<B> {
    let control = flow.cc.clone();
    match &flow.workload {
        workload::Config::Bulk => Traffic::Tcp {
            settings,
            control,
            app: App::Bulk,
        },
        workload::Config::File(file) => Traffic::Tcp {
            settings,
            control,
            app: App::File(file.size.get()),
        },
        workload::Config::Poisson(poisson) => Traffic::Poisson {
            settings,
            control,
            rate: poisson.arrivals_per_s(),
            sizes: poisson.sizes.0,
            profile: poisson.profile,
        },
        workload::Config::Paced(paced) => Traffic::Tcp {
            settings,
            control,
            app: App::Scripted(Box::new(Script::paced(pace(paced)))),
        },
        workload::Config::OnOff(_) | workload::Config::Replay(_) => {
            unreachable!("resolving refuses them over TCP")
        }
        workload::Config::RequestResponse(what) => Traffic::Exchange {
            settings,
            control,
            what: what.clone(),
            together: what.synchronized.then(|| flow.table.clone()),
        },
    }
}

/// The times and sizes of the writes of a paced workload.
///
/// # Panics
/// Never: resolving fills the payload in and checks the times.
#[must_use]
pub fn pace(paced: &Paced) -> Pace {
    let sizes = if paced.writes.is_empty() {
        paced.payload.as_slice()
    } else {
        &paced.writes
    };
    let sizes = sizes.iter().map(|size| u32::try_from(size.get()));
    sizes
        .collect::<Result<Vec<_>, _>>()
        .ok()
        .and_then(|sizes| Pace::of_writes(paced.rate, &sizes))
        .expect("resolving fills the payload in and checks the times")
}

/// A gateway in the network.
#[derive(Debug, Clone)]
pub struct CompiledGateway {
    /// Its name.
    pub name: String,
    /// The names of its routes.
    pub routes: Vec<String>,
    /// The names of its classes.
    pub classes: Vec<String>,
    /// By direction: the entrance and the exit of packets.
    pub ends: [[MiddleboxId; 2]; 2],
}

/// Adds the two ends of each gateway.
fn gateways<B: Body>(
    builder: &mut Builder<B>,
    resolved: &Resolved,
    links: &[(String, [LinkId; 2])],
) -> Vec<CompiledGateway> {
    let mut all = Vec::with_capacity(resolved.gateways.len());
    for (number, gateway) in resolved.gateways.iter().enumerate() {
        let place = Place {
            number,
            gateway,
            resolved,
            links,
        };
        let ends = match &gateway.elements {
            GatewayEnds::Split {
                split,
                restore,
                overhead,
            } => place.split(builder, (split, restore, *overhead)),
            GatewayEnds::Tunnel {
                policies,
                classes,
                clock_offset,
            } => place.tunnel(builder, (policies, classes), *clock_offset),
        };
        let name = |hop: &Hop| links[hop.link].0.clone();
        all.push(CompiledGateway {
            name: gateway.name.clone(),
            routes: gateway.routes.iter().map(name).collect(),
            classes: gateway.class_names(),
            ends,
        });
    }
    all
}

/// A gateway with its context.
struct Place<'a> {
    number: usize,
    gateway: &'a ResolvedGateway,
    resolved: &'a Resolved,
    links: &'a [(String, [LinkId; 2])],
}

impl Place<'_> {
    /// The routes as crossed in a direction.
    fn routes(&self, direction: Direction) -> impl Iterator<Item = Hop> + '_ {
        let gateway = self.number;
        Step::Gateway { gateway, direction }.hops(&self.resolved.gateways)
    }

    /// The links of a direction's ports.
    fn ports(&self, direction: Direction) -> Vec<LinkId> {
        self.routes(direction)
            .map(|hop| self.links[hop.link].1[hop.direction as usize])
            .collect()
    }

    /// Adds a splitter and a restorer in each direction.
    fn split<B: Body>(
        &self,
        builder: &mut Builder<B>,
        (split, restore, overhead): (&split::Config, &restore::Config, u32),
    ) -> [[MiddleboxId; 2]; 2] {
        let count = self.gateway.routes.len();
        let has_header = split.needs_header() || restore.needs_header();
        // At the first end packets enter forward and leave in reverse.
        let peers = [(); 2].map(|()| has_header.then(|| Peer::new(count)));
        let ends = Direction::BOTH.map(|direction| {
            let rate = |hop: Hop| self.resolved.links[hop.link].total_rate(hop.direction);
            let name = |hop: Hop| self.links[hop.link].0.clone();
            let init = split::Init {
                rates: self.routes(direction).map(rate).collect(),
                names: self.routes(direction).map(name).collect(),
            };
            let meter = Meter::default();
            let name = format!("gateway.{}.{}", self.gateway.name, direction.name());
            let entrance = Entrance::new(EntranceParts {
                split: split.build(&init),
                overhead,
                routes: count,
                keeps: split.keeps(),
                peer: peers[direction as usize].clone(),
                window: builder.window(),
                meter: meter.clone(),
            });
            let exit = Exit::new(ExitParts {
                restore: restore.build(&restore::Init { routes: count }),
                overhead,
                peer: peers[direction.opposite() as usize].clone(),
                window: builder.window(),
                meter,
            });
            let entrance = builder.named_middlebox(
                format!("{name}.split"),
                Box::new(entrance),
                self.ports(direction),
            );
            builder.overhead(entrance, overhead);
            [
                entrance,
                builder.named_middlebox(format!("{name}.restore"), Box::new(exit), Vec::new()),
            ]
        });
        builder.pair(ends);
        ends
    }

    /// Adds one middlebox at each end, for both directions.
    fn tunnel<B: Body>(
        &self,
        builder: &mut Builder<B>,
        (policies, classes): (&[Policy], &[ResolvedClass]),
        clock_offset: [Duration; 2],
    ) -> [[MiddleboxId; 2]; 2] {
        let role = |policy: &Policy| match policy {
            Policy::Active => Role::Active,
            Policy::Overflow => Role::Overflow,
            Policy::Backup => Role::Backup,
            Policy::Metered => Role::Metered,
        };
        let roles: Vec<Role> = policies.iter().map(role).collect();
        let parts = tunnel::Ends {
            name: &self.gateway.name,
            seed: self.resolved.seed,
            roles: &roles,
            rules: &classes.iter().map(rule).collect::<Vec<Rule>>(),
            labels: &tunnel::Labels::new(self.resolved),
            clock_offset,
            window: builder.window(),
        };
        let [first, second] = tunnel::ends(&parts);
        let mut add = |direction: Direction, end| {
            let name = format!("gateway.{}.{}", self.gateway.name, direction.name());
            builder.named_middlebox(name, end, self.ports(direction))
        };
        let first = add(Direction::Forward, first);
        let second = add(Direction::Reverse, second);
        builder.tunnel([first, second]);
        [[first, second], [second, first]]
    }
}

/// Converts a class for the tunnel's core.
///
/// # Panics
/// Never: resolving pins only to routes, which are at most as many as a tunnel's paths.
fn rule(class: &ResolvedClass) -> Rule {
    let matches = &class.matches;
    let (dscp, ports) = (matches.code_points(), matches.ports());
    let path = || PathId::new(u8::try_from(class.path?).ok()?);
    Rule {
        matches: policy::Match::of(dscp, ports, matches.networks()),
        class: match class.mode {
            Mode::Bulk => policy::Class::Bulk,
            Mode::Interactive => policy::Class::Interactive,
            Mode::Pinned => policy::Class::Pinned(path().expect("resolving pins to a route")),
        },
    }
}

fn group_spec(links: [LinkSpec; 2], group: &ResolvedGroup) -> GroupSpec {
    GroupSpec {
        links,
        members: group.members,
        spread: group.spread,
        control: group.control.clone(),
        wake_time: group.wake_time,
        lacp_rate: group.lacp_rate,
        power: group.power,
        arrivals: group.arrivals.clone(),
    }
}

/// Shares one copy of the settings between consecutive flows with equal ones.
fn shared_stacks(flows: &[ResolvedFlow]) -> Vec<Arc<Settings>> {
    let mut stacks: Vec<Arc<Settings>> = Vec::with_capacity(flows.len());
    for flow in flows {
        let known = stacks.last().filter(|last| ***last == flow.stack).cloned();
        stacks.push(known.unwrap_or_else(|| Arc::new(flow.stack.clone())));
    }
    stacks
}
