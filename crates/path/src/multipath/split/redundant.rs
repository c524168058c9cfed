//! Redundant: a copy of every packet on every route; what arrives first goes on.
//!
//! It trades rate for delay and loss: the pair is as fast as its slowest route with room, and a packet is lost only where all of
//! its copies are. The other end drops the copies that come later, by the tunnel's numbers.
//!
//! Source: A. Frömmgen, T. Erbshäußer, A. Buchmann,
//! T. Zimmermann, K. Wehrle, "ReMP TCP: Low latency multipath TCP", IEEE ICC 2016.
//!
//! # Differs from Linux
//! - The scheduler of that paper is not part of Linux.
//!
//! # Not implemented
//! - Copies on some of the routes.

use anabranch_core::{
    registry::{Meta, Source},
    units::Instant,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Init, Split, View, estimate::number};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "redundant",
    title: "Redundant",
    summary: "A copy of every packet on every route; the other end lets the first through.",
    sources: &[Source {
        id: "Froemmgen et al., \"ReMP TCP: Low latency multipath TCP\"",
        items: &["§III"],
    }],
};

/// There is nothing to set.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {}

/// The splitter at work.
#[derive(Debug)]
pub struct Redundant {
    routes: u16,
}

impl Redundant {
    /// Over so many routes.
    #[must_use]
    pub fn new(_params: &Params, init: &Init) -> Self {
        Self {
            routes: number(init.rates.len()),
        }
    }
}

impl Split for Redundant {
    fn split(&mut self, _now: Instant, _packet: View, routes: &mut Vec<u16>) {
        routes.extend(0..self.routes);
    }
}
