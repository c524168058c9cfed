//! Which links a flow takes.

use std::collections::{BTreeMap, VecDeque};

use anabranch_core::packet::Direction;

use super::{Hop, Resolver};
use crate::scenario::{
    error::{Error, choice},
    format::{File, Flow},
    path::no_such,
};

/// The nodes, and the links at each.
pub(super) struct Graph {
    pub(super) nodes: Vec<String>,
    /// By link: its two ends.
    pub(super) ends: Vec<[usize; 2]>,
    index: BTreeMap<String, usize>,
    /// By node: the links there, in the order of the file.
    at: Vec<Vec<usize>>,
    links: BTreeMap<String, usize>,
}

/// The two routes of a flow.
#[derive(Debug, Clone)]
pub(super) struct Routes {
    pub(super) there: Vec<Hop>,
    pub(super) back: Vec<Hop>,
}

impl Graph {
    pub(super) fn new(resolver: &Resolver<'_>, file: &File) -> Result<Self, Error> {
        let mut graph = Self {
            nodes: Vec::new(),
            ends: Vec::new(),
            index: BTreeMap::new(),
            at: Vec::new(),
            links: BTreeMap::new(),
        };
        for (link, (name, table)) in file.link.0.iter().enumerate() {
            let [a, b] = &table.between;
            if a == b {
                return Err(resolver.error(
                    &["link", name, "between"],
                    format!("the link `{name}` joins `{a}` to itself"),
                    vec!["expected two different nodes".to_owned()],
                ));
            }
            let ends = [graph.node(a), graph.node(b)];
            graph.ends.push(ends);
            for end in ends {
                graph.at[end].push(link);
            }
            graph.links.insert(name.clone(), link);
        }
        Ok(graph)
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

    /// The hop over `link` from `node`, and where it leads; `None` if the link is not there.
    fn hop(&self, node: usize, link: usize) -> Option<(Hop, usize)> {
        let [a, b] = self.ends[link];
        let (direction, to) = match node {
            n if n == a => (Direction::Forward, b),
            n if n == b => (Direction::Reverse, a),
            _ => return None,
        };
        Some((Hop { link, direction }, to))
    }

    /// The way with the fewest hops; of several the one that comes first in the file, link by
    /// link.
    fn shortest(&self, from: usize, to: usize) -> Option<Vec<Hop>> {
        // Nodes wait in the order of their ways, so the first way found to a node is its best.
        let mut came_by: Vec<Option<(Hop, usize)>> = vec![None; self.nodes.len()];
        let mut waiting = VecDeque::from([from]);
        while let Some(node) = waiting.pop_front() {
            if node == to {
                break;
            }
            for &link in &self.at[node] {
                let Some((hop, next)) = self.hop(node, link) else {
                    continue;
                };
                if next != from && came_by[next].is_none() {
                    came_by[next] = Some((hop, node));
                    waiting.push_back(next);
                }
            }
        }
        let mut hops = Vec::new();
        let mut node = to;
        while node != from {
            let (hop, before) = came_by[node]?;
            hops.push(hop);
            node = before;
        }
        hops.reverse();
        Some(hops)
    }

    /// The routes of a flow.
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
            None => there
                .iter()
                .rev()
                .map(|hop| Hop {
                    link: hop.link,
                    direction: hop.direction.opposite(),
                })
                .collect(),
        };
        Ok(Routes { there, back })
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

    /// Some of the nodes that can be reached from `from`.
    fn reach(&self, from: usize) -> String {
        const SHOWN: usize = 12;
        let mut seen = vec![false; self.nodes.len()];
        seen[from] = true;
        let mut waiting = VecDeque::from([from]);
        let mut names = Vec::new();
        while let Some(node) = waiting.pop_front() {
            for next in self.at[node]
                .iter()
                .filter_map(|&link| self.hop(node, link))
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

    /// The route that the file spells out.
    fn chain(
        &self,
        resolver: &Resolver<'_>,
        [flow, key]: [&str; 2],
        links: &[String],
        [from, to]: [usize; 2],
    ) -> Result<Vec<Hop>, Error> {
        let mut node = from;
        let mut hops = Vec::new();
        for (k, name) in links.iter().enumerate() {
            let place = ["flow", flow, key, &k.to_string()].map(str::to_owned);
            let place = place.each_ref().map(String::as_str);
            let Some(&link) = self.links.get(name) else {
                return Err(resolver.fault(&place, no_such("link", name, resolver.root, |_| true)));
            };
            let Some((hop, next)) = self.hop(node, link) else {
                let [a, b] = self.ends[link].map(|end| &self.nodes[end]);
                return Err(resolver.error(
                    &place,
                    format!(
                        "the route is at `{}` and `{name}` is not there",
                        self.nodes[node]
                    ),
                    vec![format!("`{name}` is between `{a}` and `{b}`")],
                ));
            };
            hops.push(hop);
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
        Ok(hops)
    }

    /// Two links between one pair of nodes need someone who says which to use.
    pub(super) fn check_parallel(
        &self,
        resolver: &Resolver<'_>,
        file: &File,
        routes: &[Routes],
    ) -> Result<(), Error> {
        let mut between: BTreeMap<[usize; 2], Vec<usize>> = BTreeMap::new();
        for (link, &[a, b]) in self.ends.iter().enumerate() {
            between.entry([a.min(b), a.max(b)]).or_default().push(link);
        }
        let bundles: Vec<_> = between
            .into_values()
            .filter(|links| links.len() > 1)
            .collect();
        let mut bundle_of = vec![None; self.ends.len()];
        for (bundle, links) in bundles.iter().enumerate() {
            for &link in links {
                bundle_of[link] = Some(bundle);
            }
        }
        let mut explained = vec![false; bundles.len()];
        for ((_, flow), routes) in file.flow.0.iter().zip(routes) {
            let there = (flow.route.is_some(), &routes.there);
            let back = (
                flow.route.is_some() || flow.return_route.is_some(),
                &routes.back,
            );
            for (by_hand, hops) in [there, back] {
                for bundle in hops.iter().filter_map(|hop| bundle_of[hop.link]) {
                    if !by_hand {
                        return Err(self.unexplained(resolver, file, &bundles[bundle]));
                    }
                    explained[bundle] = true;
                }
            }
        }
        match explained.iter().position(|explained| !explained) {
            Some(bundle) => Err(self.unexplained(resolver, file, &bundles[bundle])),
            None => Ok(()),
        }
    }

    fn unexplained(&self, resolver: &Resolver<'_>, file: &File, bundle: &[usize]) -> Error {
        let [first, second] = [bundle[0], bundle[1]].map(|link| &file.link.0[link].0);
        let [a, b] = self.ends[bundle[1]].map(|end| &self.nodes[end]);
        resolver.error(
            &["link", second, "between"],
            format!("`{first}` and `{second}` both join `{a}` and `{b}`, and nothing says who uses which"),
            vec![
                "expected a gateway with both in its `routes`, a group instead of them, or a `route` in each flow that comes this way"
                    .to_owned(),
            ],
        )
    }
}
