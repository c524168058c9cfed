//! Earliest arrival: a packet takes the route on which it will be there first.
//!
//! For each route the splitter adds up what waits there of its own packets, the packet's own transmission at the line rate, and
//! the rest of the way as the other end reports it (see [`estimate`](super::estimate)); the least sum wins, the earlier route
//! where two are equal. As long as nothing is reported all rests are equal.
//!
//! Source: N. Kuhn et al., "DAPS: Intelligent delay-aware packet scheduling for multipath transport", IEEE ICC 2014, which sends
//! what arrives in order; the rule of the least completion time is that of list scheduling on machines of unequal speed.
//!
//! # Differs from Linux
//! - The schedulers of Multipath TCP in Linux go by round-trip time or by what waits, not by both.
//!
//! # Not implemented
//! - Learning a rate that is not the line rate: what it adds shows in the rest, one report later.

use anabranch_core::{
    registry::{Meta, Source},
    tunnel::Report,
    units::Instant,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Init, Split, View,
    estimate::{Routes, number},
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "earliest-arrival",
    title: "Earliest arrival",
    summary: "A packet takes the route on which it will arrive first, by line rate, own backlog and reported delay.",
    sources: &[Source {
        id: "Kuhn et al., \"DAPS: Intelligent delay-aware packet scheduling for multipath transport\"",
        items: &["§III"],
    }],
};

/// There is nothing to set.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {}

/// The splitter at work.
#[derive(Debug)]
pub struct EarliestArrival {
    routes: Routes,
}

impl EarliestArrival {
    /// Over these routes.
    #[must_use]
    pub fn new(_params: &Params, init: &Init) -> Self {
        Self {
            routes: Routes::new(init),
        }
    }
}

impl Split for EarliestArrival {
    fn split(&mut self, now: Instant, packet: View, routes: &mut Vec<u16>) {
        let arrives = |route: usize| {
            let leaving = self.routes.routes[route].leaving(now, packet.size);
            leaving.as_secs_f64() * 1e6 + self.routes.rest(now, route)
        };
        let mut chosen = (0, f64::INFINITY);
        for route in 0..self.routes.routes.len() {
            let arrival = arrives(route);
            if arrival < chosen.1 {
                chosen = (route, arrival);
            }
        }
        self.routes.routes[chosen.0].send(now, packet.size);
        routes.push(number(chosen.0));
    }
    fn hear(&mut self, now: Instant, report: &Report) {
        self.routes.hear(now, report);
    }
}
