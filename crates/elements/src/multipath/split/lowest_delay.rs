//! Lowest delay: a packet takes the quickest route that has room.
//!
//! A route has room while no more than `backlog` of the splitter's own packets waits in front of it, at its line rate. Of those
//! with room the one whose delay beyond that is reported lowest wins, the earlier where two are equal or nothing is known; where
//! none has room, the one with the least backlog. The fastest route fills first, and the others carry what it cannot.
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
    tunnel::Report,
    units::{Duration, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Init, Split, View,
    estimate::{Routes, number},
};
use crate::multipath::params::Backlog;

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
}

impl Default for Params {
    fn default() -> Self {
        Self {
            backlog: Backlog::from_millis(20),
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
        Self {
            backlog: params.backlog.get(),
            routes: Routes::new(init),
        }
    }
}

impl Split for LowestDelay {
    fn split(&mut self, now: Instant, packet: View, routes: &mut Vec<u16>) {
        let mut open: Option<(usize, f64)> = None;
        let mut emptiest = (0, Duration::from_picos(u64::MAX));
        for (number, route) in self.routes.all.iter().enumerate() {
            let backlog = route.backlog(now);
            if backlog < emptiest.1 {
                emptiest = (number, backlog);
            }
            let rest = self.routes.rest(number);
            if backlog <= self.backlog && open.is_none_or(|(_, least)| rest < least) {
                open = Some((number, rest));
            }
        }
        let chosen = open.map_or(emptiest.0, |(number, _)| number);
        self.routes.all[chosen].send(now, packet.size);
        routes.push(number(chosen));
    }
    fn hear(&mut self, now: Instant, report: &Report) {
        self.routes.hear(now, report);
    }
}
