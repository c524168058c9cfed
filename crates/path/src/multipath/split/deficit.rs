//! Deficit: routes take turns; in each round a route earns bytes in proportion to its line rate.
//!
//! The current route sends while it has credit. A packet larger than the remaining credit is sent
//! nevertheless, and the excess is deducted from the route's credit in the next round. In the long
//! run, the bytes of a route are proportional to its line rate within one packet plus one turn. The
//! route with the lowest rate earns `quantum` per round.
//!
//! Source: H. Adiseshu, G. Parulkar, G. Varghese, "A Reliable and Scalable Striping Protocol", ACM
//! SIGCOMM 1996, §3: surplus round robin, the inverse of deficit round robin (Shreedhar and
//! Varghese, 1996).
//!
//! # Differs from Linux
//! - Linux's `drr` chooses the queue that feeds a link, not the link that a queue feeds.
//!
//! # Not implemented
//! - The receiver of §4, which predicts the route of the next packet by the same rule: the
//!   restorers here work with any splitter.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Init, Split, View, estimate::number};
use crate::queue::bounded::Quantum;

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "deficit",
    title: "Deficit",
    summary: "Routes take turns, each for as many bytes as its line rate earns it per round.",
    sources: &[Source {
        id: "Adiseshu et al., \"A Reliable and Scalable Striping Protocol\"",
        items: &["§3"],
    }],
};

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Bytes that the slowest route may send per round. The other routes send in proportion to
    /// their rates.
    pub quantum: Quantum,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            quantum: Quantum::try_from(Bytes::new(1_500)).expect("within bounds"),
        }
    }
}

#[derive(Debug)]
struct Route {
    /// Credit per round in bytes × the lowest rate, so that nothing is rounded.
    earns: u128,
    /// Remaining credit.
    credit: i128,
}

/// Deficit splitter.
#[derive(Debug)]
pub struct Deficit {
    routes: Vec<Route>,
    lowest: u64,
    turn: usize,
}

impl Deficit {
    /// Creates a splitter for routes of these rates.
    ///
    /// # Panics
    /// If a route has no rate.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        let rates = init.rates.iter().map(|rate| {
            rate.expect("a scenario with a route without a rate is refused")
                .bits_per_s()
        });
        let quantum = params.quantum.get().get();
        let route = |rate: u64| Route {
            earns: u128::from(rate) * u128::from(quantum),
            credit: 0,
        };
        let mut routes: Vec<Route> = rates.clone().map(route).collect();
        if let Some(first) = routes.first_mut() {
            first.earn();
        }
        Self {
            routes,
            lowest: rates.min().unwrap_or(1),
            turn: 0,
        }
    }
}

impl Route {
    fn earn(&mut self) {
        self.credit += self.earns.cast_signed();
    }
}

impl Split for Deficit {
    fn split(&mut self, _now: Instant, packet: View, routes: &mut Vec<u16>) {
        while self.routes[self.turn].credit <= 0 {
            self.turn = (self.turn + 1) % self.routes.len();
            self.routes[self.turn].earn();
        }
        let cost = u128::from(packet.size) * u128::from(self.lowest);
        self.routes[self.turn].credit -= cost.cast_signed();
        routes.push(number(self.turn));
    }
}
