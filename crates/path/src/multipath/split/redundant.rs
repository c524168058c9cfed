//! Redundant: sends a copy of every packet on every route; the first copy to arrive is forwarded.
//!
//! It trades rate for delay and loss: every route carries all packets, so their rates do not add
//! up, and a packet is lost only if all its copies are. The other end discards later copies by the
//! tunnel's numbers.
//!
//! Source: A. Frömmgen, T. Erbshäußer, A. Buchmann,
//! T. Zimmermann, K. Wehrle, "ReMP TCP: Low latency multipath TCP", IEEE ICC 2016.
//!
//! # Differs from Linux
//! - The scheduler of that paper is not part of Linux.
//!
//! # Not implemented
//! - Copies on a subset of the routes.

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

/// No parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {}

/// Redundant splitter.
#[derive(Debug)]
pub struct Redundant {
    routes: u16,
}

impl Redundant {
    /// Creates a splitter for these routes.
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
