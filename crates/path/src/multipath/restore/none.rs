//! No restorer: packets are forwarded in the order of their arrival (method B of the study).
//!
//! Source: T. Hayashi et al., "Performance Evaluation of TCP Communication using Multiple Routes".
//!
//! # Differs from Linux
//! - Nothing: routers that balance packet by packet do the same.
//!
//! # Not implemented
//! - Nothing.

use anabranch_core::{
    packet::PacketId,
    registry::{Meta, Source},
    units::Instant,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arrived, Init, Restore};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "none",
    title: "No restoring",
    summary: "Packets go on in the order in which they arrive: per-packet load balancing.",
    sources: &[Source {
        id: "Hayashi et al., \"Performance Evaluation of TCP Communication using Multiple Routes\"",
        items: &["method B"],
    }],
};

/// No parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {}

/// A restorer that holds nothing back.
#[derive(Debug)]
pub struct Unrestored;

impl Unrestored {
    /// Creates the restorer.
    #[must_use]
    pub const fn new(_params: &Params, _init: &Init) -> Self {
        Self
    }
}

impl Restore for Unrestored {
    fn arrive(&mut self, _now: Instant, packet: Arrived, released: &mut Vec<PacketId>) {
        released.push(packet.packet);
    }
}
