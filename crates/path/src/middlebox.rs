//! Elements in the middle of a path that are neither queue nor link: splitters, resequencers,
//! coders.
//!
//! They take packets by value, so one implementation serves simulated lengths (simulator) and real
//! bytes (live engine, gateway).

use std::fmt;

use anabranch_core::{
    body::Body,
    packet::{ConnectionId, Direction, FlowId, Packet},
    trace::Fate,
    units::Instant,
};

use crate::report::Report;
use anabranch_wire::Transport;

/// A packet in a middlebox.
pub type Held<B> = Packet<Transport<B>>;

/// Connection of a packet, as a middlebox identifies it.
#[must_use]
pub fn connection_of<B: Body>(packet: &Held<B>) -> ConnectionId {
    packet.payload.connection().unwrap_or(packet.connection)
}

/// An element with any number of outputs and a timer, sans-I/O.
pub trait Middlebox<B: Body>: fmt::Debug + Send {
    /// Handles a packet.
    fn on_packet(&mut self, now: Instant, packet: Held<B>, out: &mut Output<B>);
    /// Handles a packet of `flow`, for a middlebox that distinguishes flows.
    fn on_packet_of(&mut self, _flow: FlowId, now: Instant, packet: Held<B>, out: &mut Output<B>) {
        self.on_packet(now, packet, out);
    }
    /// Handles the timer at the requested time.
    fn on_timer(&mut self, _now: Instant, _out: &mut Output<B>) {}
    /// When to call [`Middlebox::on_timer`]; queried after every other call.
    fn timer(&self) -> Option<Instant> {
        None
    }
    /// Counters, if it is an end of a gateway.
    fn report(&self) -> Option<Report> {
        None
    }
    /// Packets still held that will not be forwarded: connection, direction and number.
    fn lost(&self, _now: Instant) -> Vec<(ConnectionId, Direction, u32)> {
        Vec::new()
    }
    /// Packets received and not forwarded.
    fn kept(&self) -> Kept {
        Kept::default()
    }
}

/// Packets received by a middlebox and not forwarded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    /// Will be forwarded.
    pub held: u64,
    /// Will never be forwarded.
    pub discarded: u64,
}

/// Output of a middlebox, in order.
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
    /// Forwards a packet along its route.
    pub fn forward(&mut self, packet: Held<B>) {
        self.sent.push((None, packet, None));
    }
    /// Sends a packet into one of the element's ports; its route continues after that link.
    pub fn emit(&mut self, port: u16, packet: Held<B>) {
        self.sent.push((Some(port), packet, None));
    }
    /// Sends a packet that the element created (`Fate::Injected`) or rebuilt (`Fate::Rebuilt`).
    pub fn create(&mut self, port: Option<u16>, packet: Held<B>, how: Fate) {
        self.sent.push((port, packet, Some(how)));
    }
    /// Removes the output: port (`None`: the route), packet, and the origin of a packet that the
    /// element created.
    pub fn drain(&mut self) -> impl Iterator<Item = (Option<u16>, Held<B>, Option<Fate>)> + '_ {
        self.sent.drain(..)
    }
}
