//! Restorers: decide when a packet that arrived over one of several routes is forwarded.
//!
//! To add a restorer, add a file in `restore/` and a line in the registry below. A restorer from
//! outside the workspace implements [`Restore`] and is passed as [`AnyRestore::Boxed`].

use std::{fmt, sync::Arc};

use anabranch_core::{
    body::Body,
    component, components,
    packet::{ConnectionId, PacketId},
    tunnel::Header,
    units::Instant,
};

use anabranch_wire::{Flags, Transport};

mod alarms;
mod lateness;
mod line;
mod numbered;

/// A packet from a restorer's point of view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Handle of the packet at this gateway, used to release it.
    pub packet: PacketId,
    /// Size of the IP packet in bytes, without the tunnel's overhead.
    pub size: u32,
    /// Its connection; a real gateway would use addresses, ports and protocol.
    pub connection: ConnectionId,
    /// Tunnel header. The route is always valid; the other fields are valid only if the restorer's
    /// configuration needs the header.
    pub tunnel: Header,
    /// Position in the TCP stream; `None` for other protocols.
    pub tcp: Option<TcpPlace>,
}

/// Position of a segment in its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpPlace {
    /// Its sequence number.
    pub seq: u32,
    /// Length in sequence numbers: octets, SYN, FIN.
    pub len: u32,
    /// SYN is set.
    pub opens: bool,
    /// FIN or RST is set.
    pub ends: bool,
}

impl TcpPlace {
    /// Returns the position of a TCP segment.
    #[must_use]
    pub fn of<B: Body>(transport: &Transport<B>) -> Option<Self> {
        let Transport::Tcp(segment) = transport else {
            return None;
        };
        let flags = segment.flags;
        let marks = u32::from(flags.any(Flags::SYN)) + u32::from(flags.any(Flags::FIN));
        Some(Self {
            seq: segment.seq,
            len: segment.body.len() + marks,
            opens: flags.any(Flags::SYN),
            ends: flags.any(Flags::FIN | Flags::RST),
        })
    }
    /// Whether the segment has no position in the stream's order.
    #[must_use]
    pub const fn is_pure_ack(&self) -> bool {
        self.len == 0 && !self.ends
    }
}

/// A restorer of one direction. It releases every packet exactly once.
pub trait Restore: fmt::Debug + Send {
    /// A packet has arrived. Appends the packets to forward now, this one or held ones, to
    /// `released` in order.
    fn arrive(&mut self, now: Instant, packet: Arrived, released: &mut Vec<PacketId>);
    /// A packet has arrived that is not forwarded: a duplicate, or a packet of the tunnel. It
    /// occupies a number on its route nevertheless.
    fn pass_over(&mut self, _now: Instant, _tunnel: &Header, _released: &mut Vec<PacketId>) {}
    /// The time returned by [`Restore::timer`] is reached.
    fn on_timer(&mut self, _now: Instant, _released: &mut Vec<PacketId>) {}
    /// Returns when to call [`Restore::on_timer`]. Queried after every other call.
    fn timer(&self) -> Option<Instant> {
        None
    }
    /// Number of gaps that were given up after waiting.
    fn gaps_given_up(&self) -> u64 {
        0
    }
}

/// Inputs of a restorer other than its own parameters.
#[derive(Debug, Clone, Copy)]
pub struct Init {
    /// Number of routes.
    pub routes: usize,
}

/// Makes a restorer from outside the workspace.
pub type Factory = Arc<dyn Fn(&Init) -> Box<dyn Restore> + Send + Sync>;

/// A restorer from outside the workspace in a scenario.
pub type Custom = component::Custom<Factory>;

components! {
    enum AnyRestore: Restore(init: &Init);

    #[serde(rename = "none")]
    none::Unrestored,
    in_order::InOrder,
    timed::Timed,
    adaptive::Adaptive,
}

impl Config {
    /// Whether the tunnel must write its header.
    #[must_use]
    pub const fn needs_header(&self) -> bool {
        match self {
            Self::Unrestored(_) | Self::InOrder(_) => false,
            Self::Timed(_) | Self::Adaptive(_) | Self::Custom(_) => true,
        }
    }
}

impl Restore for AnyRestore {
    fn arrive(&mut self, now: Instant, packet: Arrived, released: &mut Vec<PacketId>) {
        each!(self, r => r.arrive(now, packet, released));
    }
    fn pass_over(&mut self, now: Instant, tunnel: &Header, released: &mut Vec<PacketId>) {
        each!(self, r => r.pass_over(now, tunnel, released));
    }
    fn on_timer(&mut self, now: Instant, released: &mut Vec<PacketId>) {
        each!(self, r => r.on_timer(now, released));
    }
    fn timer(&self) -> Option<Instant> {
        each!(self, r => r.timer())
    }
    fn gaps_given_up(&self) -> u64 {
        each!(self, r => r.gaps_given_up())
    }
}
