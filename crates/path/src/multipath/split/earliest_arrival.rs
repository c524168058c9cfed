//! Earliest arrival: a packet takes the route on which it will arrive first.
//!
//! For each route the splitter adds the backlog of its previous packets, the packet's transmission
//! time at the line rate, and the remaining delay as reported by the other end (see
//! [`estimate`](super::estimate)). The route with the smallest sum is chosen, on a tie the one
//! listed first. Until the first report, all remaining delays are assumed equal.
//!
//! A silent route carries only probes (see [`liveness`](super::liveness) for the conditions of
//! silence and return). A route without a packet for `probe` gets a probe, a header without a
//! packet, so that its delay stays known.
//!
//! A lost packet is retransmitted on request of the other end, on the route on which it will arrive
//! first. Without retransmission, the bundle would have the loss rate of its worst route, and a
//! single congestion control reacts to it. If a route falls silent, its unreported packets are also
//! retransmitted, as far as the share below permits. Two kinds of loss are left to the sender,
//! because it must learn that it sends too much. The header marks such packets, and the other end
//! neither requests nor waits for them:
//!
//! - packets sent while the backlog of all routes exceeded the data they carry in a round trip:
//!   even a window halved at once keeps the routes busy then (Villamizar and Song 1994: a buffer of
//!   one bandwidth-delay product);
//! - losses beyond a twentieth of the packets sent on the route ([`RESENT`]).
//!
//! Source: N. Kuhn et al., "DAPS: Intelligent delay-aware packet scheduling for multipath
//! transport", IEEE ICC 2014, which schedules packets to arrive in order. The rule of the earliest
//! completion is that of list scheduling on machines of unequal speed.
//!
//! # Differs from Linux
//! - The schedulers of Multipath TCP in Linux use the round-trip time or the backlog, not both.
//!
//! # Not implemented
//! - Requests for packets lost at the end of a burst, before the route delivers a later packet or
//!   falls silent.
//! - Estimation of a rate other than the line rate: the additional delay appears in the remaining
//!   delay, one report later.

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

/// Maximum share of a route's packets that are retransmitted. Further losses are attributed to
/// overload.
pub const RESENT: f64 = 0.05;
/// Maximum number of packets retransmitted in a burst after a period of few losses.
pub const RESENT_AT_ONCE: f64 = 32.0;

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Time that the report of a packet may be overdue before its route counts as silent and takes
    /// no more packets.
    pub silence: Silence,
    /// Time without a packet after which a route gets a probe.
    pub probe: Silence,
    /// Number of packets stored per route for retransmission on request of the other end; 0: none.
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

/// Earliest-arrival splitter.
#[derive(Debug)]
pub struct EarliestArrival {
    routes: Routes,
    /// The packet that was split last would be retransmitted.
    keeps: bool,
}

impl EarliestArrival {
    /// Creates a splitter for these routes.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        let timing = Timing {
            silence: params.silence.get(),
            probe: params.probe.get(),
        };
        Self {
            routes: Routes::new(timing, init),
            keeps: false,
        }
    }
}

impl EarliestArrival {
    /// Returns the route of the best rank on which a packet of this size will arrive first.
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
    /// Accounts for a packet of this size on a route.
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
        let content = if for_traffic {
            self.routes.content(now, chosen)
        } else {
            Content::Report
        };
        self.routes.own(now, size, chosen, content, routes);
        content
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
