//! Timed: a packet waits for earlier ones, but no longer than a limit.
//!
//! The order is that of the tunnel's numbers within a flow, so any protocol can be carried. A
//! packet that arrives after a packet with a higher number was released is forwarded at once. After
//! waiting for `limit`, a packet is released with all packets that wait before it, in order, and
//! the gaps among them are given up. If the memory is full, the packet with the earliest deadline
//! is released at once.
//!
//! Source: RFC 2890 §2.2: a tunnel's receiver buffers packets out of sequence, with a timer and a
//! bound on the buffer.
//!
//! # Differs from Linux
//! - A GRE tunnel with sequence numbers drops late packets there. Nothing is dropped here, as
//!   RFC 2890 permits for protocols that tolerate reordering.
//! - RFC 2890's bound on the buffer is per flow; here it is for all flows together.
//!
//! # Not implemented
//! - Nothing.

use anabranch_core::{
    packet::PacketId,
    registry::{Meta, Source},
    units::{Duration, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arrived, Init, Restore, numbered::Numbered};
use crate::multipath::params::{Memory, Wait};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "timed",
    title: "Timed",
    summary: "A packet waits for those before it in its flow, but no longer than a limit.",
    sources: &[Source {
        id: "RFC 2890",
        items: &["§2.2"],
    }],
};

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Maximum time that a packet waits for earlier ones.
    pub limit: Wait,
    /// Maximum memory of waiting packets, for all flows of a direction: packets or bytes.
    pub memory: Memory,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            limit: Wait::from_millis(100),
            memory: Memory::packets(4_096),
        }
    }
}

/// Timed restorer.
#[derive(Debug)]
pub struct Timed {
    limit: Duration,
    flows: Numbered,
}

impl Timed {
    /// Creates a restorer.
    #[must_use]
    pub const fn new(params: &Params, _init: &Init) -> Self {
        Self {
            limit: params.limit.get(),
            flows: Numbered::new(params.memory),
        }
    }
}

impl Restore for Timed {
    fn arrive(&mut self, now: Instant, packet: Arrived, released: &mut Vec<PacketId>) {
        let place = self.flows.place(&packet);
        self.flows
            .arrive(packet, place, 0, now + self.limit, released);
    }
    fn on_timer(&mut self, now: Instant, released: &mut Vec<PacketId>) {
        self.flows.on_timer(now, released);
    }
    fn timer(&self) -> Option<Instant> {
        self.flows.timer()
    }
    fn gaps_given_up(&self) -> u64 {
        self.flows.gaps_given_up
    }
}
