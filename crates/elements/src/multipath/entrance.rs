//! Where packets are spread over the routes.

use anabranch_core::{trace::Fate, units::Instant};

use super::split::{AnySplit, Split, View};
use crate::{
    body::Body,
    middlebox::{Held, Middlebox, Output},
};

/// The end of a gateway where packets come in; its ports are the routes, in order.
#[derive(Debug)]
pub struct Entrance {
    split: AnySplit,
    /// What the tunnel adds to each packet.
    overhead: u32,
    /// The routes of the packet at hand.
    routes: Vec<u16>,
}

impl Entrance {
    /// One that spreads by `split` and adds `overhead` bytes to each packet.
    #[must_use]
    pub fn new(split: AnySplit, overhead: u32) -> Self {
        Self {
            split,
            overhead,
            routes: Vec::new(),
        }
    }
}

impl<B: Body> Middlebox<B> for Entrance {
    fn on_packet(&mut self, now: Instant, mut packet: Held<B>, out: &mut Output<B>) {
        packet.size = packet.size.saturating_add(self.overhead);
        let view = View {
            size: packet.size,
            connection: packet.connection,
            index: packet.index,
        };
        self.split.split(now, view, &mut self.routes);
        let mut routes = self.routes.drain(..);
        let first = routes
            .next()
            .expect("a splitter names a route for every packet");
        for copy in routes {
            out.create(Some(copy), packet.clone(), Fate::Duplicated);
        }
        out.emit(first, packet);
    }
}
