//! End hosts that are not ours: the seam for a user's own stack.

use std::fmt;

use anabranch_core::{body::Body, packet::Ecn, units::Instant};

use anabranch_wire::Transport;

/// One end of a flow, sans-I/O.
///
/// The engine calls [`Host::on_packet`] when a packet arrives and [`Host::on_timer`] when
/// [`Host::timer`] has come; after either, and after [`Host::start`], it takes packets from
/// [`Host::poll_transmit`] until there is none.
pub trait Host<B: Body>: fmt::Debug + Send {
    /// The flow starts. The far end is started by its first packet.
    fn start(&mut self, _now: Instant) {}
    /// A packet arrived.
    fn on_packet(&mut self, now: Instant, packet: Arrived<'_, B>);
    /// A router could not pass a packet of this host on, because it is larger than the MTU of the link there.
    fn on_refused(&mut self, _now: Instant, _packet: Refused<'_, B>) {}
    /// The time asked for has come.
    fn on_timer(&mut self, _now: Instant) {}
    /// When to call [`Host::on_timer`]; asked after every other call.
    fn timer(&self) -> Option<Instant> {
        None
    }
    /// The next packet to send, if any.
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

/// A packet that a link does not carry.
#[derive(Debug, Clone, Copy)]
pub struct Refused<'a, B> {
    /// Its content.
    pub transport: &'a Transport<B>,
    /// Bytes of the largest IP packet that the link carries.
    pub mtu: u32,
    /// The router before the link, by number. It is the host itself if the link is its own.
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
