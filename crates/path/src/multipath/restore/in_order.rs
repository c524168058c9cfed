//! In order: method A of the study. A packet waits until the missing packets have arrived or every
//! route has passed the gap.
//!
//! The order is that of TCP: sequence number and length, per flow. A segment at or below the next
//! expected number, a pure acknowledgment and a packet of another protocol are forwarded at once. A
//! segment above waits until
//!
//! - the missing segment has arrived, as original or retransmission, or
//! - a segment above the gap has arrived on every route that counts: since routes preserve order,
//!   the missing segment is then lost.
//!
//! The text does not specify which of the two ends the wait. With [`Release::Either`] it is the
//! earlier event. With [`Release::Both`] it is the later: the retransmission of a lost segment
//! arrives after every route has passed the gap, so its arrival ends the wait, and TCP downstream
//! of the gateway sees no duplicate acknowledgment.
//!
//! By the contract, a route that has sent nothing since the gap does not count. An exit cannot
//! observe undelivered packets, so it uses silence: a route on which no packet of any flow has
//! arrived for `silence` does not count, and no packet waits longer than `silence`. The default is
//! longer than the usual retransmission timeout of TCP, so that the bound has no effect in the
//! study, whose text has none.
//!
//! The state of a connection is removed at its FIN or RST.
//!
//! Source: T. Hayashi et al., "Performance Evaluation of TCP Communication using Multiple Routes",
//! method A.
//!
//! # Differs from Linux
//! - Linux restores no order between interfaces.
//!
//! # Not implemented
//! - Ports and addresses: a connection is identified by its number.

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

/// Event that ends the wait for a missing segment (Hayashi et al., method A).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Release {
    /// The segment's arrival, or a segment above the gap on every route, whichever is first.
    #[default]
    Either,
    /// Both events: a segment above the gap on every route does not end the wait.
    Both,
}

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Event that ends the wait for a missing segment.
    pub release: Release,
    /// Time without an arrival after which a route does not count, and maximum wait of a segment.
    pub silence: Silence,
    /// Maximum memory of waiting packets, for all flows of a direction: packets or bytes.
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
    /// Sequence number of the SYN, if it passed this gateway.
    opened: Option<u32>,
    /// Highest sequence number that has arrived on each route.
    highest: Vec<u64>,
    /// A FIN or RST has been seen.
    ended: bool,
}

/// In-order restorer.
#[derive(Debug)]
pub struct InOrder {
    release: Release,
    silence: Duration,
    held: Held,
    /// By connection.
    flows: BTreeMap<u32, Flow>,
    alarms: Alarms,
    /// By route: time of the last arrival; initially that of the first arrival on any route.
    heard: Vec<Option<Instant>>,
    gaps_given_up: u64,
}

impl InOrder {
    /// Creates a restorer for these routes.
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

    /// Creates the flow of a connection at its SYN or its first packet.
    fn enter(&mut self, connection: u32, tcp: TcpPlace, released: &mut Vec<PacketId>) {
        let known = self.flows.get_mut(&connection);
        if let Some(flow) = known {
            if !tcp.opens || flow.opened == Some(tcp.seq) {
                return;
            }
            // A new connection reuses the number: packets of the old one are released.
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

    /// Handles the earliest alarm as of `now`, or as of the alarm's time.
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

    /// Removes an ended connection once none of its packets waits.
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
                // The packet with the earliest deadline is released first. An early alarm is set
                // again.
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
        // The route does not count until a packet arrives on it again.
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
