//! Adaptive: a packet after a gap waits as long as the missing packets are likely to arrive, and
//! not at all if they are not.
//!
//! From packets and the time it measures
//!
//! - the lateness of packets that others of their flow have overtaken, and the share of missing
//!   packets that never arrive, independent of whether it waited for them
//!   ([`lateness`](super::lateness));
//! - the latest delivery of each route by the sender's clock, and whether a route reorders packets.
//!
//! A flow with a gap then waits until one of these events:
//!
//! - The missing packets arrive.
//! - Routes that preserve order have lost at least as many packets as are missing, in the time
//!   between the packets before and after the gap. A number skipped by a route is lost, and it was
//!   sent between its neighbours. A loss explains only one gap.
//! - Every active route has delivered a packet sent after the first packet after the gap. If routes
//!   preserve order, the missing packets are then lost. In the study, method A has this rule for
//!   the packets of one flow; the tunnel's times extend it to all flows, so that a flow with few
//!   packets benefits from the others. The rule is suspended if a route has been observed to
//!   reorder.
//! - The other end reports an abandoned route ([`Content::GivenUp`]), which counts as having
//!   delivered all packets sent before.
//! - The wait reaches the recent lateness of nearly all late packets ([`QUANTILE`]), at most
//!   `limit`.
//!
//! If the packet after the gap indicates that lost packets are stored, the second and third rules
//! do not apply: the missing packets have been requested again. The time this takes is measured
//! separately from other lateness.
//!
//! If hardly any missing packets arrived late ([`WORTH`]), gaps are losses, and waiting would only
//! delay the sender's loss detection. Packets are then forwarded as they arrive: the study's method
//! B. The choice is made for each gap of each flow.
//!
//! Source: own design. The rule on routes is method A of T. Hayashi et al., "Performance Evaluation
//! of TCP Communication using Multiple Routes", and the bound is that of RFC 2890 §2.2.
//!
//! If late packets are overtaken by few packets ([`NEAR`]), the first two packets of a TCP flow
//! after a gap do not wait. A receiver acknowledges them at once, which opens the congestion window
//! of a sender whose receiver delays acknowledgments, and two duplicate ACKs do not make a sender
//! retransmit (RFC 5681). The third waits. If late packets are overtaken by more, or if the other
//! end retransmits lost packets, all wait: RACK-TLP (RFC 8985 §6.2) marks losses by time, not by
//! number.
//!
//! # Differs from Linux
//! - Linux restores no order between interfaces.
//!
//! # Not implemented
//! - Measuring the response of the sender's TCP to reordering.

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

/// Share of late packets that a wait covers.
pub const QUANTILE: f64 = 0.98;
/// Minimum share of missing packets that arrive late for waiting to be worthwhile.
pub const WORTH: f64 = 0.1;
/// Minimum number of missing packets before shares are meaningful.
pub const ENOUGH: u32 = 16;

/// Minimum share of late packets that are overtaken by at most [`FEW`] packets, for [`FEW`] packets
/// to pass a gap.
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
    /// Maximum time that a packet waits.
    pub limit: Wait,
    /// Time without an arrival after which a route counts as dead.
    pub silence: Silence,
    /// Maximum memory of waiting packets, for all flows of a direction: packets or bytes.
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

/// State of a route.
#[derive(Debug, Default)]
struct Route {
    /// Time of the last arrival on the route; initially that of the first arrival on any route.
    heard: Option<Instant>,
    /// A packet has arrived there.
    begun: bool,
    /// Highest number that arrived.
    top: u16,
    /// Latest departure among its deliveries, in microseconds of the sender's clock.
    departed: u64,
    order: Order,
}

/// Distance of a packet's number from the highest number of its route. Numbers have 16 bits; the
/// departure time distinguishes a route that lost more than half of them at once from a late
/// packet.
fn numbers_ahead(number: u16, departed: u64, route: &Route) -> i32 {
    let ahead = number.wrapping_sub(route.top);
    if departed > route.departed {
        i32::from(ahead)
    } else {
        i32::from(ahead.cast_signed())
    }
}

/// Packets skipped by a route.
#[derive(Debug)]
struct Skipped {
    /// Bounds of their departure, in microseconds of the sender's clock.
    after: u64,
    before: u64,
    /// Number of packets that explain no gap yet.
    packets: u64,
}

/// Maximum number of losses recorded, over all routes.
const MOST_SKIPPED: usize = 256;

/// Adaptive restorer.
#[derive(Debug)]
pub struct Adaptive {
    limit: Duration,
    silence: Duration,
    flows: Numbered,
    gaps: Vec<Gaps>,
    /// By flow: departure of the packet before the next expected one.
    last: Vec<u64>,
    skipped: VecDeque<Skipped>,
    lateness: Lateness,
    routes: Vec<Route>,
    /// Latest departure seen, and the time of its arrival. The sender's clock wraps after 71
    /// minutes, and a tunnel may be silent for longer.
    clock: (u64, Instant),
    /// Gaps that routes may pass: departure of the first packet after the gap, its route, flow and
    /// number.
    passing: BinaryHeap<Reverse<(u64, u8, u32, u64)>>,
}

impl Adaptive {
    /// Creates a restorer for these routes.
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

    /// Maximum wait after a gap. `kept`: the missing packets may be retransmitted.
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

    /// Number of packets of a TCP flow that may pass a gap before others wait for it.
    fn ahead(&self) -> usize {
        let known = self.lateness.known(Late::Overtaken) >= ENOUGH;
        if known && self.lateness.by_few() >= NEAR {
            FEW
        } else {
            0
        }
    }

    /// Whether requested retransmissions are likely to arrive.
    fn copies_come(&self) -> bool {
        self.lateness.known(Late::Resent) < ENOUGH || self.lateness.filled(Late::Resent) >= WORTH
    }

    /// Updates the state of a route at an arrival. Returns the packet's departure.
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

    /// A route was abandoned at `departed`: packets it has not delivered by now will not arrive,
    /// not even retransmitted.
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

    /// Gives up the gap of a flow if its missing packets are explained by losses.
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

    /// Registers the gap of a flow for the check that all routes have passed it.
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
