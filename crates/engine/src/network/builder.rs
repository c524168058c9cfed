//! Building a network: the parts are collected first, then the links that become arithmetic are
//! chosen.

use std::{collections::VecDeque, num::NonZeroU64};

use anabranch_core::{
    body::Body,
    interrupt::Interrupt,
    packet::{FlowId, Pool},
    trace::ElementId,
    units::{Duration, Instant},
};
use anabranch_path::{
    link::Window,
    middlebox::{Middlebox, Output},
};

mod feed;
mod flow;
mod link;
mod spec;

pub use self::spec::{FlowSpec, GroupSpec, LinkSpec, MembersSpec, Stop, Traffic};
use self::{
    feed::{ahead_flows, folded_links, shared_rings},
    flow::Placing,
    link::LinkPlacing,
    spec::MiddleboxSpec,
};

use super::{
    Change, GroupId, HostId, LinkId, MiddleboxId, MiddleboxSlot, Network,
    fabric::{Fabric, LinkSlot, Propagating, Target},
    groups::GroupParts,
    mtu::Mtus,
    processing::Processing,
};
use crate::{event_queue::EventQueue, record::Probe};

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
    tally: bool,
    links: Vec<LinkSpec>,
    middleboxes: Vec<MiddleboxSpec<B>>,
    processing: Vec<(String, Duration)>,
    flows: Vec<FlowSpec<B>>,
    changes: Vec<(Instant, Change)>,
    groups: Vec<([LinkId; 2], GroupParts)>,
    opposites: Vec<[LinkId; 2]>,
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
            tally: false,
            links: Vec::new(),
            middleboxes: Vec::new(),
            processing: Vec::new(),
            flows: Vec::new(),
            changes: Vec::new(),
            groups: Vec::new(),
            opposites: Vec::new(),
        }
    }
    /// Computes plain links by arithmetic (default: yes). Results do not depend on it.
    pub fn fast_path(&mut self, on: bool) -> &mut Self {
        self.fast_path = on;
        self
    }
    /// Computes a plain link fed by another ahead of time (default: yes). Results do not depend on
    /// it, but the state of such a link in mid-run includes packets that have yet to arrive.
    pub fn fold(&mut self, on: bool) -> &mut Self {
        self.fold = on;
        self
    }
    /// Keeps a digest of all observations (default: yes).
    pub fn digest(&mut self, on: bool) -> &mut Self {
        self.digest = on;
        self
    }
    /// Keeps a row per packet (default: no).
    pub fn packet_log(&mut self, on: bool) -> &mut Self {
        self.packet_log = on;
        self
    }
    /// Counts outcomes, for [`Network::census`] (default: no).
    pub fn tally(&mut self, on: bool) -> &mut Self {
        self.tally = on;
        self
    }
    /// The window in which counts are taken.
    #[must_use]
    pub const fn window(&self) -> Window {
        self.window
    }
    /// Adds one direction of a link.
    ///
    /// # Panics
    /// If there are 2^32 of them.
    pub fn link(&mut self, spec: LinkSpec) -> LinkId {
        self.links.push(spec);
        LinkId(u32::try_from(self.links.len() - 1).expect("links are counted in 32 bits"))
    }
    /// Declares two links to be the two directions of one link. A router's report about a packet on
    /// one travels over the other.
    pub fn opposite(&mut self, links: [LinkId; 2]) -> &mut Self {
        self.opposites.push(links);
        self
    }
    /// Adds a link group.
    ///
    /// # Panics
    /// If there are 2^32 of them, or if a member's rate is unlimited.
    pub fn group(&mut self, spec: GroupSpec) -> (GroupId, [LinkId; 2]) {
        let number = u32::try_from(self.groups.len()).expect("groups are counted in 32 bits");
        let (links, parts) = GroupParts::of(spec, self.window);
        let ids = links.map(|link| self.link(link));
        self.groups.push((ids, parts));
        (GroupId(number), ids)
    }
    /// Adds a middlebox whose ports lead into `ports`. Its element is `middlebox.NUMBER`.
    ///
    /// # Panics
    /// If there are 2^32 of them.
    pub fn middlebox(
        &mut self,
        middlebox: Box<dyn Middlebox<B>>,
        ports: Vec<LinkId>,
    ) -> MiddleboxId {
        let name = format!("middlebox.{}", self.middleboxes.len());
        self.named_middlebox(name, middlebox, ports)
    }
    /// Adds a middlebox whose element has this name.
    ///
    /// # Panics
    /// If there are 2^32 of them.
    pub fn named_middlebox(
        &mut self,
        name: impl Into<String>,
        middlebox: Box<dyn Middlebox<B>>,
        ports: Vec<LinkId>,
    ) -> MiddleboxId {
        self.middleboxes.push(MiddleboxSpec {
            name: name.into(),
            middlebox,
            ports,
            onward: None,
            wakes: None,
            begins: false,
            overhead: 0,
        });
        MiddleboxId(
            u32::try_from(self.middleboxes.len() - 1).expect("middleboxes are counted in 32 bits"),
        )
    }
    /// Declares a pair of gateways, by direction: the entrance and the exit of the packets. Packets
    /// that an entrance originates end at its exit. The exit of one direction and the entrance of
    /// the other are in one box, so an arrival at one can cause work for the other.
    pub fn pair(&mut self, ends: [[MiddleboxId; 2]; 2]) {
        for ([entrance, exit], [other_entrance, _]) in ends.into_iter().zip([ends[1], ends[0]]) {
            self.middleboxes[entrance.0 as usize].onward = Some(exit);
            self.middleboxes[exit.0 as usize].wakes = Some(other_entrance);
        }
    }
    /// Declares that a middlebox adds `bytes` to each packet: routers before its ports report an
    /// MTU smaller by that amount.
    pub fn overhead(&mut self, middlebox: MiddleboxId, bytes: u32) {
        self.middleboxes[middlebox.0 as usize].overhead = bytes;
    }
    /// Declares the two ends of a tunnel: packets that one originates end at the other. Both begin
    /// at once.
    pub fn tunnel(&mut self, ends: [MiddleboxId; 2]) {
        for (end, other) in ends.into_iter().zip([ends[1], ends[0]]) {
            let spec = &mut self.middleboxes[end.0 as usize];
            spec.onward = Some(other);
            spec.begins = true;
        }
    }
    /// Adds a host that takes a random time below `longest` to process each packet that it sends.
    /// Its name keys its random stream: `host.NAME`.
    ///
    /// # Panics
    /// If there are 2^32 of them.
    pub fn processing(&mut self, name: impl Into<String>, longest: Duration) -> HostId {
        self.processing.push((name.into(), longest));
        HostId(u32::try_from(self.processing.len() - 1).expect("hosts are counted in 32 bits"))
    }
    /// Adds a flow.
    ///
    /// # Panics
    /// If there are 2^32 of them.
    pub fn flow(&mut self, spec: FlowSpec<B>) -> FlowId {
        self.flows.push(spec);
        FlowId(u32::try_from(self.flows.len() - 1).expect("flows are counted in 32 bits"))
    }
    /// Adds a change at `at`, and permits the link that it names to change.
    pub fn change(&mut self, at: Instant, change: Change) -> &mut Self {
        if let Some(link) = change.link() {
            self.links[link.0 as usize].may_change = true;
        }
        self.changes.push((at, change));
        self
    }

    /// Builds the network, before its first event.
    ///
    /// # Panics
    /// If there are 2^32 elements.
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
        let ahead = ahead_flows(&self.links, &plain, &self.flows, &self.middleboxes);
        let (ring_of, rings) = shared_rings(&self.links, &self.flows, &self.middleboxes, &ahead);
        let processing = Processing::of_hosts(&self.processing, self.seed, rings);
        let mut elements = Elements(Vec::with_capacity(
            self.links.len() + self.middleboxes.len(),
        ));
        let rates = self
            .links
            .iter()
            .map(|spec| NonZeroU64::new(spec.total_rate()?.bits_per_s()))
            .collect();
        let mtus = self
            .links
            .iter()
            .map(|spec| Some((spec.link.mtu?, spec.router)));
        let mtus = mtus.collect();
        let opposite = opposites(self.links.len(), &self.opposites);
        // `collect` would keep the memory of the larger specifications.
        let mut links = Vec::with_capacity(self.links.len());
        let flow_names: Vec<String> = self.flows.iter().map(|flow| flow.name.clone()).collect();
        let hosts: Vec<[u32; 2]> = self.flows.iter().map(|flow| flow.ends).collect();
        for ((spec, limit), ring) in self.links.into_iter().zip(plain).zip(ring_of) {
            let placing = LinkPlacing {
                plain: limit,
                rings: ring,
                seed: self.seed,
                window,
                records_waits: self.packet_log,
                flow_names: &flow_names,
                hosts: &hosts,
            };
            links.push(placing.slot(spec, &mut elements));
        }
        let onward: Vec<Option<MiddleboxId>> =
            self.middleboxes.iter().map(|spec| spec.onward).collect();
        let begin: Vec<usize> = (0..self.middleboxes.len())
            .filter(|&index| self.middleboxes[index].begins)
            .collect();
        let specs = self.middleboxes.into_iter();
        let middleboxes = specs.map(|spec| elements.middlebox(spec)).collect();
        let mut probe = Probe::new(window.end(), self.digest, self.packet_log);
        if self.tally {
            probe.keep_tally();
        }
        let mut network = Network {
            fabric: fabric(window, links, rings, processing, probe),
            rates,
            middleboxes,
            agents: Vec::new(),
            connections: Vec::new(),
            flows: Vec::new(),
            spawners: Vec::new(),
            changes: VecDeque::new(),
            mtus: Mtus::new(mtus, opposite),
            rounds: Vec::new(),
            delivered_packets: 0,
            output: Output::default(),
            element_names: Vec::new(),
            interrupt: Interrupt::default(),
        };
        network.fabric.hot_permitted = self.fast_path;
        for (at, change) in self.changes {
            network.schedule(at, change);
        }
        for (links, parts) in self.groups {
            network.fabric.add_group(links, parts);
        }
        network.agents.reserve_exact(2 * self.flows.len());
        network.connections.reserve_exact(self.flows.len());
        network.flows.reserve_exact(self.flows.len());
        network.fabric.ends.reserve_exact(2 * self.flows.len());
        network.fabric.identities.reserve_exact(self.flows.len());
        let mut placing = Placing::new(self.seed, window, folded);
        for (spec, ahead) in self.flows.into_iter().zip(ahead) {
            let ends = [0, 1].map(|end| elements.end(2 * network.flows.len() + end));
            network.add_flow(spec, ends, &mut placing, ahead);
        }
        network.fabric.routes.shrink_to_fit();
        for (slot, exit) in network.middleboxes.iter_mut().zip(onward) {
            slot.onward = exit.map(|exit| network.fabric.add_end(exit.0));
        }
        for index in begin {
            network.arm_middlebox(index);
        }
        network.element_names = elements.0;
        network
    }
}

/// The fabric before its first event.
fn fabric<B: Body>(
    window: Window,
    links: Vec<LinkSlot>,
    rings: usize,
    processing: Vec<Processing>,
    probe: Probe,
) -> Fabric<B> {
    Fabric {
        now: Instant::START,
        window,
        arrivals: EventQueue::default(),
        timers: EventQueue::default(),
        pool: Pool::default(),
        links,
        rings: std::iter::repeat_with(Propagating::new)
            .take(rings + processing.len())
            .collect(),
        processing,
        routes: vec![Target::Passed],
        probe,
        events: 0,
        identities: Vec::new(),
        connections_begun: 0,
        reached: VecDeque::new(),
        outcomes: Vec::new(),
        groups: Vec::new(),
        impairing: Vec::new(),
        made: 0,
        past_the_end: 0,
        hot_permitted: false,
        ahead_until: Instant::START,
        ends: Vec::new(),
    }
}

/// Returns the other direction of each of `links` links, if it has one.
fn opposites(links: usize, pairs: &[[LinkId; 2]]) -> Vec<Option<u32>> {
    let mut opposite = vec![None; links];
    for &[forward, reverse] in pairs {
        opposite[forward.0 as usize] = Some(reverse.0);
        opposite[reverse.0 as usize] = Some(forward.0);
    }
    opposite
}

/// The names of the elements, which are numbered in the order of addition, without ends of flows.
#[derive(Debug)]
struct Elements(Vec<Box<str>>);

impl Elements {
    /// An end of a flow; all other elements have been added.
    fn end(&self, index: usize) -> ElementId {
        let number = u32::try_from(self.0.len() + index);
        ElementId(number.expect("elements are counted in 32 bits"))
    }

    fn add(&mut self, name: String) -> ElementId {
        self.0.push(name.into_boxed_str());
        ElementId(u32::try_from(self.0.len() - 1).expect("elements are counted in 32 bits"))
    }

    /// The slot of a middlebox. The destination of the packets that it originates is set once there
    /// are routes.
    fn middlebox<B: Body>(&mut self, spec: MiddleboxSpec<B>) -> MiddleboxSlot<B> {
        MiddleboxSlot {
            middlebox: spec.middlebox,
            element: self.add(spec.name),
            ports: spec.ports.into_iter().map(|link| link.0).collect(),
            onward: None,
            wakes: spec.wakes.map(|other| other.0 as usize),
            armed: Instant::NEVER,
            overhead: spec.overhead,
        }
    }
}
