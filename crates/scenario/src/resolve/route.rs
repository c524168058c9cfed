//! Routes of flows.

use std::collections::{BTreeMap, VecDeque};

use anabranch_core::packet::Direction;

use super::{Hop, ResolvedGateway, Resolver, Step, wire::Wire};
use crate::{
    error::{Error, choice},
    format::{File, Flow},
    path::no_such,
};

/// A connection of two nodes, by index: a link that is not a route of a gateway, or a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    Link(usize),
    Gateway(usize),
}

/// The nodes, and the links and gateways at each.
pub(super) struct Graph {
    pub(super) nodes: Vec<String>,
    /// By link: its two ends.
    pub(super) ends: Vec<[usize; 2]>,
    index: BTreeMap<String, usize>,
    /// By node: its connections in the order of the file; a gateway has the position of its first
    /// route.
    at: Vec<Vec<Edge>>,
    links: BTreeMap<String, usize>,
    link_names: Vec<String>,
    /// By gateway: its two ends.
    gateway_ends: Vec<[usize; 2]>,
    gateways: BTreeMap<String, usize>,
    gateway_names: Vec<String>,
    /// By link: the gateway whose route it is.
    gateway_of: Vec<Option<usize>>,
}

/// The two routes of a flow.
#[derive(Debug, Clone)]
pub(super) struct Routes {
    pub(super) there: Vec<Step>,
    pub(super) back: Vec<Step>,
}

impl Graph {
    pub(super) fn new(resolver: &Resolver<'_>, wires: &[Wire<'_>]) -> Result<Self, Error> {
        let mut graph = Self {
            nodes: Vec::new(),
            ends: Vec::new(),
            index: BTreeMap::new(),
            at: Vec::new(),
            links: BTreeMap::new(),
            link_names: Vec::new(),
            gateway_ends: Vec::new(),
            gateways: BTreeMap::new(),
            gateway_names: Vec::new(),
            gateway_of: vec![None; wires.len()],
        };
        for (link, wire) in wires.iter().enumerate() {
            let (section, name) = (wire.section, &wire.name);
            let [a, b] = &wire.link.between;
            if a == b {
                return Err(resolver.error(
                    &[section, name, "between"],
                    format!("the {section} `{name}` joins `{a}` to itself"),
                    vec!["expected two different nodes".to_owned()],
                ));
            }
            let ends = [graph.node(a), graph.node(b)];
            graph.ends.push(ends);
            for end in ends {
                graph.at[end].push(Edge::Link(link));
            }
            graph.links.insert(name.clone(), link);
            graph.link_names.push(name.clone());
        }
        Ok(graph)
    }

    /// Replaces the routes of gateways by the gateways.
    pub(super) fn join(&mut self, gateways: &[ResolvedGateway]) {
        for (number, gateway) in gateways.iter().enumerate() {
            self.gateway_ends.push(gateway.ends);
            self.gateways.insert(gateway.name.clone(), number);
            self.gateway_names.push(gateway.name.clone());
            for route in &gateway.routes {
                self.gateway_of[route.link] = Some(number);
            }
        }
        for edges in &mut self.at {
            let mut joined: Vec<Edge> = Vec::with_capacity(edges.len());
            for edge in &*edges {
                let edge = match *edge {
                    Edge::Link(link) => self.gateway_of[link].map_or(*edge, Edge::Gateway),
                    Edge::Gateway(_) => *edge,
                };
                let is_route = matches!(edge, Edge::Gateway(_));
                if !(is_route && joined.contains(&edge)) {
                    joined.push(edge);
                }
            }
            *edges = joined;
        }
    }

    fn node(&mut self, name: &str) -> usize {
        if let Some(&node) = self.index.get(name) {
            return node;
        }
        let node = self.nodes.len();
        self.nodes.push(name.to_owned());
        self.at.push(Vec::new());
        self.index.insert(name.to_owned(), node);
        node
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    pub(super) fn link(&self, name: &str) -> Option<usize> {
        self.links.get(name).copied()
    }

    /// Returns the hop over `link` from `node` and its target; `None` if `node` is not an end of
    /// the link.
    pub(super) fn hop(&self, node: usize, link: usize) -> Option<(Hop, usize)> {
        let (direction, to) = way(node, self.ends[link])?;
        Some((Hop { link, direction }, to))
    }

    /// Like [`Self::hop`], over a link or a gateway.
    fn step(&self, node: usize, edge: Edge) -> Option<(Step, usize)> {
        match edge {
            Edge::Link(link) => self.hop(node, link).map(|(hop, to)| (Step::Link(hop), to)),
            Edge::Gateway(gateway) => {
                let (direction, to) = way(node, self.gateway_ends[gateway])?;
                Some((Step::Gateway { gateway, direction }, to))
            }
        }
    }

    /// Returns the route with the fewest hops; among several, the one whose links come first in the
    /// file.
    fn shortest(&self, from: usize, to: usize) -> Option<Vec<Step>> {
        // Breadth-first search in the order of the file: the first route found to a node is its
        // best.
        let mut came_by: Vec<Option<(Step, usize)>> = vec![None; self.nodes.len()];
        let mut waiting = VecDeque::from([from]);
        while let Some(node) = waiting.pop_front() {
            if node == to {
                break;
            }
            for &edge in &self.at[node] {
                let Some((step, next)) = self.step(node, edge) else {
                    continue;
                };
                if next != from && came_by[next].is_none() {
                    came_by[next] = Some((step, node));
                    waiting.push_back(next);
                }
            }
        }
        let mut steps = Vec::new();
        let mut node = to;
        while node != from {
            let (step, before) = came_by[node]?;
            steps.push(step);
            node = before;
        }
        steps.reverse();
        Some(steps)
    }

    /// Returns the routes of a flow.
    pub(super) fn routes(
        &self,
        resolver: &Resolver<'_>,
        name: &str,
        flow: &Flow,
    ) -> Result<Routes, Error> {
        let from = self.end(resolver, name, "from", &flow.from)?;
        let to = self.end(resolver, name, "to", &flow.to)?;
        if from == to {
            return Err(resolver.error(
                &["flow", name, "to"],
                format!("the flow `{name}` goes from `{}` to itself", flow.to),
                vec!["expected two different nodes".to_owned()],
            ));
        }
        let there = match &flow.route {
            Some(links) => self.chain(resolver, [name, "route"], links, [from, to])?,
            None => self.shortest(from, to).ok_or_else(|| {
                resolver.error(
                    &["flow", name, "to"],
                    format!("`{}` cannot be reached from `{}`", flow.to, flow.from),
                    vec![format!(
                        "expected a chain of links; from `{}` they lead to {}",
                        flow.from,
                        self.reach(from)
                    )],
                )
            })?,
        };
        let back = match &flow.return_route {
            Some(links) => self.chain(resolver, [name, "return_route"], links, [to, from])?,
            None => there.iter().rev().map(|step| step.back()).collect(),
        };
        Ok(Routes { there, back })
    }

    /// Returns the name of the link or gateway of a step.
    pub(super) fn name_of(&self, step: Step) -> &str {
        match step {
            Step::Link(hop) => &self.link_names[hop.link],
            Step::Gateway { gateway, .. } => &self.gateway_names[gateway],
        }
    }

    /// Returns the names of the links and gateways at a node, in the order of the file.
    pub(super) fn names_at(&self, node: usize) -> Vec<&str> {
        let steps = self.at[node]
            .iter()
            .filter_map(|&edge| self.step(node, edge));
        steps.map(|(step, _)| self.name_of(step)).collect()
    }

    fn end(
        &self,
        resolver: &Resolver<'_>,
        flow: &str,
        key: &str,
        node: &str,
    ) -> Result<usize, Error> {
        self.find(node).ok_or_else(|| {
            resolver.error(
                &["flow", flow, key],
                format!("no link leads to a node `{node}`"),
                choice(node, &self.nodes),
            )
        })
    }

    /// Lists some of the nodes that can be reached from `from`.
    fn reach(&self, from: usize) -> String {
        const SHOWN: usize = 12;
        let mut seen = vec![false; self.nodes.len()];
        seen[from] = true;
        let mut waiting = VecDeque::from([from]);
        let mut names = Vec::new();
        while let Some(node) = waiting.pop_front() {
            for next in self.at[node]
                .iter()
                .filter_map(|&edge| self.step(node, edge))
                .map(|(_, to)| to)
            {
                if !std::mem::replace(&mut seen[next], true) {
                    names.push(format!("`{}`", self.nodes[next]));
                    waiting.push_back(next);
                }
            }
        }
        if names.len() > SHOWN {
            names.truncate(SHOWN);
            names.push("…".to_owned());
        }
        names.join(", ")
    }

    /// Follows a route written in the file.
    fn chain(
        &self,
        resolver: &Resolver<'_>,
        [flow, key]: [&str; 2],
        names: &[String],
        [from, to]: [usize; 2],
    ) -> Result<Vec<Step>, Error> {
        let mut node = from;
        let mut steps = Vec::new();
        for (k, name) in names.iter().enumerate() {
            let place = ["flow", flow, key, &k.to_string()].map(str::to_owned);
            let place = place.each_ref().map(String::as_str);
            let link = self.link(name);
            if let Some(gateway) = link.and_then(|link| self.gateway_of[link]) {
                let gateway = &self.gateway_names[gateway];
                return Err(resolver.error(
                    &place,
                    format!("`{name}` is a route of the gateway `{gateway}` and carries only what that splits"),
                    vec![format!("expected `{gateway}` in its place")],
                ));
            }
            let edge = link
                .map(Edge::Link)
                .or_else(|| self.gateways.get(name).copied().map(Edge::Gateway));
            let Some(edge) = edge else {
                return Err(resolver.fault(&place, no_such("link", name, resolver.root, |_| true)));
            };
            let Some((step, next)) = self.step(node, edge) else {
                let [a, b] = self.ends_of(edge).map(|end| &self.nodes[end]);
                return Err(resolver.error(
                    &place,
                    format!(
                        "the route is at `{}`, where `{name}` neither begins nor ends",
                        self.nodes[node]
                    ),
                    vec![format!("`{name}` is between `{a}` and `{b}`")],
                ));
            };
            steps.push(step);
            node = next;
        }
        if node != to {
            return Err(resolver.error(
                &["flow", flow, key],
                format!(
                    "the route ends at `{}`, not at `{}`",
                    self.nodes[node], self.nodes[to]
                ),
                vec![format!(
                    "expected a chain of links from `{}` to `{}`",
                    self.nodes[from], self.nodes[to]
                )],
            ));
        }
        Ok(steps)
    }

    /// Refuses parallel links between one pair of nodes unless a flow's route, a gateway or a group
    /// decides between them.
    pub(super) fn check_parallel(
        &self,
        resolver: &Resolver<'_>,
        file: &File,
        wires: &[Wire<'_>],
        routes: &[Routes],
    ) -> Result<(), Error> {
        let own_links = (0..self.ends.len()).filter(|&link| self.gateway_of[link].is_none());
        let edges = own_links
            .map(Edge::Link)
            .chain((0..self.gateway_ends.len()).map(Edge::Gateway));
        // By pair of nodes: its connections, and whether a flow's own route chooses one.
        let mut parallel: BTreeMap<[usize; 2], (Vec<Edge>, bool)> = BTreeMap::new();
        for edge in edges {
            parallel.entry(self.pair(edge)).or_default().0.push(edge);
        }
        parallel.retain(|_, (edges, _)| edges.len() > 1);
        if parallel.is_empty() {
            return Ok(());
        }
        for ((_, flow), routes) in file.flow.0.iter().zip(routes) {
            let there = (flow.route.is_some(), &routes.there);
            let back = (
                flow.route.is_some() || flow.return_route.is_some(),
                &routes.back,
            );
            for (by_hand, steps) in [there, back] {
                for step in steps {
                    let edge = match *step {
                        Step::Link(hop) => Edge::Link(hop.link),
                        Step::Gateway { gateway, .. } => Edge::Gateway(gateway),
                    };
                    let Some((edges, explained)) = parallel.get_mut(&self.pair(edge)) else {
                        continue;
                    };
                    if !by_hand {
                        return Err(self.unexplained(resolver, (file, wires), edges));
                    }
                    *explained = true;
                }
            }
        }
        match parallel.values().find(|(_, explained)| !explained) {
            Some((edges, _)) => Err(self.unexplained(resolver, (file, wires), edges)),
            None => Ok(()),
        }
    }

    fn ends_of(&self, edge: Edge) -> [usize; 2] {
        match edge {
            Edge::Link(link) => self.ends[link],
            Edge::Gateway(gateway) => self.gateway_ends[gateway],
        }
    }

    /// Returns the two nodes in ascending order.
    fn pair(&self, edge: Edge) -> [usize; 2] {
        let [a, b] = self.ends_of(edge);
        [a.min(b), a.max(b)]
    }

    fn unexplained(
        &self,
        resolver: &Resolver<'_>,
        (file, wires): (&File, &[Wire<'_>]),
        edges: &[Edge],
    ) -> Error {
        let name = |edge: Edge| match edge {
            Edge::Link(link) => (wires[link].section, &wires[link].name),
            Edge::Gateway(gateway) => ("gateway", &file.gateway.0[gateway].0),
        };
        let [(_, first), (section, second)] = [edges[0], edges[1]].map(name);
        let [a, b] = self.ends_of(edges[1]).map(|end| &self.nodes[end]);
        resolver.error(
            &[section, second, "between"],
            format!("`{first}` and `{second}` both join `{a}` and `{b}`, and the scenario does not assign flows to them"),
            vec![
                "expected a gateway with both in its `routes`, a group instead of them, or a `route` in each flow between them"
                    .to_owned(),
            ],
        )
    }
}

/// Returns the direction from `node` between these ends, and the other end.
fn way(node: usize, [a, b]: [usize; 2]) -> Option<(Direction, usize)> {
    match node {
        n if n == a => Some((Direction::Forward, b)),
        n if n == b => Some((Direction::Reverse, a)),
        _ => None,
    }
}
