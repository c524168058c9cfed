//! Where what came over the routes is brought together.

use anabranch_core::{
    packet::{PacketId, Pool},
    units::Instant,
};

use super::restore::{AnyRestore, Arrived, Restore};
use crate::{
    body::Body,
    middlebox::{Held, Middlebox, Output},
    transport::Transport,
};

/// The end of a gateway where packets go out. It keeps those that the restorer holds back.
#[derive(Debug)]
pub struct Exit<B: Body> {
    restore: AnyRestore,
    /// What the tunnel added to each packet.
    overhead: u32,
    held: Pool<Transport<B>>,
    /// Those that go on now, in order.
    released: Vec<PacketId>,
}

impl<B: Body> Exit<B> {
    /// One that restores order by `restore` and takes `overhead` bytes off each packet.
    #[must_use]
    pub fn new(restore: AnyRestore, overhead: u32) -> Self {
        Self {
            restore,
            overhead,
            held: Pool::default(),
            released: Vec::new(),
        }
    }

    fn release(&mut self, out: &mut Output<B>) {
        for id in self.released.drain(..) {
            out.forward(self.held[id].clone());
            self.held.free(id);
        }
    }
}

impl<B: Body> Middlebox<B> for Exit<B> {
    fn on_packet(&mut self, now: Instant, mut packet: Held<B>, out: &mut Output<B>) {
        packet.size = packet.size.saturating_sub(self.overhead);
        let (size, connection, index) = (packet.size, packet.connection, packet.index);
        let arrived = Arrived {
            packet: self.held.insert(packet),
            size,
            connection,
            index,
        };
        self.restore.arrive(now, arrived, &mut self.released);
        self.release(out);
    }
    fn on_timer(&mut self, now: Instant, out: &mut Output<B>) {
        self.restore.on_timer(now, &mut self.released);
        self.release(out);
    }
    fn timer(&self) -> Option<Instant> {
        self.restore.timer()
    }
}
