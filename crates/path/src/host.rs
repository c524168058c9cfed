//! Interface for end hosts with a user-supplied stack.

use std::fmt;

use anabranch_core::{body::Body, packet::Ecn, units::Instant};

use anabranch_wire::Transport;

/// One end of a flow, sans-I/O.
///
/// The engine calls [`Host::on_packet`] when a packet arrives and [`Host::on_timer`] when
/// [`Host::timer`] is due. After either, and after [`Host::start`], it takes packets from
/// [`Host::poll_transmit`] until that returns `None`.
pub trait Host<B: Body>: fmt::Debug + Send {
    /// The flow starts. The first packet starts the far end.
    fn start(&mut self, _now: Instant) {}
    /// A packet arrived.
    fn on_packet(&mut self, now: Instant, packet: Arrived<'_, B>);
    /// A router has dropped a packet of this host because it exceeds the MTU of the next link.
    fn on_refused(&mut self, _now: Instant, _packet: Refused<'_, B>) {}
    /// The time returned by [`Host::timer`] is reached.
    fn on_timer(&mut self, _now: Instant) {}
    /// Returns when to call [`Host::on_timer`]. Queried after every other call.
    fn timer(&self) -> Option<Instant> {
        None
    }
    /// Returns the next packet to send, if any.
    fn poll_transmit(&mut self, now: Instant) -> Option<Departing<B>>;
    /// Application bytes delivered to this end in order, for the flow's goodput.
    fn delivered_bytes(&self) -> u64 {
        0
    }
}

/// A packet as it arrives at a host.
#[derive(Debug, Clone, Copy)]
pub struct Arrived<'a, B> {
    /// Its content.
    pub transport: &'a Transport<B>,
    /// ECN field on arrival.
    pub ecn: Ecn,
    /// Differentiated services code point.
    pub dscp: u8,
}

/// A packet that exceeds the MTU of a link.
#[derive(Debug, Clone, Copy)]
pub struct Refused<'a, B> {
    /// Its content.
    pub transport: &'a Transport<B>,
    /// Size of the largest IP packet that the link carries, in bytes.
    pub mtu: u32,
    /// Number of the router before the link; the host itself if the link is the host's.
    pub router: u32,
}

/// A packet as a host sends it.
#[derive(Debug, Clone)]
pub struct Departing<B> {
    /// Its content.
    pub transport: Transport<B>,
    /// Size of the IP packet in bytes, headers included.
    pub size: u32,
    /// ECN field.
    pub ecn: Ecn,
    /// Differentiated services code point.
    pub dscp: u8,
}
