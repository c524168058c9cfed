//! Standby: all packets take the first working route of an order; the others are backups.
//!
//! The first route of `order` is the primary, the others are its backups. A silent route carries
//! only probes (see [`liveness`](super::liveness) for the conditions of silence), and the next
//! route in order replaces it. Traffic returns to a better route once its probes have been reported
//! for `hold`. This is the wait-to-restore time of linear protection: a route that fails
//! intermittently does not interrupt the traffic each time. Backups get a probe per `probe`, so
//! that their state is known before they are needed.
//!
//! Source: RFC 6378, 1:1 protection in revertive mode, generalised to any number of routes;
//! RFC 5880 for failure detection by received packets in both directions. MPTCP calls such routes
//! backups (RFC 8684 §3.3.8).
//!
//! # Differs from Linux
//! - The bonding driver's `active-backup` mode monitors the carrier of an interface or ARP, not
//!   arrivals at the other end.
//!
//! # Not implemented
//! - The operator's commands of RFC 6378: forced switch, lockout of protection.
//! - Coordination: each direction chooses separately, so the two may take different routes.

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
use crate::multipath::params::{Hold, Keep, Silence};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "standby",
    title: "Standby",
    summary: "All packets take the first route of an order that delivers; the others stand by.",
    sources: &[
        Source {
            id: "RFC 6378",
            items: &["1:1 protection", "wait-to-restore timer"],
        },
        Source {
            id: "RFC 8684",
            items: &["§3.3.8"],
        },
    ],
};

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Names of the gateway's routes, the primary first, each once. The default is the order of
    /// `routes`.
    pub order: Vec<String>,
    /// Time that the report of a packet may be overdue before its route counts as silent and takes
    /// no more packets.
    pub silence: Silence,
    /// Time without a packet after which a route gets a probe.
    pub probe: Silence,
    /// Number of packets stored per route, to be retransmitted if it falls silent; 0: none.
    pub keep: Keep,
    /// Time for which a route that was silent must deliver its probes before it takes packets
    /// again.
    pub hold: Hold,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            order: Vec::new(),
            silence: Silence::from_millis(200),
            probe: Silence::from_millis(500),
            keep: Keep::DEFAULT,
            hold: Hold::from_millis(1_000),
        }
    }
}

/// Error in an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderError {
    /// The name at this index is not a route's name.
    Unknown(usize),
    /// The name at this index is repeated.
    Twice(usize),
    /// This route is missing.
    Missing(String),
}

impl Params {
    /// Returns the routes in order, as indices into `names`.
    ///
    /// # Errors
    /// [`OrderError`] unless the order is empty or has each name once.
    pub fn places(&self, names: &[String]) -> Result<Vec<usize>, OrderError> {
        if self.order.is_empty() {
            return Ok((0..names.len()).collect());
        }
        let mut places = Vec::with_capacity(names.len());
        for (k, name) in self.order.iter().enumerate() {
            let place = names.iter().position(|known| known == name);
            let place = place.ok_or(OrderError::Unknown(k))?;
            if places.contains(&place) {
                return Err(OrderError::Twice(k));
            }
            places.push(place);
        }
        match (0..names.len()).find(|place| !places.contains(place)) {
            Some(missing) => Err(OrderError::Missing(names[missing].clone())),
            None => Ok(places),
        }
    }
}

/// Standby splitter.
#[derive(Debug)]
pub struct Standby {
    order: Vec<usize>,
    routes: Routes,
}

impl Standby {
    /// Creates a splitter for these routes.
    ///
    /// # Panics
    /// If the order does not have each route's name once.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        let timing = Timing {
            silence: params.silence.get(),
            probe: params.probe.get(),
            hold: params.hold.get(),
            late_is_alive: false,
        };
        Self {
            order: params
                .places(&init.names)
                .expect("a scenario with another order is refused"),
            routes: Routes::new(timing, init),
        }
    }

    /// Returns the first route in order that has the best rank.
    fn choose(&self) -> usize {
        let mut chosen = self.order[0];
        let mut best = Rank::Silent;
        for &route in &self.order {
            let rank = self.routes.all[route].rank();
            if rank < best {
                (chosen, best) = (route, rank);
            }
        }
        chosen
    }
}

impl Split for Standby {
    fn split(&mut self, now: Instant, packet: View, routes: &mut Vec<u16>) {
        let chosen = self.choose();
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
        let chosen = self.choose();
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
        self.routes.has_room(now, self.choose())
    }
    fn resend(&mut self, now: Instant, missing: Missing) -> Option<u16> {
        let chosen = self.choose();
        self.routes.resend(now, missing, chosen)
    }
}
