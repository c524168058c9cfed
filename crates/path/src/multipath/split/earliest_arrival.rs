//! Earliest arrival: a packet takes the route on which it will be there first.
//!
//! For each route the splitter adds up what waits there of its own packets, the packet's own transmission at the line rate, and
//! the rest of the way as the other end reports it (see [`estimate`](super::estimate)); the least sum wins, the earlier route
//! where two are equal. As long as nothing is reported all rests are equal.
//!
//! A route that is silent takes no packets but probes (see [`liveness`](super::liveness): what counts as silent, and when a route
//! returns). A route that has had no packet for `probe` gets a probe, a header without a packet, so that its worth stays
//! known.
//!
//! What a route loses is retransmitted if the other end asks for it, on the route on which it will arrive first. Otherwise the
//! routes together would lose as much as the worst of them, and one congestion control answers for all. If a route falls
//! silent, the packets on it that were not reported are retransmitted too, as far as the share below allows. Two kinds of loss
//! are left to the sender, which must learn that it sends too much. The header says so, and the other end neither asks nor waits:
//!
//! - of a packet that left while more waited in front of the routes than they carry in a round trip: even a window halved at once
//!   then keeps them busy (Villamizar and Song 1994: a buffer of one bandwidth-delay product);
//! - of what goes beyond a twentieth of what was sent on the route ([`RESENT`]).
//!
//! Source: N. Kuhn et al., "DAPS: Intelligent delay-aware packet scheduling for multipath transport", IEEE ICC 2014, which sends
//! what arrives in order; the rule of the least completion time is that of list scheduling on machines of unequal speed.
//!
//! # Differs from Linux
//! - The schedulers of Multipath TCP in Linux go by round-trip time or by what waits, not by both.
//!
//! # Not implemented
//! - Asking for what was lost at the end of a burst, before the route delivers something later or falls silent.
//! - Learning a rate that is not the line rate: what it adds shows in the rest, one report later.

use anabranch_core::{
    registry::{Meta, Source},
    tunnel::{Content, Report},
    units::{Duration, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Due, Init, Missing, Split, View,
    estimate::{Routes, number},
    liveness::{Rank, Timing},
};
use crate::multipath::params::{Keep, Silence};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "earliest-arrival",
    title: "Earliest arrival",
    summary: "A packet takes the route on which it will arrive first, by line rate, own backlog and reported delay.",
    sources: &[
        Source {
            id: "Kuhn et al., \"DAPS: Intelligent delay-aware packet scheduling for multipath transport\"",
            items: &["§III"],
        },
        Source {
            id: "RFC 3366",
            items: &["§1.3", "§2"],
        },
    ],
};

/// Share of a route's packets that are retransmitted at most: what a route loses besides is more than chance.
pub const RESENT: f64 = 0.05;
/// Most packets that may be retransmitted at once after a route has lost few.
pub const RESENT_AT_ONCE: f64 = 32.0;

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How long the report of a packet may be overdue before its route counts as silent and takes no more packets.
    pub silence: Silence,
    /// How long a route may go without a packet before it gets a probe.
    pub probe: Silence,
    /// How many packets of each route are kept, to be retransmitted where the other end asks for them; 0: none are.
    pub keep: Keep,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            silence: Silence::from_millis(200),
            probe: Silence::from_millis(500),
            keep: Keep::DEFAULT,
        }
    }
}

/// The splitter at work.
#[derive(Debug)]
pub struct EarliestArrival {
    routes: Routes,
    /// The packet that was split last would be retransmitted.
    keeps: bool,
}

impl EarliestArrival {
    /// Over these routes.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        let timing = Timing {
            silence: params.silence.get(),
            probe: params.probe.get(),
            hold: params.silence.get(),
            late_is_alive: true,
        };
        Self {
            routes: Routes::new(timing, init),
            keeps: false,
        }
    }
}

impl EarliestArrival {
    /// The route on which a packet of this size will arrive first, of those of the best rank.
    fn earliest(&self, now: Instant, size: u32) -> usize {
        let least = self.routes.least();
        let mut chosen = (0, Rank::Silent, f64::INFINITY);
        for (route, known) in self.routes.all.iter().enumerate() {
            let leaving = known.leaving(now, size).as_secs_f64() * 1e6;
            let arrival = leaving + known.rest(least);
            let rank = known.rank();
            if (rank, arrival) < (chosen.1, chosen.2) {
                chosen = (route, rank, arrival);
            }
        }
        chosen.0
    }
    /// A packet of this size takes a route.
    fn take(&mut self, now: Instant, route: usize, size: u32) {
        self.keeps = self.routes.all[route].can_afford() && !self.routes.are_full(now);
        self.routes.send(now, route, size);
    }
}

impl Split for EarliestArrival {
    fn split(&mut self, now: Instant, packet: View, routes: &mut Vec<u16>) {
        let chosen = self.earliest(now, packet.size);
        self.take(now, chosen, packet.size);
        routes.push(number(chosen));
        self.routes.copy(now, packet.size, chosen, routes);
    }
    fn hear(&mut self, now: Instant, report: &Report) {
        self.routes.hear(now, report);
    }
    fn reports_within(&self) -> Option<Duration> {
        Some(self.routes.reports_within())
    }
    fn split_own(
        &mut self,
        now: Instant,
        size: u32,
        for_traffic: bool,
        routes: &mut Vec<u16>,
    ) -> Content {
        let chosen = self.earliest(now, size);
        self.routes.own(now, size, (chosen, for_traffic), routes)
    }
    fn on_timer(&mut self, now: Instant, size: u32, due: &mut Due) {
        self.routes.on_timer(now, size, due);
    }
    fn timer(&self) -> Option<Instant> {
        self.routes.timer()
    }
    fn keeps(&self) -> bool {
        self.keeps
    }
    fn is_silent(&self, route: u16) -> bool {
        self.routes.is_silent(route)
    }
    fn has_room(&self, now: Instant) -> bool {
        self.routes.has_room(now, self.earliest(now, 0))
    }
    fn resend(&mut self, now: Instant, missing: Missing) -> Option<u16> {
        let lost = self.routes.all.get_mut(usize::from(missing.route))?;
        if !lost.afford() {
            return None;
        }
        let route = self.earliest(now, missing.size);
        self.take(now, route, missing.size);
        Some(number(route))
    }
}
