//! The routers on the paths of packets: which router receives a packet with a small hop limit, or a
//! packet addressed to a router.
//!
//! Each router on a path of a host has a hidden flow from the host, numbered after the flows of the
//! scenario. A packet that ends at the router takes it, and so does the router's answer, so that
//! both pass the queues of the path. Only programs send such packets: without programs there are no
//! hidden flows.

use std::{
    collections::{BTreeSet, HashMap},
    net::IpAddr,
    sync::Arc,
};

use anabranch_core::{
    packet::{Direction, FlowId},
    units::{Duration, Instant},
};
use anabranch_fec as fec;
use anabranch_scenario::{Protocol, Resolved, ResolvedFlow, Step};

use crate::plan::{devices, settings::has_interface};

/// A flow, and the direction of a packet along it.
type Place = (FlowId, Direction);

/// A path from a host to a router.
#[derive(Debug, Clone, PartialEq)]
pub struct Hop {
    /// The number of the host's device.
    pub device: usize,
    pub host: usize,
    /// The router's node.
    pub router: usize,
    there: Vec<Step>,
    back: Vec<Step>,
}

impl Hop {
    /// The routers that report packets from the host to this router that are too big for a link.
    pub fn answering(&self, resolved: &Resolved) -> Answering {
        Answering::on(resolved, self.host, &self.there)
    }
}

/// The source addresses of reports about packets that are too big for a link of their path
/// ([`anabranch_path::host::Refused`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answering {
    /// The node that sends.
    host: usize,
    /// The first router on the path, if there is one.
    first: Option<usize>,
    /// Whether the host is an interface: the addresses beyond it belong to other hosts, and routers
    /// have none among them.
    is_interface: bool,
}

impl Answering {
    /// For packets that this end of a flow sends.
    pub fn of(resolved: &Resolved, flow: &ResolvedFlow, side: usize) -> Self {
        let there = [&flow.route, &flow.return_route][side];
        Self::on(resolved, flow.ends[side], there)
    }

    fn on(resolved: &Resolved, host: usize, there: &[Step]) -> Self {
        let passed = nodes(resolved, host, there);
        let (_end, routers) = passed.split_last().unwrap_or((&host, &[]));
        Self {
            host,
            first: routers.first().copied(),
            is_interface: resolved.attached[host].interface.is_some(),
        }
    }

    /// The addresses of the router before the link, one of each IP version. A kernel discards
    /// packets with its own source address, so the next router reports about the host's own link.
    /// `None` if only the packet's destination has an address.
    pub fn about(&self, router: u32) -> Option<[IpAddr; 2]> {
        let router = usize::try_from(router)
            .ok()
            .filter(|router| *router != self.host);
        let router = router.or(self.first).filter(|_| !self.is_interface)?;
        Some([false, true].map(|is_v6| devices::address(router, is_v6)))
    }
}

/// The routers on the paths of a scenario.
#[derive(Debug, Clone, Default)]
pub struct Hops {
    /// By hidden flow.
    all: Vec<Hop>,
    /// The number of the first hidden flow.
    first: u32,
    /// By flow of either kind and direction: the hidden flows to the routers on the path, in order.
    ways: HashMap<Place, Vec<FlowId>>,
    /// By device and router: the first hidden flow between them.
    to: HashMap<(usize, usize), FlowId>,
}

impl Hops {
    /// The routers on the paths of a scenario.
    pub fn of(resolved: &Resolved) -> Self {
        let mut hops = Self {
            first: small(resolved.flows.len()),
            ..Self::default()
        };
        if !resolved.attached.iter().any(|host| host.exec.is_some()) {
            return hops;
        }
        for (flow, id) in resolved.flows.iter().zip(0..) {
            if has_interface(flow, resolved) {
                continue;
            }
            let sides = [
                (&flow.route, &flow.return_route),
                (&flow.return_route, &flow.route),
            ];
            for ((there, back), direction) in sides.into_iter().zip(Direction::BOTH) {
                let side = direction as usize;
                let ends = [flow.ends[side], flow.ends[1 - side]];
                let device = devices::ends(resolved, flow)[side];
                let way = hops.add(resolved, (device, ends), [there, back]);
                hops.ways.insert((FlowId(id), direction), way);
            }
        }
        hops
    }

    /// The hidden flows to the routers on a path. Adds missing ones.
    fn add(
        &mut self,
        resolved: &Resolved,
        (device, [host, peer]): (usize, [usize; 2]),
        [there, back]: [&[Step]; 2],
    ) -> Vec<FlowId> {
        let coming = nodes(resolved, peer, back);
        let mut way = Vec::new();
        let passed = nodes(resolved, host, there);
        for (router, steps) in passed.iter().zip(1..).take(there.len().saturating_sub(1)) {
            let there = &there[..steps];
            let back = match coming.iter().position(|node| node == router) {
                Some(place) => back[place + 1..].to_vec(),
                None => there.iter().rev().map(|step| step.back()).collect(),
            };
            let hop = Hop {
                device,
                host,
                router: *router,
                there: there.to_vec(),
                back,
            };
            let place = self
                .all
                .iter()
                .position(|other| *other == hop)
                .unwrap_or_else(|| {
                    self.all.push(hop);
                    self.all.len() - 1
                });
            let flow = FlowId(self.first + small(place));
            self.ways
                .entry((flow, Direction::Forward))
                .or_insert_with(|| way.clone());
            self.to.entry((device, *router)).or_insert(flow);
            way.push(flow);
        }
        way
    }

    /// The paths of all hidden flows, in the order of the flows.
    pub fn all(&self) -> &[Hop] {
        &self.all
    }

    /// The scenario with the hidden flows after its flows, for the network.
    pub fn added_to(&self, resolved: &Resolved) -> Resolved {
        let mut with = resolved.clone();
        let Some(any) = resolved.flows.first() else {
            return with;
        };
        let hidden = self
            .all
            .iter()
            .enumerate()
            .map(|(number, hop)| ResolvedFlow {
                name: name(number),
                table: String::new(),
                copy: 0,
                ends: [hop.host, hop.router],
                start: Instant::START,
                stop: None,
                protocol: Protocol::Udp,
                fec: fec::Config::Off,
                route: hop.there.clone(),
                return_route: hop.back.clone(),
                replayed: None,
                ..any.clone()
            });
        with.flows.extend(hidden);
        with
    }

    /// The hidden flow to the router where a packet with this hop limit ends; `None` if the packet
    /// reaches its destination.
    pub fn expiring(&self, place: Place, hop_limit: u8) -> Option<Place> {
        let way = self.ways.get(&place)?;
        let router = usize::from(hop_limit.max(1)) - 1;
        way.get(router).map(|flow| (*flow, Direction::Forward))
    }

    /// The number of routers that decrement a packet's hop limit.
    pub fn passed(&self, place: Place) -> u8 {
        let (flow, direction) = place;
        let is_answer = flow.0 >= self.first && direction == Direction::Reverse;
        let way = if is_answer {
            (flow, Direction::Forward)
        } else {
            place
        };
        self.ways
            .get(&way)
            .map_or(0, |way| u8::try_from(way.len()).unwrap_or(u8::MAX))
    }

    /// The hidden flow of packets from a device to a router itself.
    pub fn to(&self, device: usize, router: usize) -> Option<Place> {
        self.to
            .get(&(device, router))
            .map(|flow| (*flow, Direction::Forward))
    }
}

/// The name of a hidden flow, which no flow of a scenario can have.
pub fn name(number: usize) -> String {
    format!(".routers/{number}")
}

/// The nodes that are routers on a path of a host's packets.
pub fn routers(resolved: &Resolved) -> BTreeSet<usize> {
    let flows = resolved
        .flows
        .iter()
        .filter(|flow| !has_interface(flow, resolved));
    let passed = flows.flat_map(|flow| {
        let [there, back] = [(0, &flow.route), (1, &flow.return_route)].map(|(side, steps)| {
            let mut passed = nodes(resolved, flow.ends[side], steps);
            passed.pop();
            passed
        });
        there.into_iter().chain(back)
    });
    passed.collect()
}

/// The nodes to which steps from a node lead.
fn nodes(resolved: &Resolved, from: usize, steps: &[Step]) -> Vec<usize> {
    let mut node = from;
    let lead = steps.iter().map(|step| {
        let (ends, direction) = match *step {
            Step::Link(hop) => (resolved.links[hop.link].ends, hop.direction),
            Step::Gateway { gateway, direction } => (resolved.gateways[gateway].ends, direction),
        };
        node = ends[usize::from(direction == Direction::Forward)];
        node
    });
    lead.collect()
}

fn small(number: usize) -> u32 {
    u32::try_from(number).expect("flows are counted in 32 bits")
}

/// Rate limit of the errors from a router to one host: a burst of six, then one per second. These
/// are the values that Linux documents for `icmp_ratelimit` (ip-sysctl); RFC 1812 §4.3.2.8 requires
/// a limit.
#[derive(Debug, Clone, Copy)]
pub struct RateLimit {
    saved: Duration,
    last: Instant,
}

impl RateLimit {
    const EVERY: Duration = Duration::from_secs(1);
    const BURST: u64 = 6;

    pub const fn new() -> Self {
        Self {
            saved: Duration::from_secs(Self::BURST),
            last: Instant::START,
        }
    }

    /// Whether an error may be sent now. If so, it counts.
    pub fn allows(&mut self, now: Instant) -> bool {
        let most = Duration::from_secs(Self::BURST);
        // No more than a burst is saved.
        let since = now.saturating_since(self.last).min(most);
        self.saved = (self.saved + since).min(most);
        self.last = now;
        let is_allowed = self.saved >= Self::EVERY;
        if is_allowed {
            self.saved = self.saved.saturating_sub(Self::EVERY);
        }
        is_allowed
    }
}

/// A limit that all paths between a router and a host share.
pub type Shared = Arc<std::sync::Mutex<RateLimit>>;

#[cfg(test)]
mod tests {
    use anabranch_scenario::{Extensions, Scenario};

    use super::*;

    const CHAIN: &str = r#"
        duration = "1 s"
        [link.one]
        between = ["A", "R"]
        delay = "1 ms"
        [link.two]
        between = ["R", "S"]
        delay = "1 ms"
        [link.three]
        between = ["S", "B"]
        delay = "1 ms"
        [link.back]
        between = ["S", "A"]
        delay = "1 ms"
        [flow.main]
        from = "A"
        to = "B"
        route = ["one", "two", "three"]
        return_route = ["three", "back"]
    "#;

    fn resolved(text: &str) -> Resolved {
        Scenario::parse(text, "hops.toml", &Extensions::default().live(true))
            .and_then(|scenario| scenario.resolve(None))
            .expect("correct")
    }

    #[test]
    fn packets_end_at_the_router_their_hop_limit_reaches() {
        let resolved = resolved(&format!("{CHAIN}\n[host.A]\nexec = [\"true\"]"));
        let hops = Hops::of(&resolved);
        let names = |hop: &Hop| {
            (
                resolved.nodes[hop.host].as_str(),
                resolved.nodes[hop.router].as_str(),
            )
        };
        let all: Vec<_> = hops.all().iter().map(names).collect();
        assert_eq!(all, [("A", "R"), ("A", "S"), ("B", "S")]);
        let (forward, reverse) = (Direction::Forward, Direction::Reverse);
        let main = (FlowId(0), forward);
        let ends: Vec<_> = [1, 2, 3, 64]
            .map(|limit| hops.expiring(main, limit))
            .to_vec();
        assert_eq!(
            ends,
            [
                Some((FlowId(1), forward)),
                Some((FlowId(2), forward)),
                None,
                None
            ]
        );
        // A packet to the second router passes the first.
        assert_eq!(
            hops.expiring((FlowId(2), forward), 1),
            Some((FlowId(1), forward))
        );
        assert_eq!(hops.expiring((FlowId(2), forward), 2), None);
        assert_eq!(
            [main, (FlowId(0), reverse), (FlowId(2), reverse)].map(|place| hops.passed(place)),
            [2, 1, 1]
        );
        // The answer of S returns over the link that the flow's packets take.
        let with = hops.added_to(&resolved);
        let back = |flow: usize| with.flows[flow].return_route.len();
        assert_eq!((back(1), back(2)), (1, 1));
        assert_eq!(routers(&resolved).len(), 2);
    }

    #[test]
    fn without_programs_there_are_no_hidden_flows() {
        let resolved = resolved(CHAIN);
        let hops = Hops::of(&resolved);
        assert!(hops.all().is_empty());
        assert_eq!(hops.added_to(&resolved).flows.len(), 1);
        assert_eq!(hops.expiring((FlowId(0), Direction::Forward), 1), None);
    }

    #[test]
    fn errors_are_limited_to_six_then_one_per_second() {
        let mut limit = RateLimit::new();
        let count = |limit: &mut RateLimit, ms: u64| {
            (0..10)
                .filter(|_| limit.allows(Instant::from_millis(ms)))
                .count()
        };
        assert_eq!(count(&mut limit, 100), 6);
        assert_eq!(count(&mut limit, 1050), 0);
        assert_eq!(count(&mut limit, 1150), 1);
        assert_eq!(count(&mut limit, 60_000), 6);
    }

    #[test]
    fn the_router_before_a_link_reports_packets_too_big() {
        let resolved = resolved(CHAIN);
        let node = |name: &str| {
            let node = resolved.nodes.iter().position(|node| node == name);
            node.expect("a node of the chain")
        };
        let answering = |side| Answering::of(&resolved, &resolved.flows[0], side);
        let of = |name: &str| Some([false, true].map(|is_v6| devices::address(node(name), is_v6)));
        let about = |side, router: &str| answering(side).about(small(node(router)));
        assert_eq!(about(0, "R"), of("R"));
        assert_eq!(about(0, "S"), of("S"));
        assert_eq!(about(1, "S"), of("S"));
        // The next router reports about the host's own link.
        assert_eq!(about(0, "A"), of("R"));
        assert_eq!(about(1, "B"), of("S"));
    }

    #[test]
    fn without_a_router_only_the_destination_answers() {
        let text = r#"
            duration = "1 s"
            [link.only]
            between = ["A", "B"]
            delay = "1 ms"
            [flow.main]
            from = "A"
            to = "B"
        "#;
        let resolved = resolved(text);
        let answering = Answering::of(&resolved, &resolved.flows[0], 0);
        assert_eq!(answering.about(small(resolved.flows[0].ends[0])), None);
    }
}
