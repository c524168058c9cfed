//! Low-power idle: every member rests whenever it has nothing to send.
//!
//! All members always distribute. A member that has sent its last packet takes `sleep_time` to
//! become quiet and rests from then on. A packet wakes it up, which takes `wake_time` once it is
//! quiet, and is then sent. Each direction of a member does so separately.
//!
//! Sources: IEEE 802.3az-2010 (IEEE 802.3-2018 §78); P. Reviriego et al., "Performance Evaluation
//! of Energy Efficient Ethernet", IEEE Communications Letters 13(9), 2009, table I (the minimum
//! times of 100BASE-TX, which are the defaults here; 1000BASE-T has 182 and 16.5 µs, 10GBASE-T 2.88
//! and 4.48 µs).
//!
//! # Not implemented
//! - Refresh: a resting port wakes about every 20 ms for up to 0.2 ms to keep its receiver trained.
//! - 1000BASE-T rests only if both directions rest.

use anabranch_core::{
    registry::{Meta, Source},
    units::Instant,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{super::members::LowPowerIdle, ControlParams, Controller, Init, Transition};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "lpi",
    title: "Low-power idle",
    summary: "IEEE 802.3az on each member: it rests whenever it has nothing to send, and wakes up for each packet. No member \
              is taken out.",
    sources: &[
        Source {
            id: "IEEE 802.3az-2010",
            items: &["§78"],
        },
        Source {
            id: "Reviriego et al. 2009 (IEEE Communications Letters 13(9))",
            items: &["table I"],
        },
    ],
};

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Time from the end of the last packet until the port rests (T_s; 100BASE-TX has 200 µs).
    pub sleep_time: Transition,
    /// Time from waking to the first bit of a packet (T_w; 100BASE-TX has 30.5 µs). The group's
    /// `wake_time` applies to members that were switched off, and is not used.
    pub wake_time: Transition,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            sleep_time: Transition::from_nanos(200_000),
            wake_time: Transition::from_nanos(30_500),
        }
    }
}

impl ControlParams for Params {}

/// Low-power idle, which the members carry out.
#[derive(Debug)]
pub struct Lpi {
    idle: LowPowerIdle,
    members: u32,
}

impl Lpi {
    /// Creates the controller for all members.
    #[must_use]
    pub fn new(params: &Params, init: &Init<'_>) -> Self {
        Self {
            idle: LowPowerIdle {
                sleep_time: params.sleep_time.get(),
                wake_time: params.wake_time.get(),
            },
            members: init.members,
        }
    }
}

impl Controller for Lpi {
    #[inline]
    fn on_arrival(&mut self, _now: Instant, _bytes: u32) {}
    fn next_decision(&self) -> Instant {
        Instant::NEVER
    }
    fn decide(&mut self, _now: Instant) -> u32 {
        self.members
    }
    fn low_power_idle(&self) -> Option<LowPowerIdle> {
        Some(self.idle)
    }
}
