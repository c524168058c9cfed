//! One live run: set-up, execution, tear-down, and the summary.

use std::{
    borrow::Cow,
    collections::VecDeque,
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anabranch_core::{
    interrupt::Interrupt,
    packet::{Direction, FlowId},
    units::{Duration, Instant},
};
use anabranch_engine::{
    Progress,
    network::{GroupId, LinkId, Network},
    record::Tapping,
    summary::{About, Summary},
    topology::{Compiled, Engine, Hosts, compile_tapped},
};
use anabranch_files::Files;
use anabranch_path::host::Host;
use anabranch_scenario::{Attached, Protocol, Resolved, Written};

use crate::{
    apps::{
        program::{self, Ended, Program},
        sampler::Sample,
    },
    engine::{
        audit::{Audit, Closing, Limits, Recorder},
        conservation::Packets,
        driver::{PathSampler, PathSamples},
        end::{Inbox, KernelEnd, Nobody},
        endpoint::{Own, OwnEnd},
        play::{Done, Play},
        router::{RateLimits, RouterEnd},
    },
    kernel::{
        address::number_in,
        descriptors,
        exchange::Exchange,
        host::LiveHost,
        namespace::{self, DEVICE, Namespace},
        tun::{Device, Drops, Interface, Passed, Tun},
    },
    plan::{
        controls::{Controls, Reading},
        defaults::{self, Defaults},
        devices,
        error::{Error, failed},
        frame::Frame,
        hindrance::{no_interface, no_namespace, no_routes, no_settings, no_tun},
        hops::{self, Answering, Hops},
        names,
        refusal::{self, Refusal},
        settings::{self, is_carried},
    },
    report::{
        summary::{self, LiveSummary},
        trace::{Detail, Traced, Tracing, Watch},
    },
};

/// A live run in preparation.
#[derive(Debug)]
pub struct Live<'a> {
    resolved: &'a Resolved,
    limits: Limits,
    packet_log: bool,
    sample_every: Option<Duration>,
    tapping: Option<Tapping>,
    tracing: Tracing,
    shell: Option<Program>,
    around: [Option<Around>; 2],
    folder: PathBuf,
    files: Files,
    interrupt: Interrupt,
    plays: Arc<AtomicBool>,
    is_virtual: bool,
}

/// A function that wraps an end of a flow.
pub type Around = fn(Box<dyn Host<Frame>>) -> Box<dyn Host<Frame>>;

/// Indices into the array of wrappers: see [`Live::around_own_ends`] and
/// [`Live::around_kernel_ends`].
const OWN: usize = 0;
const KERNEL: usize = 1;

/// The results of a run.
#[derive(Debug)]
pub struct Finished {
    /// The summary, as in the contract.
    pub summary: Summary,
    /// The network in its last state.
    pub network: Network<Frame>,
    /// Links by name; forward, then reverse.
    pub links: Vec<(String, [LinkId; 2])>,
    /// Groups by name.
    pub groups: Vec<(String, GroupId)>,
    /// The audit of the engine.
    pub audit: Audit,
    /// The state of the sockets, every 10 ms.
    pub samples: Vec<Sample>,
    /// Samples of links and groups, at the requested interval.
    pub path_samples: PathSamples,
    /// Traced events of the kernel's TCP.
    pub traced: Traced,
}

/// The longest time that a shell may stay open: 30 days.
const SHELL: Duration = Duration::from_secs(30 * 86_400);
impl<'a> Live<'a> {
    /// Prepares a run of this scenario.
    #[must_use]
    pub fn new(resolved: &'a Resolved) -> Self {
        Self {
            resolved,
            limits: Limits::default(),
            packet_log: false,
            sample_every: None,
            tapping: None,
            tracing: Tracing::IfPossible(Detail::Events),
            shell: None,
            around: [None; 2],
            folder: PathBuf::new(),
            files: Files::default(),
            interrupt: Interrupt::default(),
            plays: Arc::default(),
            is_virtual: false,
        }
    }
    /// Whether the machine's time is virtual (User-Mode Linux, `time-travel=inf-cpu`), so that it
    /// is constant while anything runs (default: no). A run is then the same each time, and has a
    /// digest.
    #[must_use]
    pub const fn virtual_time(mut self, on: bool) -> Self {
        self.is_virtual = on;
        self
    }
    /// Sets the interrupt. Raising `interrupt` ends the preparations, including a compiler's
    /// process, and the run. `plays` is true while programs may run, which must be ended before
    /// this process.
    #[must_use]
    pub fn interrupt(mut self, interrupt: Interrupt, plays: Arc<AtomicBool>) -> Self {
        self.interrupt = interrupt;
        self.plays = plays;
        self
    }
    /// Wraps every end that uses our own TCP, to observe or change packets in both directions.
    #[must_use]
    pub fn around_own_ends(mut self, around: Around) -> Self {
        self.around[OWN] = Some(around);
        self
    }
    /// Wraps every end that uses the kernel's TCP; its arriving packets go from the engine to the
    /// kernel.
    #[must_use]
    pub fn around_kernel_ends(mut self, around: Around) -> Self {
        self.around[KERNEL] = Some(around);
        self
    }
    /// Sets the folder of the scenario's file, in which eBPF controls are looked up (default: the
    /// working directory), and the reader of these files.
    #[must_use]
    pub fn folder(mut self, folder: PathBuf, files: Files) -> Self {
        self.folder = folder;
        self.files = files;
        self
    }
    /// Checks whether the scenario requires only features of live runs. The machine is checked when
    /// the run starts.
    ///
    /// # Errors
    /// With the first part that cannot run.
    pub fn check(&self) -> Result<(), Refusal> {
        refusal::check(self.resolved)
    }
    /// The initial size of an application's send buffer in octets.
    #[must_use]
    pub fn first_send_buffer(&self) -> u64 {
        settings::first_send_buffer(self.resolved, self.shell.is_some())
    }
    /// Checks whether this machine can run the scenario: the right to create hosts, and the
    /// congestion controls. eBPF controls are loaded and removed again. [`Self::check`] checks the
    /// scenario itself.
    ///
    /// # Errors
    /// [`Error::Refused`] with the first program that cannot be started, or the first flow whose
    /// control the kernel neither has nor accepts; [`Error::Missing`].
    pub fn check_machine(&self) -> Result<(), Error> {
        program::check(&self.programs(self.resolved), &self.resolved.nodes)?;
        prepare()?;
        self.controls().map(drop)
    }
    fn reading(&self) -> Reading<'_> {
        Reading {
            folder: &self.folder,
            files: &self.files,
            interrupt: &self.interrupt,
        }
    }
    /// Returns an error if the run was interrupted.
    fn go_on(&self) -> Result<(), Error> {
        if self.interrupt.is_raised() {
            Err(Error::Stopped)
        } else {
            Ok(())
        }
    }
    /// The controls of all flows, and the default controls of programs. `resolved` is the scenario
    /// around a shell, if there is one.
    fn controls_of_programs(&self, resolved: &Resolved) -> Result<(Controls, Defaults), Error> {
        let controls = if self.shell.is_none() {
            self.controls()?
        } else {
            let namespace = Namespace::new().map_err(no_namespace)?;
            Controls::beside_a_shell(resolved, &namespace, &self.reading()).map_err(no_namespace)?
        };
        let defaults = defaults::of(resolved, &controls, self.shell.is_none());
        Ok((controls, defaults.map_err(no_namespace)??))
    }
    fn controls(&self) -> Result<Controls, Error> {
        let namespace = Namespace::new().map_err(no_namespace)?;
        settings::check_switches(self.resolved, |name| namespace.has(name))
            .map_err(no_namespace)??;
        let controls = Controls::of(self.resolved, &namespace, &self.reading());
        // An error of an interrupted compiler is not the reason.
        self.go_on()?;
        Ok(controls.map_err(no_namespace)??)
    }
    /// Runs a program with the terminal inside a node, in place of all traffic of the flows. The
    /// run ends with the program.
    #[must_use]
    pub fn shell(mut self, node: usize, words: Vec<String>) -> Self {
        self.shell = Some(Program {
            host: node,
            words,
            names: names::table(self.resolved, node),
            is_shell: true,
        });
        self
    }
    /// Sets the limits above which the run is tainted.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
    /// Whether to keep a row per packet (default: no).
    #[must_use]
    pub fn packet_log(mut self, on: bool) -> Self {
        self.packet_log = on;
        self
    }
    /// Sets the interval of samples of links and groups (default: no samples). Zero means no
    /// samples.
    #[must_use]
    pub fn samples(mut self, every: Option<Duration>) -> Self {
        self.sample_every = every.filter(|every| !every.is_zero());
        self
    }
    /// Sets the tracing of the kernel's TCP (default: state changes and retransmissions, if this
    /// machine permits it).
    #[must_use]
    pub fn trace(mut self, tracing: Tracing) -> Self {
        self.tracing = tracing;
        self
    }
    /// Captures the packets that enter these links, with their real addresses. The captures are in
    /// the probe of [`Finished::network`].
    #[must_use]
    pub fn tap(mut self, tapping: Option<Tapping>) -> Self {
        let addresses = (0..self.resolved.nodes.len())
            .map(|node| {
                let own = devices::of_node(self.resolved, node);
                let own = own
                    .flat_map(|device| [false, true].map(|is_v6| devices::address(device, is_v6)));
                own.chain(self.resolved.attached[node].addresses.iter().copied())
                    .collect()
            })
            .collect();
        self.tapping = tapping.map(|tapping| Tapping {
            addresses: Some(addresses),
            ..tapping
        });
        self
    }
    /// Runs the scenario.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn run(self) -> Result<Finished, Error> {
        self.run_with(&mut |_| Progress::Continue)
    }

    /// Runs the scenario, and reports progress as a share from 0 to 1.
    ///
    /// # Errors
    /// See [`Error`].
    ///
    /// # Panics
    /// Never: every end is made from the compiled scenario.
    pub fn run_with(self, report: &mut dyn FnMut(f64) -> Progress) -> Result<Finished, Error> {
        let checked = self.checked()?;
        let resolved = checked.as_ref();
        let programs = self.programs(self.resolved);
        program::check(&programs, &resolved.nodes)?;
        prepare()?;
        descriptors::raise();
        let (controls, defaults) = self.controls_of_programs(resolved)?;
        let wanted = settings::of_namespaces(resolved, self.shell.is_some());
        let hops = Hops::of(resolved);
        let exchange = self.is_virtual.then(Exchange::default);
        let (hosts, applied) = hosts(resolved, &hops, &wanted, exchange.as_ref())?;
        set_defaults(&hosts, &defaults)?;
        let with_hops = hops.added_to(resolved);
        let recorder = Arc::new(Recorder::of(with_hops.flows.len()));
        let flows_send = self.shell.is_none();
        let own = self.own_ends(resolved);
        let (inboxes, ends) = ends(resolved, &hosts, &recorder, (&own, &hops), self.around);
        let Compiled {
            mut network,
            links,
            groups,
            gateways,
        } = compile_tapped(&with_hops, self.engine(), ends, self.tapping.as_ref())
            .expect("hosts are made from the scenario's flows");
        let watch = self.watch(resolved, &hosts);
        self.go_on()?;
        let watch = watch?;
        let play = Play {
            resolved,
            programs,
            flows_send,
            hosts: &hosts,
            controls: &controls,
            recorder: &recorder,
            inboxes,
            own: &own,
            hops: &hops,
            path: PathSampler::new(&links, &groups, self.sample_every),
            filter: watch.filter()?,
            exchange,
        };
        let done = self.play(play, &mut network, report)?;
        let traced = watch.end(done.start_ns);
        if self.shell.is_none() {
            check_programs(&done.programs)?;
        }
        summary::check_content(resolved, &done.outcomes)
            .map_err(|source| failed("the content of a flow", source))?;
        let nodes = crossed(resolved, &hops, hosts.len());
        let census = network.census().expect("the engine counts fates");
        let packets = Packets::of(&recorder, census, done.waiting, (&nodes, &counted(&hosts)?));
        packets
            .check()
            .map_err(|source| failed("the packets of the run", source))?;
        let closing = closing(resolved, &hosts, nodes, &network, &done)?;
        let audit = Audit::of(&recorder, self.limits, &closing);
        // All programs may have ended earlier than planned.
        let resolved = &Resolved {
            duration: done.moved.end - Instant::START,
            ..resolved.clone()
        };

        let shown = |index, flow| summary::shown(index, flow, resolved, (&done, &traced));
        let about = about(resolved);
        let mut summary = Summary::of(&mut network, about, &links, &groups, &gateways, shown);
        summary.engine = if self.is_virtual { "kernel" } else { "live" };
        summary.tainted = audit.tainted.then_some(true);
        summary.duration_s = resolved.duration.as_secs_f64();
        traced.note(&mut network, resolved);
        let live = LiveSummary {
            audit: audit.clone(),
            packets,
            programs: done.programs.clone(),
            ends: summary::ends(resolved, &own, &done),
            tcp_counters: summary::counters(resolved, &done.counters),
            controls: controls.described(resolved),
            default_controls: defaults::described(resolved, &hosts, &defaults),
            trace: traced.described(resolved, &hosts),
            machine: summary::machine(resolved, &hosts, &applied, done.moved.is_awake),
        };
        summary.live = Some(serde_json::to_value(live).expect("plain data"));
        Ok(Finished {
            summary,
            network,
            links,
            groups,
            audit,
            samples: done.samples,
            path_samples: done.moved.samples,
            traced,
        })
    }

    /// The checked scenario. Around a shell its duration is that of the shell.
    fn checked(&self) -> Result<Cow<'a, Resolved>, Error> {
        let Some(shell) = &self.shell else {
            refusal::check(self.resolved)?;
            return Ok(Cow::Borrowed(self.resolved));
        };
        refusal::check_place(self.resolved, shell.host)?;
        refusal::check_structure(self.resolved)?;
        Ok(Cow::Owned(around_a_shell(self.resolved, shell)))
    }
}

/// The description of the scenario in the summary.
fn about(resolved: &Resolved) -> About {
    About {
        scenario: resolved.title.clone(),
        seed: resolved.seed,
        resolved_scenario: resolved.json.clone(),
        platform: format!("linux {}", std::env::consts::ARCH),
        captures: resolved.captures(),
    }
}

impl Live<'_> {
    /// Options for the computation of the path.
    fn engine(&self) -> Engine {
        Engine {
            digest: self.is_virtual,
            packet_log: self.packet_log,
            tally: true,
            // A sample must show the present state of a link, without events computed ahead.
            fold: self.sample_every.is_none(),
            ..Engine::default()
        }
    }

    /// The ends that use our own TCP. Around a shell there are none, because no flow sends.
    fn own_ends(&self, resolved: &Resolved) -> Vec<[Option<Own>; 2]> {
        if self.shell.is_none() {
            Own::all(resolved)
        } else {
            vec![[None, None]; resolved.flows.len()]
        }
    }

    /// Executes the run until its end, or until the interrupt is raised.
    fn play(
        &self,
        play: Play<'_>,
        network: &mut Network<Frame>,
        report: &mut dyn FnMut(f64) -> Progress,
    ) -> Result<Done, Error> {
        let mut report = |share| match self.go_on() {
            Ok(()) => report(share),
            Err(_) => Progress::Stop,
        };
        self.plays.store(true, Ordering::Relaxed);
        let done = play.run(network, &mut report);
        self.plays.store(false, Ordering::Relaxed);
        done
    }

    /// The programs that are started at hosts.
    fn programs(&self, resolved: &Resolved) -> Vec<Program> {
        let mut all = Program::all(resolved);
        if let Some(shell) = &self.shell {
            // The shell replaces the program of its host; it communicates with the programs of
            // other hosts.
            all.retain(|program| program.host != shell.host);
            all.push(shell.clone());
        }
        all
    }

    /// Starts to watch the senders' sockets, as far as it is requested and possible.
    fn watch(&self, resolved: &Resolved, hosts: &[Option<LiveHost>]) -> Result<Watch, Error> {
        let tracing = if self.shell.is_none() {
            self.tracing
        } else {
            Tracing::Off
        };
        Watch::start(tracing, resolved, hosts, &self.interrupt).map_err(Error::Untraceable)
    }
}

/// The scenario around a shell, for the packets of the shell and of other hosts' programs. No flow
/// sends.
fn around_a_shell(resolved: &Resolved, shell: &Program) -> Resolved {
    let mut around = Resolved {
        duration: SHELL,
        ..resolved.clone()
    };
    around.attached[shell.host].exec = Some(shell.words.clone());
    for flow in &mut around.flows {
        let others = flow.written.0.iter().filter(|key| *key != "workload");
        flow.written = Written(others.cloned().collect());
    }
    around
}

/// Sets the default congestion controls of programs' sockets.
fn set_defaults(hosts: &[Option<LiveHost>], defaults: &[Option<String>]) -> Result<(), Error> {
    for (node, (host, default)) in hosts.iter().zip(defaults).enumerate() {
        let namespace = host.as_ref().and_then(|host| host.namespace.as_ref());
        if let (Some(namespace), Some(control)) = (namespace, default) {
            defaults::apply(namespace, node, control).map_err(|source| {
                failed(&format!("making `{control}` the default of a host"), source)
            })?;
        }
    }
    Ok(())
}

/// Drops of the devices in both directions, by node.
fn device_drops(hosts: &[Option<LiveHost>]) -> Result<Vec<Drops>, Error> {
    let of = |host: &Option<LiveHost>| {
        let device = host.as_ref().map(|host| &host.device);
        device.map_or(Ok(Drops::default()), |device| device.drops())
    };
    hosts
        .iter()
        .map(of)
        .collect::<io::Result<_>>()
        .map_err(|source| failed("reading the devices' counters", source))
}

/// Counts of passed and dropped packets of the devices, by node.
fn counted(hosts: &[Option<LiveHost>]) -> Result<Vec<Option<(Passed, Drops)>>, Error> {
    let of = |host: &Option<LiveHost>| {
        let Some(host) = host else {
            return Ok(None);
        };
        let passed = host.device.passed()?;
        passed
            .map(|passed| Ok((passed, host.device.drops()?)))
            .transpose()
    };
    hosts
        .iter()
        .map(of)
        .collect::<io::Result<_>>()
        .map_err(|source| failed("reading the devices' counters", source))
}

/// Ensures that this process may create hosts. Without the right to namespaces it moves into a new
/// user namespace, which is possible only while it has one thread: call this early.
///
/// # Errors
/// [`Error::Missing`].
pub fn prepare() -> Result<(), Error> {
    namespace::may_make().map_err(no_namespace)
}

/// Returns an error if a program failed.
fn check_programs(programs: &[Ended]) -> Result<(), Error> {
    let Some(end) = programs.iter().find(|end| end.failed()) else {
        return Ok(());
    };
    let status = end
        .status
        .map_or("a signal".to_owned(), |status| format!("status {status}"));
    Err(failed(
        &format!("the program of `{}`", end.host),
        io::Error::other(format!("`{}` ended with {status}", end.command[0])),
    ))
}

/// Kernel settings that were made, as names below `/proc/sys` and values.
type Applied<'a> = Vec<(&'a str, String)>;

/// The hosts by number of the device; `None` if no flow begins or ends there. Also returns the
/// requested settings that the kernel has.
fn hosts<'a>(
    resolved: &Resolved,
    hops: &Hops,
    wanted: &[(&'a str, String)],
    exchange: Option<&Exchange>,
) -> Result<(Vec<Option<LiveHost>>, Applied<'a>), Error> {
    let through = |tun: Tun| match exchange {
        None => Arc::new(tun) as Arc<dyn Device>,
        Some(exchange) => exchange.device(tun),
    };
    let mut applied = Vec::new();
    let mut interfaces = Vec::new();
    let mtu = settings::mtu(resolved);
    // Our own TCP uses nothing of the kernel.
    let is_end = |node: usize| {
        !resolved.attached[node].has_own_tcp
            && resolved.flows.iter().any(|flow| flow.ends.contains(&node))
    };
    let mut make = |node: usize| {
        if let Some(name) = &resolved.attached[node].interface {
            let device = Interface::new(name)
                .map_err(|source| no_interface(&resolved.nodes[node], name, source))?;
            check_interface(resolved, node, &device, &mut interfaces)?;
            return Ok(LiveHost {
                namespace: None,
                device: Arc::new(device),
            });
        }
        let namespace = Namespace::new().map_err(no_namespace)?;
        // The same in each namespace, because there is one kernel.
        applied = namespace.set(wanted).map_err(no_settings)?;
        let device = match resolved.attached[node].devices.first() {
            None => namespace.device(DEVICE, node, mtu),
            Some(name) => namespace.one_of_several(name, node, mtu),
        };
        Ok(LiveHost {
            namespace: Some(namespace),
            device: through(device.map_err(no_tun)?),
        })
    };
    let mut hosts = (0..resolved.nodes.len())
        .map(|node| is_end(node).then(|| make(node)).transpose())
        .collect::<Result<Vec<_>, Error>>()?;
    for device in devices::all(resolved).iter().skip(hosts.len()) {
        let namespace = hosts[device.node]
            .as_ref()
            .and_then(|host| host.namespace.clone());
        let further = match namespace {
            None => None,
            Some(namespace) => {
                let tun = namespace.one_of_several(device.name, hosts.len(), mtu);
                Some(LiveHost {
                    namespace: Some(namespace),
                    device: through(tun.map_err(no_tun)?),
                })
            }
        };
        hosts.push(further);
    }
    for (node, host) in hosts.iter().take(resolved.nodes.len()).enumerate() {
        if let Some(namespace) = host.as_ref().and_then(|host| host.namespace.as_ref()) {
            route(resolved, hops, node, namespace).map_err(no_routes)?;
        }
    }
    Ok((hosts, applied))
}

/// Adds a host's further addresses and its routes.
fn route(resolved: &Resolved, hops: &Hops, node: usize, namespace: &Namespace) -> io::Result<()> {
    let host = &resolved.attached[node];
    let first = host.devices.first().map_or(DEVICE, String::as_str);
    for address in &host.addresses {
        namespace.further_address(first, *address)?;
    }
    let is_plain = |host: &Attached| host.devices.is_empty() && host.addresses.is_empty();
    if resolved.attached.iter().all(is_plain) {
        return Ok(());
    }
    let ways = devices::ways(resolved, hops, node);
    if host.devices.is_empty() {
        let further = ways.iter().map(|way| way.to);
        let further: Vec<_> = further.filter(|to| number_in(*to).is_none()).collect();
        return namespace.reach(node, &further);
    }
    namespace.route(&devices::named(resolved, node), &ways)
}

/// Refuses a loopback interface, and one interface under two names.
fn check_interface(
    resolved: &Resolved,
    node: usize,
    device: &Interface,
    taken: &mut Vec<(i32, usize)>,
) -> Result<(), Error> {
    let (name, host) = (device.name(), &resolved.nodes[node]);
    let identity = device
        .identity()
        .map_err(|source| no_interface(host, name, source))?;
    if identity.is_loopback {
        return Err(refusal::loopback(host, name).into());
    }
    if let Some((_, other)) = taken.iter().find(|(index, _)| *index == identity.index) {
        return Err(refusal::same_interface(host, &resolved.nodes[*other], name).into());
    }
    taken.push((identity.index, node));
    Ok(())
}

/// The ends of all flows in the model, and the inboxes of the packets that they send.
fn ends(
    resolved: &Resolved,
    hosts: &[Option<LiveHost>],
    recorder: &Arc<Recorder>,
    (own, hops): (&[[Option<Own>; 2]], &Hops),
    around: [Option<Around>; 2],
) -> (Vec<[Inbox; 2]>, Hosts<Frame>) {
    let mut inboxes: Vec<[Inbox; 2]> = Vec::with_capacity(resolved.flows.len());
    let mut ends: Hosts<Frame> = Vec::with_capacity(resolved.flows.len());
    for (flow, own) in resolved.flows.iter().zip(own) {
        let devices = devices::ends(resolved, flow);
        let pair = [(); 2].map(|()| Inbox::new(VecDeque::new().into()));
        let id = FlowId(u32::try_from(ends.len()).expect("flows are counted in 32 bits"));
        let is_read = flow.protocol == Protocol::Udp && !is_carried(flow, resolved);
        let boxed = |side: usize| -> Box<dyn Host<Frame>> {
            if let Some(own) = &own[side] {
                let end = Box::new(OwnEnd {
                    own: own.clone(),
                    recorder: Arc::clone(recorder),
                    place: (id, Direction::BOTH[1 - side]),
                });
                return match around[OWN] {
                    Some(around) => around(end),
                    None => end,
                };
            }
            let Some(host) = &hosts[devices[side]] else {
                // A host with our own TCP, none of whose flows sends.
                return Box::new(Nobody);
            };
            let end = Box::new(KernelEnd {
                device: Arc::clone(&host.device),
                inbox: Arc::clone(&pair[side]),
                recorder: Arc::clone(recorder),
                // Packets that arrive at the sender travel in reverse.
                place: (id, Direction::BOTH[1 - side]),
                routers: hops.passed((id, Direction::BOTH[1 - side])),
                answering: Answering::of(resolved, flow, side),
                stamps: (side == 1 && is_read).then(|| recorder.stamps(id.0 as usize)),
            });
            match around[KERNEL] {
                Some(around) => around(end),
                None => end,
            }
        };
        ends.push((flow.name.clone(), [boxed(0), boxed(1)]));
        inboxes.push(pair);
    }
    add_hops(&mut inboxes, &mut ends, hosts, recorder, (resolved, hops));
    (inboxes, ends)
}

/// Observations at the end of the run.
fn closing(
    resolved: &Resolved,
    hosts: &[Option<LiveHost>],
    nodes: Vec<[usize; 2]>,
    network: &Network<Frame>,
    done: &Done,
) -> Result<Closing, Error> {
    Ok(Closing {
        devices: device_drops(hosts)?,
        nodes,
        in_flight_packets: network.packets_in_flight() as u64,
        cpu_share: done.moved.cpu_share,
        ends: summary::datagram_ends(resolved, &done.outcomes),
        lateness: summary::lateness(&done.outcomes),
    })
}

/// The devices at both ends of each flow, by number. `no_device` represents routers.
fn crossed(resolved: &Resolved, hops: &Hops, no_device: usize) -> Vec<[usize; 2]> {
    let flows = resolved.flows.iter();
    let devices = flows.map(|flow| devices::ends(resolved, flow));
    let hidden = hops.all().iter().map(|hop| [hop.device, no_device]);
    devices.chain(hidden).collect()
}

/// Adds the ends of hidden flows: hosts, and the routers that answer them.
fn add_hops(
    inboxes: &mut Vec<[Inbox; 2]>,
    ends: &mut Hosts<Frame>,
    hosts: &[Option<LiveHost>],
    recorder: &Arc<Recorder>,
    (resolved, hops): (&Resolved, &Hops),
) {
    let mut limits = RateLimits::default();
    for (number, hop) in hops.all().iter().enumerate() {
        let id = FlowId(u32::try_from(ends.len()).expect("flows are counted in 32 bits"));
        let pair = [(); 2].map(|()| Inbox::new(VecDeque::new().into()));
        let before = hops.passed((id, Direction::Forward));
        let host: Box<dyn Host<Frame>> = match &hosts[hop.device] {
            Some(host) => Box::new(KernelEnd {
                device: Arc::clone(&host.device),
                inbox: Arc::clone(&pair[0]),
                recorder: Arc::clone(recorder),
                place: (id, Direction::Reverse),
                routers: hops.passed((id, Direction::Reverse)),
                answering: hop.answering(resolved),
                stamps: None,
            }),
            None => Box::new(Nobody),
        };
        let router = RouterEnd::new(hop, before, limits.of(hop), recorder, id);
        ends.push((hops::name(number), [host, Box::new(router)]));
        inboxes.push(pair);
    }
}
