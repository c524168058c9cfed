//! Lowest delay: a packet takes the fastest route that has room.
//!
//! A route has room while the backlog of the splitter's own packets, at its line rate, is at most
//! `backlog`. Among the routes with room, the one with the lowest reported remaining delay is
//! chosen; on a tie or without reports, the one listed first. If none has room, the route with the
//! smallest backlog is chosen. The fastest route thus fills first, and the others carry the excess.
//!
//! A silent route carries only probes (see [`liveness`](super::liveness) for the conditions of
//! silence and return). A route without a packet for `probe` gets a probe, so that its delay stays
//! known.
//!
//! Source: C. Paasch, S. Ferlin, O. Alay, O. Bonaventure, "Experimental Evaluation of Multipath TCP
//! Schedulers", ACM CSWS 2014. Its lowest-RTT-first scheduler is limited by congestion windows; a
//! gateway has none and limits the backlog instead.
//!
//! # Differs from Linux
//! - The default scheduler of Multipath TCP there uses round-trip times and congestion windows.
//!
//! # Not implemented
//! - Nothing.

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
use crate::multipath::params::{Backlog, Keep, Silence};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "lowest-delay",
    title: "Lowest delay",
    summary: "A packet takes the route with the lowest reported delay that has room.",
    sources: &[Source {
        id: "Paasch et al., \"Experimental Evaluation of Multipath TCP Schedulers\"",
        items: &["§2.2"],
    }],
};

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Maximum backlog of a route, as the time that its line rate takes to send it.
    pub backlog: Backlog,
    /// Time that the report of a packet may be overdue before its route counts as silent and takes
    /// no more packets.
    pub silence: Silence,
    /// Time without a packet after which a route gets a probe.
    pub probe: Silence,
    /// Number of packets stored per route, to be retransmitted if it falls silent; 0: none.
    pub keep: Keep,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            backlog: Backlog::from_millis(20),
            silence: Silence::from_millis(200),
            probe: Silence::from_millis(500),
            keep: Keep::DEFAULT,
        }
    }
}

/// Lowest-delay splitter.
#[derive(Debug)]
pub struct LowestDelay {
    backlog: Duration,
    routes: Routes,
}

impl LowestDelay {
    /// Creates a splitter for these routes.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        let timing = Timing {
            silence: params.silence.get(),
            probe: params.probe.get(),
            hold: params.silence.get(),
            late_is_alive: true,
        };
        Self {
            backlog: params.backlog.get(),
            routes: Routes::new(timing, init),
        }
    }

    /// Returns the route for a packet among the routes of the best rank.
    fn choose(&self, now: Instant) -> usize {
        let least = self.routes.least();
        let mut chosen = (0, Rank::Silent, (true, f64::INFINITY));
        for (number, route) in self.routes.all.iter().enumerate() {
            let backlog = route.backlog(now);
            let is_full = backlog > self.backlog;
            let cost = if is_full {
                backlog.as_secs_f64()
            } else {
                route.rest(least)
            };
            let rank = route.rank();
            if (rank, (is_full, cost)) < (chosen.1, chosen.2) {
                chosen = (number, rank, (is_full, cost));
            }
        }
        chosen.0
    }
}

impl Split for LowestDelay {
    fn split(&mut self, now: Instant, packet: View, routes: &mut Vec<u16>) {
        let chosen = self.choose(now);
        self.routes.send(now, chosen, packet.size);
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
        let chosen = self.choose(now);
        self.routes.own(now, size, (chosen, for_traffic), routes)
    }
    fn on_timer(&mut self, now: Instant, size: u32, due: &mut Due) {
        self.routes.on_timer(now, size, due);
    }
    fn timer(&self) -> Option<Instant> {
        self.routes.timer()
    }
    fn is_silent(&self, route: u16) -> bool {
        self.routes.is_silent(route)
    }
    fn has_room(&self, now: Instant) -> bool {
        self.routes.has_room(now, self.choose(now))
    }
    fn resend(&mut self, now: Instant, missing: Missing) -> Option<u16> {
        let chosen = self.choose(now);
        self.routes.resend(now, missing, chosen)
    }
}
