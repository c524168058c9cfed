//! Earliest arrival: a packet takes the route on which it will be there first.
//!
//! For each route the splitter adds up what waits there of its own packets, the packet's own transmission at the line rate, and
//! the rest of the way as the other end reports it (see [`estimate`](super::estimate)); the least sum wins, the earlier route
//! where two are equal. As long as nothing is reported all rests are equal.
//!
//! A route of which nothing is heard any more, while something is of packets sent `silence` later on others, takes no packets. A
//! route that has had none for as long as `probe` gets a copy of the next one, whose original goes where it should; the other end
//! drops whichever comes later. So what a route is worth stays known, and a probe that is lost costs nothing but its bytes.
//!
//! Source: N. Kuhn et al., "DAPS: Intelligent delay-aware packet scheduling for multipath transport", IEEE ICC 2014, which sends
//! what arrives in order; the rule of the least completion time is that of list scheduling on machines of unequal speed.
//!
//! # Differs from Linux
//! - The schedulers of Multipath TCP in Linux go by round-trip time or by what waits, not by both.
//!
//! # Not implemented
//! - Learning a rate that is not the line rate: what it adds shows in the rest, one report later.

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
use crate::multipath::params::Silence;

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "earliest-arrival",
    title: "Earliest arrival",
    summary: "A packet takes the route on which it will arrive first, by line rate, own backlog and reported delay.",
    sources: &[Source {
        id: "Kuhn et al., \"DAPS: Intelligent delay-aware packet scheduling for multipath transport\"",
        items: &["§III"],
    }],
};

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How far others may be ahead of a route of which nothing is heard before it counts as dead.
    pub silence: Silence,
    /// How long a route may go without a packet before it gets a copy.
    pub probe: Silence,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            silence: Silence::from_millis(200),
            probe: Silence::from_millis(500),
        }
    }
}

/// The splitter at work.
#[derive(Debug)]
pub struct EarliestArrival {
    silence: Duration,
    probe: Duration,
    routes: Routes,
}

impl EarliestArrival {
    /// Over these routes.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        Self {
            silence: params.silence.get(),
            probe: params.probe.get(),
            routes: Routes::new(init),
        }
    }
}

impl Split for EarliestArrival {
    fn split(&mut self, now: Instant, packet: View, routes: &mut Vec<u16>) {
        let mut chosen = (0, true, f64::INFINITY);
        for (route, known) in self.routes.all.iter().enumerate() {
            let silent = self.routes.is_silent(route, self.silence);
            let leaving = known.leaving(now, packet.size).as_secs_f64() * 1e6;
            let arrival = leaving + self.routes.rest(route);
            if (silent, arrival) < (chosen.1, chosen.2) {
                chosen = (route, silent, arrival);
            }
        }
        let chosen = chosen.0;
        self.routes.all[chosen].send(now, packet.size);
        routes.push(number(chosen));
        for (route, known) in self.routes.all.iter_mut().enumerate() {
            if route != chosen && known.is_idle(now, self.probe) {
                known.send(now, packet.size);
                routes.push(number(route));
            }
        }
    }
    fn hear(&mut self, now: Instant, report: &Report) {
        self.routes.hear(now, report);
    }
}
