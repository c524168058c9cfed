//! Restorers: when a packet that came over one of several routes goes on.
//!
//! Adding one is a file in `restore/` and a line in the registry below; one from outside the
//! workspace implements [`Restore`] and travels as [`AnyRestore::Boxed`].

use std::{fmt, sync::Arc};

use anabranch_core::{
    packet::{ConnectionId, PacketId},
    units::Instant,
};

use crate::component::{self, components};

/// A packet as a restorer sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Its handle at this gateway, by which it is released.
    pub packet: PacketId,
    /// Size of the IP packet in bytes, without what the tunnel added.
    pub size: u32,
    /// The connection it belongs to.
    pub connection: ConnectionId,
    /// Its number within the connection and direction.
    pub index: u32,
}

/// A restorer of one direction. Every packet is released once.
pub trait Restore: fmt::Debug + Send {
    /// A packet has arrived. What goes on now, this one or any that was held, is added to
    /// `released` in order.
    fn arrive(&mut self, now: Instant, packet: Arrived, released: &mut Vec<PacketId>);
    /// The time asked for has come.
    fn on_timer(&mut self, _now: Instant, _released: &mut Vec<PacketId>) {}
    /// When to call [`Restore::on_timer`]; asked after every other call.
    fn timer(&self) -> Option<Instant> {
        None
    }
}

/// Makes a restorer from outside the workspace.
pub type Factory = Arc<dyn Fn() -> Box<dyn Restore> + Send + Sync>;

/// A restorer from outside the workspace, as a scenario carries it.
pub type Custom = component::Custom<Factory>;

components! {
    enum AnyRestore: Restore();

    #[serde(rename = "none")]
    none::Unrestored,
}

impl Restore for AnyRestore {
    fn arrive(&mut self, now: Instant, packet: Arrived, released: &mut Vec<PacketId>) {
        each!(self, r => r.arrive(now, packet, released));
    }
    fn on_timer(&mut self, now: Instant, released: &mut Vec<PacketId>) {
        each!(self, r => r.on_timer(now, released));
    }
    fn timer(&self) -> Option<Instant> {
        each!(self, r => r.timer())
    }
}
