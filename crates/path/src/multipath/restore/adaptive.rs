//! Adaptive: waits as long as what is missing is likely to come, and not at all where it is not.
//!
//! It sees packets and the time. From them it measures
//!
//! - how late those are that others of their flow have overtaken, and how many never come, whether it waited for them or
//!   not ([`lateness`](super::lateness));
//! - what each route has delivered last, by the sender's clock, and whether packets overtake each other on one route.
//!
//! A flow with a gap then waits until one of these:
//!
//! - what is missing arrives;
//! - routes that keep their order have lost as many packets as are missing, in the time between the packets before and behind
//!   the gap: a number that a route has skipped is lost, and when it was sent is known to lie between its neighbours. Losses that
//!   explain one gap explain no other;
//! - every route that lives has delivered something sent after the first packet behind the gap. Where routes keep their order
//!   the missing packets are lost. The study's method A has this rule for the packets of one flow; the tunnel's times make it
//!   one for all flows, so that a thin flow learns from thick ones. Where a route has been seen not to keep its order
//!   the rule rests;
//! - the other end says that it has given up a route ([`Content::GivenUp`]): it counts as having delivered all that left before;
//! - as long has passed as nearly all late packets took lately ([`QUANTILE`]), `limit` at most.
//!
//! Where the packet behind the gap says that what is lost is kept, the second and third rule do not hold: what was skipped is asked
//! for, and how long that takes is measured like all lateness, apart from it.
//!
//! Where hardly any of what was missing came after all ([`WORTH`]), gaps are losses, waiting only delays what the sender
//! must learn, and packets go on as they come: the study's method B. Each is chosen for each gap of each flow.
//!
//! Source: ours; the rule of the routes is method A of T. Hayashi et al., "Performance Evaluation of TCP Communication using
//! Multiple Routes", and the bound that of RFC 2890 §2.2.
//!
//! Where few packets overtake a late one ([`NEAR`]), the first two packets of a TCP flow behind a gap do not wait: a receiver
//! acknowledges them at once, which opens the congestion window of a sender whose receiver delays acknowledgments, and two
//! duplicates make no sender of RFC 5681 retransmit. The third waits. Where late packets are overtaken by more, or where the
//! other end retransmits what is lost, none passes: RACK-TLP (RFC 8985 §6.2) marks by time, not by number.
//!
//! # Differs from Linux
//! - Linux restores no order between interfaces.
//!
//! # Not implemented
//! - What a sender's TCP makes of reordering is not measured.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use anabranch_core::{
    packet::PacketId,
    registry::{Meta, Source},
    tunnel::{Content, Header},
    units::{Duration, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Arrived, Init, Restore,
    lateness::{FEW, Gaps, Late, Lateness, Place},
    line::FIRST,
    numbered::{Numbered, Outcome},
};
use crate::multipath::{
    order::Order,
    params::{Memory, Silence, Wait},
};
use anabranch_wire::seq::near;

/// Share of late packets that a wait is long enough for.
pub const QUANTILE: f64 = 0.98;
/// Share of missing packets that must come after all for waiting to be worth it.
pub const WORTH: f64 = 0.1;
/// Missing packets that must be known of before shares mean something.
pub const ENOUGH: u32 = 16;

/// Share of late packets that [`FEW`] packets at most must have overtaken for [`FEW`] to pass a gap.
pub const NEAR: f64 = 1.0 / 3.0;

const PICOS_PER_MICROSECOND: u64 = 1_000_000;

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "adaptive",
    title: "Adaptive",
    summary: "Measures how late and how often lost packets are, and waits for what is likely to come.",
    sources: &[
        Source {
            id: "Hayashi et al., \"Performance Evaluation of TCP Communication using Multiple Routes\"",
            items: &["method A", "method B"],
        },
        Source {
            id: "RFC 2890",
            items: &["§2.2"],
        },
    ],
};

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// The longest time that a packet waits, whatever was measured.
    pub limit: Wait,
    /// A route on which nothing has arrived for so long is taken to be dead.
    pub silence: Silence,
    /// The most that waits, all flows of a direction together: packets or bytes.
    pub memory: Memory,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            limit: Wait::from_millis(500),
            silence: Silence::from_millis(1_000),
            memory: Memory::packets(4_096),
        }
    }
}

/// What is known of a route.
#[derive(Debug, Default)]
struct Route {
    /// When a packet arrived there last, at first when any did.
    heard: Option<Instant>,
    /// A packet has arrived there.
    begun: bool,
    /// The highest number on it.
    top: u16,
    /// The latest departure of what it delivered, in microseconds by the sender's clock.
    departed: u64,
    order: Order,
}

/// How many numbers a packet that left at `departed` is ahead of the highest of its route. The number has 16 bits: a route
/// that loses more than half of them at once is told from a late packet by the time at which the packet left.
fn numbers_ahead(number: u16, departed: u64, route: &Route) -> i32 {
    let ahead = number.wrapping_sub(route.top);
    if departed > route.departed {
        i32::from(ahead)
    } else {
        i32::from(ahead.cast_signed())
    }
}

/// Packets that a route has skipped.
#[derive(Debug)]
struct Skipped {
    /// When they were sent: between these, by the sender's clock in microseconds.
    after: u64,
    before: u64,
    /// How many explain no gap yet.
    packets: u64,
}

/// Most losses that are remembered, of all routes.
const MOST_SKIPPED: usize = 256;

/// The restorer at work.
#[derive(Debug)]
pub struct Adaptive {
    limit: Duration,
    silence: Duration,
    flows: Numbered,
    gaps: Vec<Gaps>,
    /// By flow: when the packet before the one that is due left.
    last: Vec<u64>,
    skipped: VecDeque<Skipped>,
    lateness: Lateness,
    routes: Vec<Route>,
    /// The latest departure seen, and when it was: the sender's clock wraps after 71 minutes, which a tunnel may be silent
    /// for.
    clock: (u64, Instant),
    /// Gaps that routes may pass: departure of the first packet behind it, its route, flow and place.
    passing: BinaryHeap<Reverse<(u64, u8, u32, u64)>>,
}

impl Adaptive {
    /// Over so many routes.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        let limit = params.limit.get();
        Self {
            limit,
            silence: params.silence.get(),
            flows: Numbered::new(params.memory),
            gaps: Vec::new(),
            last: Vec::new(),
            skipped: VecDeque::new(),
            lateness: Lateness::new(limit + limit),
            routes: (0..init.routes).map(|_| Route::default()).collect(),
            clock: (FIRST, Instant::START),
            passing: BinaryHeap::new(),
        }
    }

    /// How long a packet behind a gap waits at most, where what is missing may be retransmitted or not.
    fn patience(&self, kept: bool) -> Duration {
        let quantile = |why| self.lateness.quantile(why, QUANTILE);
        if kept && self.copies_come() {
            if self.lateness.known(Late::Resent) < ENOUGH {
                return self.limit;
            }
            let late = quantile(Late::Overtaken).unwrap_or_default();
            let resent = quantile(Late::Resent).unwrap_or(self.limit);
            return late.max(resent).min(self.limit);
        }
        if self.lateness.known(Late::Overtaken) < ENOUGH {
            return self.limit;
        }
        if self.lateness.filled(Late::Overtaken) < WORTH {
            return Duration::ZERO;
        }
        quantile(Late::Overtaken).map_or(self.limit, |late| late.min(self.limit))
    }

    /// How many packets of a TCP flow pass a gap before others wait for it.
    fn ahead(&self) -> usize {
        let known = self.lateness.known(Late::Overtaken) >= ENOUGH;
        if known && self.lateness.by_few() >= NEAR {
            FEW
        } else {
            0
        }
    }

    /// Whether what can be asked for is likely to come.
    fn copies_come(&self) -> bool {
        self.lateness.known(Late::Resent) < ENOUGH || self.lateness.filled(Late::Resent) >= WORTH
    }

    /// What an arrival says of its route. Its departure.
    fn hear(&mut self, now: Instant, tunnel: &Header) -> u64 {
        let (latest, heard) = self.clock;
        let passed = now.saturating_since(heard).as_picos() / PICOS_PER_MICROSECOND;
        let departed = near(latest + passed, tunnel.sent);
        if departed >= latest {
            self.clock = (departed, now);
        }
        if self.routes.iter().all(|route| route.heard.is_none()) {
            for route in &mut self.routes {
                route.heard = Some(now);
            }
        }
        let comes = tunnel.kept && self.copies_come();
        if let Some(route) = self.routes.get_mut(usize::from(tunnel.route)) {
            let ahead = numbers_ahead(tunnel.route_number, departed, route);
            let behind = route.begun && ahead < 0;
            let direction = if route.begun { ahead.signum() } else { 0 };
            route.order.arrived(i16::try_from(direction).unwrap_or(0));
            if ahead > 1 && route.begun && !comes && route.order.is_kept() {
                if self.skipped.len() == MOST_SKIPPED {
                    self.skipped.pop_front();
                }
                self.skipped.push_back(Skipped {
                    after: route.departed,
                    before: departed,
                    packets: u64::from(ahead.unsigned_abs()) - 1,
                });
            }
            if !behind {
                route.top = tunnel.route_number;
            }
            route.departed = route.departed.max(departed);
            route.heard = Some(now);
            route.begun = true;
        }
        departed
    }

    /// Gives up the gaps that every route has passed.
    fn pass(&mut self, now: Instant, released: &mut Vec<PacketId>) {
        if self.passing.is_empty() {
            return;
        }
        let silence = self.silence;
        let lives = |route: &Route| {
            let heard = route.heard.map(|heard| now.saturating_since(heard));
            heard.is_some_and(|silent| silent < silence)
        };
        if !self.routes.iter().all(|route| route.order.is_kept()) {
            self.passing.clear();
            return;
        }
        while let Some(&Reverse((departed, own, flow, at))) = self.passing.peek() {
            let mut others = (0..).zip(&self.routes).filter(|(number, _)| *number != own);
            if !others.all(|(_, route)| !lives(route) || route.departed > departed) {
                return;
            }
            self.passing.pop();
            let flow = flow as usize;
            if self.flows.first(flow).is_some_and(|first| first.at == at) {
                self.flows.give_up(flow, released);
                self.watch(flow);
            }
        }
    }

    /// A route was given up at `departed`: what it did not deliver until now will not come, retransmitted or not.
    fn leave(&mut self, now: Instant, route: usize, departed: u64, released: &mut Vec<PacketId>) {
        let Some(route) = self.routes.get_mut(route) else {
            return;
        };
        route.departed = route.departed.max(departed);
        route.heard = None;
        for flow in 0..self.gaps.len() {
            self.watch(flow);
        }
        self.pass(now, released);
    }

    /// Gives up the gap that a flow waits for if what is missing has been lost.
    fn explain(&mut self, flow: usize, released: &mut Vec<PacketId>) -> bool {
        let Some((missing, departed)) = self.flows.gap(flow) else {
            return false;
        };
        let last = self.last[flow];
        let fits = |skipped: &&mut Skipped| skipped.after <= departed && skipped.before >= last;
        let explained: u64 = self
            .skipped
            .iter_mut()
            .filter(fits)
            .map(|s| s.packets)
            .sum();
        if explained < missing {
            return false;
        }
        let mut left = missing;
        for skipped in self.skipped.iter_mut().filter(fits) {
            let taken = skipped.packets.min(left);
            skipped.packets -= taken;
            left -= taken;
        }
        self.skipped.retain(|skipped| skipped.packets > 0);
        self.flows.give_up(flow, released);
        true
    }

    /// Wants to know when routes pass the gap that a flow waits for.
    fn watch(&mut self, flow: usize) {
        let Some(first) = self.flows.first(flow) else {
            return;
        };
        let (departed, route) = (first.departed, first.route);
        let entry = (
            departed,
            route,
            u32::try_from(flow).expect("16 bits"),
            first.at,
        );
        self.passing.push(Reverse(entry));
    }
}

impl Restore for Adaptive {
    fn arrive(&mut self, now: Instant, packet: Arrived, released: &mut Vec<PacketId>) {
        let departed = self.hear(now, &packet.tunnel);
        let place = self.flows.place(&packet);
        let (flow, at) = place;
        if flow >= self.gaps.len() {
            self.gaps.resize_with(flow + 1, Gaps::default);
        }
        let kept = packet.tunnel.kept;
        self.flows.ahead = if kept { 0 } else { self.ahead() };
        let known = Place { at, departed, kept };
        self.lateness
            .arrive(now, &mut self.gaps[flow], known, FIRST);
        if flow >= self.last.len() {
            self.last.resize(flow + 1, 0);
        }
        let due = now + self.patience(kept);
        let before = self.flows.first(flow).map(|first| first.at);
        let outcome = self.flows.arrive(packet, place, departed, due, released);
        while !self.skipped.is_empty() && self.explain(flow, released) {}
        if self.flows.first(flow).is_none() {
            self.last[flow] = self.last[flow].max(departed);
        }
        let after = self.flows.first(flow).map(|first| first.at);
        let comes = kept && self.copies_come();
        if !comes
            && after.is_some()
            && (after != before || outcome == Outcome::Held && after == Some(at))
        {
            self.watch(flow);
        }
        if due <= now {
            self.flows.on_timer(now, released);
        }
        self.pass(now, released);
    }
    fn pass_over(&mut self, now: Instant, tunnel: &Header, released: &mut Vec<PacketId>) {
        let departed = self.hear(now, tunnel);
        if tunnel.content == Content::GivenUp {
            self.leave(now, usize::from(tunnel.flow), departed, released);
        }
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
