//! Restorers: when a packet that came over one of several routes goes on.
//!
//! Adding one is a file in `restore/` and a line in the registry below; one from outside the
//! workspace implements [`Restore`] and travels as [`AnyRestore::Boxed`].

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

/// A packet as a restorer sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Its handle at this gateway, by which it is released.
    pub packet: PacketId,
    /// Size of the IP packet in bytes, without what the tunnel added.
    pub size: u32,
    /// The connection it belongs to; on a wire, its addresses, ports and protocol.
    pub connection: ConnectionId,
    /// What the tunnel says of it. Its route is known in any case; the rest only to a restorer whose
    /// configuration needs the tunnel's header.
    pub tunnel: Header,
    /// Its place in the stream of TCP; `None` for anything else.
    pub tcp: Option<TcpPlace>,
}

/// Where a segment stands in its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpPlace {
    /// Its sequence number.
    pub seq: u32,
    /// The sequence numbers that it takes: octets, SYN, FIN.
    pub len: u32,
    /// It opens the connection.
    pub opens: bool,
    /// It ends it: FIN or RST.
    pub ends: bool,
}

impl TcpPlace {
    /// That of a segment.
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
    /// It carries nothing that has an order.
    #[must_use]
    pub const fn is_pure_ack(&self) -> bool {
        self.len == 0 && !self.ends
    }
}

/// A restorer of one direction. Every packet is released once.
pub trait Restore: fmt::Debug + Send {
    /// A packet has arrived. What goes on now, this one or any that was held, is added to
    /// `released` in order.
    fn arrive(&mut self, now: Instant, packet: Arrived, released: &mut Vec<PacketId>);
    /// A packet has arrived that ends at the gateway: a copy, or the tunnel's own. It has a number on its route all the same.
    fn pass_over(&mut self, _now: Instant, _tunnel: &Header, _released: &mut Vec<PacketId>) {}
    /// The time asked for has come.
    fn on_timer(&mut self, _now: Instant, _released: &mut Vec<PacketId>) {}
    /// When to call [`Restore::on_timer`]; asked after every other call.
    fn timer(&self) -> Option<Instant> {
        None
    }
    /// Gaps that it waited for in vain.
    fn gaps_given_up(&self) -> u64 {
        0
    }
}

/// What a restorer is made from besides its own parameters.
#[derive(Debug, Clone, Copy)]
pub struct Init {
    /// How many routes there are.
    pub routes: usize,
}

/// Makes a restorer from outside the workspace.
pub type Factory = Arc<dyn Fn(&Init) -> Box<dyn Restore> + Send + Sync>;

/// A restorer from outside the workspace, as a scenario carries it.
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
