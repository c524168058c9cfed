//! What an entrance keeps of what it sent, until the other end could no longer ask for it.

use super::restore::TcpPlace;
use crate::{body::Body, middlebox::Held};

/// The last packets of each route.
#[derive(Debug)]
pub(super) struct Kept<B: Body> {
    /// How many of each route.
    limit: u16,
    /// By route, then by number modulo `limit`.
    routes: Vec<Vec<Option<Held<B>>>>,
}

impl<B: Body> Kept<B> {
    /// So many packets of each of so many routes.
    pub(super) fn new(routes: usize, limit: u16) -> Self {
        Self {
            limit,
            routes: (0..routes).map(|_| Vec::new()).collect(),
        }
    }

    /// Whether anything is kept at all.
    pub(super) const fn is_used(&self) -> bool {
        self.limit > 0
    }

    /// A packet goes out, with its header. A pure acknowledgment is not kept: the next one says as much.
    pub(super) fn keep(&mut self, packet: &Held<B>) {
        if !self.is_used() || TcpPlace::of(&packet.payload).is_some_and(|tcp| tcp.is_pure_ack()) {
            return;
        }
        let route = &mut self.routes[usize::from(packet.tunnel.route)];
        let place = usize::from(packet.tunnel.route_number % self.limit);
        if place >= route.len() {
            route.resize_with(place + 1, || None);
        }
        route[place] = Some(packet.clone());
    }

    /// The packet with this number on a route, if it is still there.
    pub(super) fn get(&mut self, route: u8, number: u16) -> Option<&mut Option<Held<B>>> {
        let place = usize::from(number.checked_rem(self.limit)?);
        let kept = self.routes.get_mut(usize::from(route))?.get_mut(place)?;
        let is_it = |packet: &Held<B>| packet.tunnel.route_number == number;
        kept.as_ref().is_some_and(is_it).then_some(kept)
    }
}
