//! Building a network: parts first, then the decision which of them are arithmetic.

use std::{
    collections::{BTreeMap, BinaryHeap, VecDeque},
    sync::Arc,
};

use anabranch_core::{
    packet::{FlowId, Pool},
    rng::Stream,
    trace::ElementId,
    units::{Duration, Instant, Rate, text::Limit},
};
use anabranch_elements::{
    body::Body,
    cc,
    host::Host,
    impair,
    link::{
        PlainLink, ServedLink, Window,
        served::{Impaired, Parts},
        service::{AnyService, Fixed, Service},
    },
    middlebox::{Middlebox, Output},
    queue::{
        self,
        reorder::{Queue, Reorder},
    },
    tcp::Settings,
};

use super::{
    App, Change, End, LinkId, MiddleboxId, MiddleboxSlot, Network,
    agent::{AgentSlot, tcp_ends},
    connection::{Connection, Flow, Totals},
    fabric::{Fabric, LinkKind, LinkSlot, Propagating, ServedSlot, Target},
    spawner::Spawner,
};
use crate::{
    event_queue::{Class, Entry, EventQueue, Source},
    record::Probe,
    workload::Sizes,
};

/// One direction of a link.
#[derive(Debug)]
pub struct LinkSpec {
    /// The element's name, which keys its random stream: `link.NAME.DIRECTION`.
    pub name: String,
    /// `None`: packets take no time to send.
    pub rate: Option<Rate>,
    /// Propagation delay.
    pub delay: Duration,
    /// Queue discipline.
    pub queue: queue::Config,
    /// Reordering inside the queue.
    pub reorder: Option<Reorder>,
    /// Impairments in order.
    pub impairments: Vec<impair::Config>,
    /// A service instead of the fixed rate.
    pub service: Option<Box<dyn Service>>,
    /// Whether it works at the start.
    pub up: bool,
    /// Whether it may change in mid-run.
    pub may_change: bool,
}

impl LinkSpec {
    /// A plain link: unlimited FIFO, no impairment.
    #[must_use]
    pub fn new(name: impl Into<String>, rate: Option<Rate>, delay: Duration) -> Self {
        Self {
            name: name.into(),
            rate,
            delay,
            queue: queue::Config::DropTail(queue::drop_tail::Params::default()),
            reorder: None,
            impairments: Vec::new(),
            service: None,
            up: true,
            may_change: false,
        }
    }
    /// The same with a drop-tail queue of so many packets.
    #[must_use]
    pub fn limit(mut self, packets: u64) -> Self {
        self.queue = queue::Config::DropTail(queue::drop_tail::Params {
            limit: Limit::Packets(packets),
        });
        self
    }
    /// The same with another queue discipline.
    #[must_use]
    pub fn queue(mut self, queue: queue::Config) -> Self {
        self.queue = queue;
        self
    }
    /// The same with one impairment more.
    #[must_use]
    pub fn impair(mut self, impairment: impair::Config) -> Self {
        self.impairments.push(impairment);
        self
    }
    /// The same with reordering inside the queue.
    #[must_use]
    pub fn reorder(mut self, reorder: Reorder) -> Self {
        self.reorder = Some(reorder);
        self
    }
    /// The same with a service of its own.
    #[must_use]
    pub fn service(mut self, service: Box<dyn Service>) -> Self {
        self.service = Some(service);
        self
    }
    /// The same, free to change in mid-run.
    #[must_use]
    pub fn changing(mut self) -> Self {
        self.may_change = true;
        self
    }

    /// The queue's limit, if the link is plain.
    fn plain_limit(&self) -> Option<Limit> {
        let queue::Config::DropTail(params) = &self.queue else {
            return None;
        };
        let plain = self.reorder.is_none()
            && self.impairments.is_empty()
            && self.service.is_none()
            && self.up
            && !self.may_change;
        plain.then_some(params.limit)
    }
}

/// A place on a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Over a link.
    Link(LinkId),
    /// Through a middlebox.
    Middlebox(MiddleboxId),
}

/// What runs over a flow.
#[derive(Debug)]
pub enum Traffic<B: Body> {
    /// Our TCP with an application.
    Tcp {
        /// Switches of the stack.
        settings: Arc<Settings>,
        /// Congestion control.
        control: cc::Config,
        /// What is sent.
        app: App,
    },
    /// Transfers one by one, each on its own TCP connection.
    Poisson {
        /// Switches of the stack.
        settings: Arc<Settings>,
        /// Congestion control.
        control: cc::Config,
        /// Mean transfers per second, positive.
        rate: f64,
        /// Their sizes.
        sizes: Sizes,
    },
    /// Two hosts from outside.
    Hosts([Box<dyn Host<B>>; 2]),
}

/// A flow: one copy, one route each way.
#[derive(Debug)]
pub struct FlowSpec<B: Body> {
    /// Its name, which keys its random stream and stands in results.
    pub name: String,
    /// From sender to receiver.
    pub route: Vec<Stop>,
    /// From receiver to sender.
    pub return_route: Vec<Stop>,
    /// When it starts.
    pub start: Instant,
    /// When its application stops, if before the end of the run.
    pub stop: Option<Instant>,
    /// What runs over it.
    pub traffic: Traffic<B>,
}

/// A middlebox and the links that its ports lead into.
type MiddleboxSpec<B> = (Box<dyn Middlebox<B>>, Vec<LinkId>);

/// Collects the parts of a network.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Builder<B: Body> {
    seed: u64,
    window: Window,
    fast_path: bool,
    fold: bool,
    digest: bool,
    packet_log: bool,
    links: Vec<LinkSpec>,
    middleboxes: Vec<MiddleboxSpec<B>>,
    flows: Vec<FlowSpec<B>>,
    changes: Vec<(Instant, Change)>,
}

impl<B: Body> Builder<B> {
    /// A run from the clock's start to `end`, measured from `warmup` on.
    #[must_use]
    pub fn new(seed: u64, warmup: Instant, end: Instant) -> Self {
        Self {
            seed,
            window: Window::new(warmup, end),
            fast_path: true,
            fold: true,
            digest: true,
            packet_log: false,
            links: Vec::new(),
            middleboxes: Vec::new(),
            flows: Vec::new(),
            changes: Vec::new(),
        }
    }
    /// Whether plain links become arithmetic (default: yes). Results do not depend on it.
    pub fn fast_path(&mut self, on: bool) -> &mut Self {
        self.fast_path = on;
        self
    }
    /// Whether a plain link behind another is computed ahead (default: yes). Results do not depend
    /// on it, but a look at such a link in mid-run would see packets that have yet to come.
    pub fn fold(&mut self, on: bool) -> &mut Self {
        self.fold = on;
        self
    }
    /// Whether a digest of all observations is kept (default: yes).
    pub fn digest(&mut self, on: bool) -> &mut Self {
        self.digest = on;
        self
    }
    /// Whether a row per packet is kept (default: no).
    pub fn packet_log(&mut self, on: bool) -> &mut Self {
        self.packet_log = on;
        self
    }
    /// Adds one direction of a link.
    ///
    /// # Panics
    /// If there are 2^32 of them.
    pub fn link(&mut self, spec: LinkSpec) -> LinkId {
        self.links.push(spec);
        LinkId(u32::try_from(self.links.len() - 1).expect("links are counted in 32 bits"))
    }
    /// Adds a middlebox whose ports lead into `ports`.
    ///
    /// # Panics
    /// If there are 2^32 of them.
    pub fn middlebox(
        &mut self,
        middlebox: Box<dyn Middlebox<B>>,
        ports: Vec<LinkId>,
    ) -> MiddleboxId {
        self.middleboxes.push((middlebox, ports));
        MiddleboxId(
            u32::try_from(self.middleboxes.len() - 1).expect("middleboxes are counted in 32 bits"),
        )
    }
    /// Adds a flow.
    ///
    /// # Panics
    /// If there are 2^32 of them.
    pub fn flow(&mut self, spec: FlowSpec<B>) -> FlowId {
        self.flows.push(spec);
        FlowId(u32::try_from(self.flows.len() - 1).expect("flows are counted in 32 bits"))
    }
    /// Adds a change at `at`. The links it names become ones that may change.
    pub fn change(&mut self, at: Instant, change: Change) -> &mut Self {
        if let Change::Up(link, _)
        | Change::Rate(link, _)
        | Change::Delay(link, _)
        | Change::Limit(link, _) = change
        {
            self.links[link.0 as usize].may_change = true;
        }
        self.changes.push((at, change));
        self
    }

    /// The network, before its first event.
    #[must_use]
    pub fn build(self) -> Network<B> {
        let window = self.window;
        let plain = self
            .links
            .iter()
            .map(|spec| spec.plain_limit().filter(|_| self.fast_path))
            .collect::<Vec<_>>();
        let folded = if self.fold {
            folded_links(&self.links, &plain, &self.flows, &self.middleboxes)
        } else {
            vec![None; self.links.len()]
        };
        let (ring_of, rings) = shared_rings(&self.links, &self.flows, &self.middleboxes);
        let mut elements = 0;
        let mut next_element = || {
            elements += 1;
            ElementId(elements - 1)
        };
        let mut names = Vec::new();
        let rates = self
            .links
            .iter()
            .map(|spec| spec.rate.map(Rate::bits_per_s))
            .collect();
        // Collecting would keep the memory of the larger specifications.
        let mut links = Vec::with_capacity(self.links.len());
        for ((spec, limit), ring) in self.links.into_iter().zip(plain).zip(ring_of) {
            links.push(link_slot(
                spec,
                limit,
                self.seed,
                window,
                ring,
                &mut next_element,
                &mut names,
            ));
        }
        let middleboxes = self
            .middleboxes
            .into_iter()
            .enumerate()
            .map(|(index, (middlebox, ports))| {
                names.push(format!("middlebox.{index}"));
                MiddleboxSlot {
                    middlebox,
                    element: next_element(),
                    ports: ports.into_iter().map(|link| link.0).collect(),
                    armed: Instant::NEVER,
                }
            })
            .collect();
        let mut network = Network {
            fabric: Fabric {
                now: Instant::START,
                window,
                arrivals: EventQueue::default(),
                timers: EventQueue::default(),
                pool: Pool::default(),
                links,
                rings: std::iter::repeat_with(Propagating::new)
                    .take(rings)
                    .collect(),
                routes: Vec::new(),
                probe: Probe::new(window.end(), self.digest, self.packet_log),
                events: 0,
                flow_of: Vec::new(),
                reached: VecDeque::new(),
                outcomes: Vec::new(),
                impairing: Vec::new(),
            },
            rates,
            middleboxes,
            agents: Vec::new(),
            connections: Vec::new(),
            flows: Vec::new(),
            spawners: Vec::new(),
            changes: VecDeque::new(),
            delivered_packets: 0,
            output: Output::default(),
            element_names: Vec::new(),
        };
        for (at, change) in self.changes {
            network.schedule(at, change);
        }
        network.agents.reserve_exact(2 * self.flows.len());
        network.connections.reserve_exact(self.flows.len());
        let mut routes = BTreeMap::new();
        for spec in self.flows {
            names.extend(["sender", "receiver"].map(|end| format!("flow.{}.{end}", spec.name)));
            let ends = [next_element(), next_element()];
            network.add_flow(spec, ends, self.seed, window, &folded, &mut routes);
        }
        network.element_names = names;
        network
    }
}

/// Routes already in the table, by their stops, so that the copies of a flow share them.
type Routes = BTreeMap<Vec<(u8, u32)>, u32>;

impl<B: Body> Network<B> {
    fn add_flow(
        &mut self,
        spec: FlowSpec<B>,
        elements: [ElementId; 2],
        seed: u64,
        run: Window,
        folded: &[Option<u32>],
        routes: &mut Routes,
    ) {
        let route = [
            self.add_route(&spec.route, folded, routes),
            self.add_route(&spec.return_route, folded, routes),
        ];
        let id = FlowId(u32::try_from(self.flows.len()).expect("flows are counted in 32 bits"));
        let end = spec.stop.map_or(run.end(), |stop| stop.min(run.end()));
        let window = Window::new(spec.start.max(run.start()), end);
        if run.start() > spec.start {
            self.schedule(run.start(), Change::BeginMeasuring(id));
        }
        let stop = spec.stop.filter(|stop| *stop < run.end());
        if let Some(stop) = stop {
            self.schedule(stop, Change::EndMeasuring(id));
        }
        let mut flow = Flow {
            name: spec.name,
            connection: None,
            window,
            settings: None,
            control: None,
            totals: Totals::default(),
            body: std::marker::PhantomData,
        };
        match spec.traffic {
            Traffic::Poisson {
                settings,
                control,
                rate,
                sizes,
            } => {
                (flow.settings, flow.control) = (Some(settings), Some(control));
                let index = self.spawners.len();
                self.spawners.push(Spawner {
                    flow: id,
                    rate,
                    sizes,
                    stream: Stream::new(seed, &format!("flow.{}.workload", flow.name)),
                    stop: stop.unwrap_or(run.end()),
                    route,
                    elements,
                    begun: 0,
                    vacant: Vec::new(),
                });
                self.fabric
                    .timers
                    .push(Entry::new(spec.start, Source::new(Class::Spawn, index)));
            }
            Traffic::Tcp {
                settings,
                control,
                app,
            } => {
                let ends = tcp_ends(&settings, &control, app);
                (flow.settings, flow.control) = (Some(settings), Some(control));
                flow.connection =
                    Some(self.add_connection(id, route, window, elements, ends, spec.start, stop));
                if let (App::File(size), Some(connection)) = (app, flow.connection) {
                    self.connections[connection as usize].size = size;
                }
            }
            Traffic::Hosts([sender, receiver]) => {
                let ends = [End::Host(sender), End::Host(receiver)];
                flow.connection =
                    Some(self.add_connection(id, route, window, elements, ends, spec.start, stop));
            }
        }
        self.flows.push(flow);
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "called from one place, with one flow's parts"
    )]
    fn add_connection(
        &mut self,
        flow: FlowId,
        route: [u32; 2],
        window: Window,
        elements: [ElementId; 2],
        ends: [End<B>; 2],
        start: Instant,
        stop: Option<Instant>,
    ) -> u32 {
        let index = self.connections.len();
        let mut connection = Connection::new(flow, route, window);
        connection.started = start;
        self.fabric.flow_of.push(flow);
        self.connections.push(connection);
        for (end, element) in ends.into_iter().zip(elements) {
            let mut slot = AgentSlot::vacant(element);
            slot.end = end;
            self.agents.push(slot);
        }
        let sender = &mut self.agents[index * 2];
        sender.start = start;
        sender.stop = stop.unwrap_or(Instant::NEVER);
        sender.armed = start;
        self.fabric
            .timers
            .push(Entry::new(start, Source::new(Class::AgentTimer, index * 2)));
        u32::try_from(index).expect("connections are counted in 32 bits")
    }

    fn add_route(&mut self, stops: &[Stop], folded: &[Option<u32>], routes: &mut Routes) -> u32 {
        let key = stops
            .iter()
            .map(|stop| match stop {
                Stop::Link(link) => (0, link.0),
                Stop::Middlebox(middlebox) => (1, middlebox.0),
            })
            .collect();
        if let Some(&start) = routes.get(&key) {
            return start;
        }
        let start = u32::try_from(self.fabric.routes.len()).expect("routes are counted in 32 bits");
        self.fabric
            .routes
            .extend(stops.iter().map(|stop| match stop {
                Stop::Link(link) if folded[link.0 as usize].is_some() => Target::Folded(link.0),
                Stop::Link(link) => Target::Link(link.0),
                Stop::Middlebox(middlebox) => Target::Middlebox(middlebox.0),
            }));
        self.fabric.routes.push(Target::End);
        routes.insert(key, start);
        start
    }
}

/// What feeds a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Feed {
    /// Nothing yet.
    None,
    /// One plain link that takes time.
    Plain(u32),
    /// An endpoint, a middlebox, a served link, or several things.
    Other,
}

/// The links that can be computed ahead, and what feeds each of them: plain, and fed by one plain
/// link alone. Both must take
/// time: what a folded link passes on must come later than what it is computed from, or the
/// order of events at one instant could depend on the folding.
fn folded_links<B: Body>(
    links: &[LinkSpec],
    plain: &[Option<Limit>],
    flows: &[FlowSpec<B>],
    middleboxes: &[MiddleboxSpec<B>],
) -> Vec<Option<u32>> {
    let takes_time = |index: u32| {
        let spec = &links[index as usize];
        spec.rate.is_some() || !spec.delay.is_zero()
    };
    let mut feeds = vec![Feed::None; links.len()];
    for port in middleboxes.iter().flat_map(|(_, ports)| ports) {
        feeds[port.0 as usize] = Feed::Other;
    }
    for stops in flows
        .iter()
        .flat_map(|flow| [&flow.route, &flow.return_route])
    {
        let mut previous = Feed::Other;
        for stop in stops {
            let Stop::Link(LinkId(link)) = *stop else {
                previous = Feed::Other;
                continue;
            };
            let feed = &mut feeds[link as usize];
            *feed = if *feed == Feed::None || *feed == previous {
                previous
            } else {
                Feed::Other
            };
            let foldable = plain[link as usize].is_some() && takes_time(link);
            previous = if foldable {
                Feed::Plain(link)
            } else {
                Feed::Other
            };
        }
    }
    (0..links.len())
        .map(|index| {
            let here = u32::try_from(index).expect("links are counted in 32 bits");
            match feeds[index] {
                Feed::Plain(feeder) if plain[index].is_some() && takes_time(here) => Some(feeder),
                _ => None,
            }
        })
        .collect()
}

/// What the packets of links that share a ring have in common, so that they mostly arrive in the order
/// in which they left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RingKey {
    /// One link feeds them all.
    FedBy(u32),
    /// Endpoints or middleboxes feed them, and the way takes equally long: rate in bits per second, delay.
    FromEndpoints(Option<u64>, Duration),
}

/// The rings where what each link passes on waits: the one that it shares, or its own if it shares none,
/// and its own. Shared ones come first, so that at one instant what is in them does. And how many there are.
fn shared_rings<B: Body>(
    links: &[LinkSpec],
    flows: &[FlowSpec<B>],
    middleboxes: &[MiddleboxSpec<B>],
) -> (Vec<(u32, u32)>, usize) {
    let number = |index: usize| u32::try_from(index).expect("links are counted in 32 bits");
    let mut feeds = vec![Vec::<Option<u32>>::new(); links.len()];
    let mut apart = vec![false; links.len()];
    for port in middleboxes.iter().flat_map(|(_, ports)| ports) {
        apart[port.0 as usize] = true;
    }
    for stops in flows
        .iter()
        .flat_map(|flow| [&flow.route, &flow.return_route])
    {
        let mut previous = None;
        for stop in stops {
            match *stop {
                Stop::Link(LinkId(link)) => {
                    let feeds = &mut feeds[link as usize];
                    if !feeds.contains(&previous) && feeds.len() < 2 {
                        feeds.push(previous);
                    }
                    previous = Some(link);
                }
                Stop::Middlebox(_) => previous = None,
            }
        }
    }
    let key = |index: usize| match *feeds[index] {
        _ if apart[index] => None,
        [Some(feeder)] => Some(RingKey::FedBy(feeder)),
        [None] => {
            let spec = &links[index];
            Some(RingKey::FromEndpoints(
                spec.rate.map(Rate::bits_per_s),
                spec.delay,
            ))
        }
        _ => None,
    };
    let mut members = BTreeMap::<RingKey, Vec<usize>>::new();
    for index in 0..links.len() {
        if let Some(key) = key(index) {
            members.entry(key).or_default().push(index);
        }
    }
    let shared: Vec<_> = members
        .into_values()
        .filter(|members| members.len() > 1)
        .collect();
    let own = |index: usize| number(shared.len() + index);
    let mut rings: Vec<_> = (0..links.len())
        .map(|index| (own(index), own(index)))
        .collect();
    for (ring, members) in shared.iter().enumerate() {
        for &index in members {
            rings[index].0 = number(ring);
        }
    }
    (rings, shared.len() + links.len())
}

fn link_slot(
    spec: LinkSpec,
    plain: Option<Limit>,
    seed: u64,
    window: Window,
    (ring, own_ring): (u32, u32),
    next_element: &mut impl FnMut() -> ElementId,
    names: &mut Vec<String>,
) -> LinkSlot {
    let element = next_element();
    names.push(spec.name.clone());
    let mut kinds = BTreeMap::<String, usize>::new();
    let impairments: Vec<Impaired> = spec
        .impairments
        .iter()
        .map(|config| {
            let kind = config.name().to_owned();
            let count = kinds.entry(kind.clone()).or_default();
            let name = format!("{}.impair.{kind}.{count}", spec.name);
            *count += 1;
            let impaired = Impaired::new(next_element(), config.build(), Stream::new(seed, &name));
            names.push(name);
            impaired
        })
        .collect();
    let kind = if let Some(limit) = plain {
        LinkKind::Plain(PlainLink::new(spec.rate, spec.delay, limit))
    } else {
        let link = ServedLink::new(Parts {
            queue: Queue::new(spec.queue.build(), spec.reorder),
            service: spec
                .service
                .map_or(AnyService::Fixed(Fixed::new(spec.rate)), AnyService::Boxed),
            delay: spec.delay,
            impairments,
            up: spec.up,
            may_change: spec.may_change,
            stream: Stream::new(seed, &spec.name),
            window,
        });
        LinkKind::Served(Box::new(ServedSlot {
            completion_armed: Instant::NEVER,
            unordered: link.reorders().then(BinaryHeap::new),
            armed: Instant::NEVER,
            link,
        }))
    };
    LinkSlot {
        ring: match &kind {
            // What may overtake waits in a heap of its own.
            LinkKind::Served(slot) if slot.unordered.is_some() => own_ring,
            _ => ring,
        },
        own_ring,
        kind,
        element,
    }
}
