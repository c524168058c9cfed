//! All members stay on, as a reference. Nothing is measured and no LACPDU is sent, as in static
//! aggregation (IEEE 802.1AX-2014 §6.3.1: links that are aggregated without LACP).

use anabranch_core::{
    registry::{Meta, Source},
    units::Instant,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ControlParams, Controller, Init};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "always-on",
    title: "Always on",
    summary: "All members stay on: static aggregation, to compare with. No LACPDU is sent.",
    sources: &[Source {
        id: "IEEE 802.1AX-2014",
        items: &["§6.3"],
    }],
};

/// No parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {}

impl ControlParams for Params {}

/// Controller that keeps all members on.
#[derive(Debug)]
pub struct AlwaysOn {
    members: u32,
}

impl AlwaysOn {
    /// Creates the controller for all members.
    #[must_use]
    pub fn new(_params: &Params, init: &Init<'_>) -> Self {
        Self {
            members: init.members,
        }
    }
}

impl Controller for AlwaysOn {
    #[inline]
    fn on_arrival(&mut self, _now: Instant, _bytes: u32) {}
    fn next_decision(&self) -> Instant {
        Instant::NEVER
    }
    fn decide(&mut self, _now: Instant) -> u32 {
        self.members
    }
}
