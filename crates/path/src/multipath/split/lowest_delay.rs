//! Lowest delay: a packet takes the quickest route that has room.
//!
//! A route has room while no more than `backlog` of the splitter's own packets waits in front of it, at its line rate. Of those
//! with room the one whose delay beyond that is reported lowest wins, the earlier where two are equal or nothing is known; where
//! none has room, the one with the least backlog. The fastest route fills first, and the others carry what it cannot.
//!
//! A route that is silent takes no packets but probes (see [`liveness`](super::liveness): what counts as silent, and when a route
//! returns), and a route that has had no packet for `probe` gets one, so that its delay stays known.
//!
//! Source: C. Paasch, S. Ferlin, O. Alay, O. Bonaventure, "Experimental Evaluation of Multipath TCP Schedulers", ACM CSWS 2014,
//! whose lowest-RTT-first does so with congestion windows; a gateway has none, and bounds what waits instead.
//!
//! # Differs from Linux
//! - The default scheduler of Multipath TCP there goes by round-trip times and by windows of congestion control.
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
    /// What may wait in front of a route, as the time that its line rate takes to send it.
    pub backlog: Backlog,
    /// How long the report of a packet may be overdue before its route counts as silent and takes no more packets.
    pub silence: Silence,
    /// How long a route may go without a packet before it gets a probe.
    pub probe: Silence,
    /// How many packets of each route are kept, to be retransmitted if it falls silent; 0: none.
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

/// The splitter at work.
#[derive(Debug)]
pub struct LowestDelay {
    backlog: Duration,
    routes: Routes,
}

impl LowestDelay {
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
            backlog: params.backlog.get(),
            routes: Routes::new(timing, init),
        }
    }

    /// The route that a packet takes, of those of the best rank.
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
