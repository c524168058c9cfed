//! Weighted round robin: routes take turns so that the bytes on each follow its line rate.
//!
//! The study specifies the rule (round robin, weighted by the line rate of each route and the size
//! of each packet) but not the order of turns. Here a packet takes the route that would finish
//! sending it first if all bytes ever assigned to a route were sent back to back: the least (bytes
//! assigned + size) ÷ rate, on a tie the route listed first. Equal rates and sizes give plain round
//! robin. For any sizes, the bytes of a route stay within (number of routes × largest packet) of
//! its share.
//!
//! Source: T. Hayashi et al., "Performance Evaluation of TCP Communication using Multiple Routes".
//!
//! # Differs from Linux
//! - `nexthop` weights of Linux routes count flows or packets, not bytes.
//!
//! # Not implemented
//! - A rate that changes during the run, or a route that fails: the weights are the rates at the
//!   start.

use anabranch_core::{
    registry::{Meta, Source},
    units::Instant,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Init, Split, View};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "weighted-round-robin",
    title: "Weighted round robin",
    summary: "Routes take turns, packet by packet, so that the bytes on each follow its line rate.",
    sources: &[Source {
        id: "Hayashi et al., \"Performance Evaluation of TCP Communication using Multiple Routes\"",
        items: &["method of distribution"],
    }],
};

/// No parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {}

#[derive(Debug)]
struct Route {
    /// Bits per second.
    rate: u64,
    /// Bytes assigned to it.
    given: u64,
}

/// Weighted round-robin splitter.
#[derive(Debug)]
pub struct WeightedRoundRobin {
    routes: Vec<Route>,
}

impl WeightedRoundRobin {
    /// Creates a splitter for routes of these rates.
    ///
    /// # Panics
    /// If a route has no rate.
    #[must_use]
    pub fn new(_params: &Params, init: &Init) -> Self {
        let route = |rate: &Option<anabranch_core::units::Rate>| Route {
            rate: rate
                .expect("a scenario with a route without a rate is refused")
                .bits_per_s(),
            given: 0,
        };
        Self {
            routes: init.rates.iter().map(route).collect(),
        }
    }
}

/// Whether a route with `a` bytes at rate `b` finishes before one with `c` bytes at rate `d`.
fn is_before((a, b): (u64, u64), (c, d): (u64, u64)) -> bool {
    u128::from(a) * u128::from(d) < u128::from(c) * u128::from(b)
}

impl Split for WeightedRoundRobin {
    fn split(&mut self, _now: Instant, packet: View, routes: &mut Vec<u16>) {
        let size = u64::from(packet.size);
        let mut chosen = 0;
        for number in 1..self.routes.len() {
            let with = |number: usize| {
                let route = &self.routes[number];
                (route.given.saturating_add(size), route.rate)
            };
            if is_before(with(number), with(chosen)) {
                chosen = number;
            }
        }
        let route = &mut self.routes[chosen];
        route.given = route.given.saturating_add(size);
        routes.push(u16::try_from(chosen).expect("routes are counted in 16 bits"));
    }
}
