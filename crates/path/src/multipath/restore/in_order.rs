//! In order: the study's method A, which waits until what is missing has arrived or every route has
//! passed it.
//!
//! Order is TCP's: sequence number and length, flow by flow. A segment at or below the next expected number, a
//! pure acknowledgment and whatever is not TCP pass at once. What is above waits until
//!
//! - the missing segment has arrived, the original or a retransmission, or
//! - a segment above the gap has arrived on every route that counts: since routes keep their order, what was
//!   missing is then lost.
//!
//! The text leaves open which of the two ends the wait. With [`Release::Either`] the earlier does. With
//! [`Release::Both`] the later does: a lost segment's retransmission arrives after every route has passed the gap,
//! so the gap ends when the retransmission arrives, and TCP behind the gateway sees no duplicate acknowledgment.
//!
//! A route that has sent nothing since the gap does not count, the contract says. An exit cannot see what a route has
//! not delivered, so silence tells it: a route on which no packet of any flow has arrived for `silence` does not
//! count, and nothing waits longer than `silence` in any case. The default is longer than TCP's usual
//! retransmission timeout, so that in the study, whose text has no such bound, it does not act.
//!
//! The state of a connection is dropped with its FIN or RST.
//!
//! Source: T. Hayashi et al., "Performance Evaluation of TCP Communication using Multiple Routes", method A.
//!
//! # Differs from Linux
//! - Linux restores no order between interfaces.
//!
//! # Not implemented
//! - Ports and addresses: a connection is known by its number.

use std::collections::BTreeMap;

use anabranch_core::{
    packet::PacketId,
    registry::{Meta, Source},
    tunnel::{Content, Header},
    units::{Duration, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Arrived, Init, Restore, TcpPlace,
    alarms::Alarms,
    line::{FIRST, Held, Line, Waiting},
};
use crate::multipath::params::{Memory, Silence};
use anabranch_wire::seq::near;

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "in-order",
    title: "In order",
    summary: "TCP segments wait until what is missing has arrived or every route has passed it.",
    sources: &[Source {
        id: "Hayashi et al., \"Performance Evaluation of TCP Communication using Multiple Routes\"",
        items: &["method A"],
    }],
};

/// What ends the wait for a missing segment (Hayashi et al., method A).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Release {
    /// The segment's arrival, or a segment above the gap on every route: whichever comes first.
    #[default]
    Either,
    /// Both of them: a segment above the gap on every route does not end the wait.
    Both,
}

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// What ends the wait for a missing segment.
    pub release: Release,
    /// A route on which nothing has arrived for so long does not count, and no segment waits longer.
    pub silence: Silence,
    /// The most that waits, all flows of a direction together: packets or bytes.
    pub memory: Memory,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            release: Release::Either,
            silence: Silence::from_millis(10_000),
            memory: Memory::packets(4_096),
        }
    }
}

#[derive(Debug)]
struct Flow {
    line: Line,
    /// Sequence number of the SYN, if it came this way.
    opened: Option<u32>,
    /// The highest place that has arrived on each route.
    highest: Vec<u64>,
    /// Its end has been seen.
    ended: bool,
}

/// The restorer at work.
#[derive(Debug)]
pub struct InOrder {
    release: Release,
    silence: Duration,
    held: Held,
    /// By connection.
    flows: BTreeMap<u32, Flow>,
    alarms: Alarms,
    /// By route: when a packet arrived there last, at first when any did.
    heard: Vec<Option<Instant>>,
    gaps_given_up: u64,
}

impl InOrder {
    /// Over so many routes.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        Self {
            release: params.release,
            silence: params.silence.get(),
            held: Held::new(params.memory.get()),
            flows: BTreeMap::new(),
            alarms: Alarms::new(),
            heard: vec![None; init.routes],
            gaps_given_up: 0,
        }
    }

    fn hear(&mut self, now: Instant, route: u8) {
        if self.heard.iter().all(Option::is_none) {
            self.heard.fill(Some(now));
        }
        if let Some(heard) = self.heard.get_mut(usize::from(route)) {
            *heard = Some(now);
        }
    }

    /// The flow of a connection that opens, or that is seen for the first time.
    fn enter(&mut self, connection: u32, tcp: TcpPlace, released: &mut Vec<PacketId>) {
        let known = self.flows.get_mut(&connection);
        if let Some(flow) = known {
            if !tcp.opens || flow.opened == Some(tcp.seq) {
                return;
            }
            // Another connection under the same number: nothing of the old one is due any more.
            flow.line.give_up(u64::MAX, &mut self.held, released);
        }
        let mut line = Line::default();
        line.next = near(FIRST, tcp.seq);
        let routes = self.heard.len();
        let flow = Flow {
            line,
            opened: tcp.opens.then_some(tcp.seq),
            highest: vec![0; routes],
            ended: false,
        };
        self.flows.insert(connection, flow);
    }

    /// Gives up every gap that all routes that count have passed.
    fn pass(&mut self, now: Instant, connection: u32, released: &mut Vec<PacketId>) {
        if self.release == Release::Both {
            return;
        }
        let Some(flow) = self.flows.get_mut(&connection) else {
            return;
        };
        while let Some(first) = flow.line.first() {
            let at = first.at;
            let counts = |heard: &Option<Instant>| {
                heard.is_some_and(|heard| now.saturating_since(heard) < self.silence)
            };
            let mut routes = self.heard.iter().zip(&flow.highest);
            if !routes.all(|(heard, highest)| !counts(heard) || *highest > flow.line.next) {
                break;
            }
            self.gaps_given_up += flow.line.give_up(at, &mut self.held, released);
        }
    }

    /// The earliest alarm sounds: at `now`, or when it is for.
    fn alarm(&mut self, now: Option<Instant>, released: &mut Vec<PacketId>) {
        let Some((due, connection)) = self.alarms.pop() else {
            return;
        };
        if let Some(flow) = self.flows.get_mut(&connection) {
            let line = &mut flow.line;
            line.armed = None;
            self.gaps_given_up += line.sound(now.unwrap_or(due), &mut self.held, released);
            line.arm(connection, &mut self.alarms);
            self.leave(connection);
        }
    }

    /// Forgets a connection that has ended, once nothing of it waits.
    fn leave(&mut self, connection: u32) {
        let done = |flow: &Flow| flow.ended && flow.line.is_empty();
        if self.flows.get(&connection).is_some_and(done) {
            self.flows.remove(&connection);
        }
    }
}

impl Restore for InOrder {
    fn arrive(&mut self, now: Instant, packet: Arrived, released: &mut Vec<PacketId>) {
        self.hear(now, packet.tunnel.route);
        let connection = packet.connection.0;
        let Some(tcp) = packet.tcp.filter(|tcp| tcp.len > 0) else {
            if packet.tcp.is_some_and(|tcp| tcp.ends)
                && let Some(mut flow) = self.flows.remove(&connection)
            {
                flow.line.give_up(u64::MAX, &mut self.held, released);
            }
            released.push(packet.packet);
            return;
        };
        self.enter(connection, tcp, released);
        let flow = self.flows.get_mut(&connection).expect("it was entered");
        let at = near(flow.line.next, tcp.seq);
        let end = at + u64::from(tcp.len);
        flow.ended |= tcp.ends;
        if let Some(highest) = flow.highest.get_mut(usize::from(packet.tunnel.route)) {
            *highest = (*highest).max(at);
        }
        let line = &mut flow.line;
        if at <= line.next {
            released.push(packet.packet);
            line.next = line.next.max(end);
            line.release(&mut self.held, released);
        } else {
            let waiting = Waiting {
                at,
                end,
                packet: Some(packet.packet),
                size: packet.size,
                route: packet.tunnel.route,
                departed: 0,
                due: now + self.silence,
            };
            line.hold(&mut self.held, waiting);
            line.arm(connection, &mut self.alarms);
            while self.held.is_over() {
                // Whoever may wait least gives up first. An alarm that came too early is put off.
                self.alarm(None, released);
            }
        }
        self.pass(now, connection, released);
        self.leave(connection);
    }

    fn pass_over(&mut self, now: Instant, tunnel: &Header, released: &mut Vec<PacketId>) {
        let given_up = self.heard.get_mut(usize::from(tunnel.flow));
        let Some(heard) = given_up.filter(|_| tunnel.content == Content::GivenUp) else {
            return;
        };
        // Until something arrives on it again it counts no more.
        *heard = None;
        let waiting: Vec<u32> = self.flows.keys().copied().collect();
        for connection in waiting {
            self.pass(now, connection, released);
            self.leave(connection);
        }
    }

    fn on_timer(&mut self, now: Instant, released: &mut Vec<PacketId>) {
        while self.alarms.next().is_some_and(|due| due <= now) {
            self.alarm(Some(now), released);
        }
    }

    fn timer(&self) -> Option<Instant> {
        self.alarms.next()
    }

    fn gaps_given_up(&self) -> u64 {
        self.gaps_given_up
    }
}
