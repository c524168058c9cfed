//! Elements in the middle of a path that are neither queue nor link: splitters, resequencers,
//! coders.
//!
//! They take packets by value, so one implementation serves lengths (simulator) and bytes (live
//! engine, gateway).

use std::fmt;

use anabranch_core::{
    body::Body,
    packet::{ConnectionId, Direction, FlowId, Packet},
    trace::Fate,
    units::Instant,
};

use crate::report::Report;
use anabranch_wire::Transport;

/// A packet as a middlebox holds it.
pub type Held<B> = Packet<Transport<B>>;

/// The connection that a packet is of, as a middlebox tells connections apart.
#[must_use]
pub fn connection_of<B: Body>(packet: &Held<B>) -> ConnectionId {
    packet.payload.connection().unwrap_or(packet.connection)
}

/// An element with any number of outputs and a timer, sans-I/O.
pub trait Middlebox<B: Body>: fmt::Debug + Send {
    /// A packet arrived.
    fn on_packet(&mut self, now: Instant, packet: Held<B>, out: &mut Output<B>);
    /// The same, for a middlebox that knows flows: the packet is one of `flow`.
    fn on_packet_of(&mut self, _flow: FlowId, now: Instant, packet: Held<B>, out: &mut Output<B>) {
        self.on_packet(now, packet, out);
    }
    /// The time asked for has come.
    fn on_timer(&mut self, _now: Instant, _out: &mut Output<B>) {}
    /// When to call [`Middlebox::on_timer`]; asked after every other call.
    fn timer(&self) -> Option<Instant> {
        None
    }
    /// What it counted, if it is an end of a gateway.
    fn report(&self) -> Option<Report> {
        None
    }
    /// Packets that have come, are kept until now, and will not go on: connection, direction and number.
    fn lost(&self, _now: Instant) -> Vec<(ConnectionId, Direction, u32)> {
        Vec::new()
    }
    /// What has come and did not go on.
    fn kept(&self) -> Kept {
        Kept::default()
    }
}

/// Packets that a middlebox was given and has not passed on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    /// It will.
    pub held: u64,
    /// It never will.
    pub discarded: u64,
}

/// Where a middlebox puts what it sends, in order.
#[derive(Debug)]
pub struct Output<B> {
    sent: Vec<(Option<u16>, Held<B>, Option<Fate>)>,
}

impl<B> Default for Output<B> {
    fn default() -> Self {
        Self { sent: Vec::new() }
    }
}

impl<B> Output<B> {
    /// Sends a packet on along its route.
    pub fn forward(&mut self, packet: Held<B>) {
        self.sent.push((None, packet, None));
    }
    /// Sends a packet into one of the element's ports; its route goes on behind that link.
    pub fn emit(&mut self, port: u16, packet: Held<B>) {
        self.sent.push((Some(port), packet, None));
    }
    /// Sends a packet that the element made (`Fate::Injected`) or rebuilt (`Fate::Rebuilt`).
    pub fn create(&mut self, port: Option<u16>, packet: Held<B>, how: Fate) {
        self.sent.push((port, packet, Some(how)));
    }
    /// Takes what was sent: port (`None`: the route), packet, and how it came to be if the element
    /// made it.
    pub fn drain(&mut self) -> impl Iterator<Item = (Option<u16>, Held<B>, Option<Fate>)> + '_ {
        self.sent.drain(..)
    }
}
