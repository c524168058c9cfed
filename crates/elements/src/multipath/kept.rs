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
        if !self.is_used() {
            return;
        }
        let is_pure_ack = TcpPlace::of(&packet.payload).is_some_and(|tcp| tcp.is_pure_ack());
        let route = &mut self.routes[usize::from(packet.tunnel.route)];
        let place = usize::from(packet.tunnel.route_number % self.limit);
        if place >= route.len() {
            if is_pure_ack {
                return;
            }
            route.resize_with(place + 1, || None);
        }
        // What had the place goes in any case: when numbers have gone round it must not pass for this one.
        route[place] = (!is_pure_ack).then(|| packet.clone());
    }

    /// A packet of the tunnel's own takes a number: what had its place must not pass for it.
    pub(super) fn skip(&mut self, route: u8, number: u16) {
        let Some(place) = number.checked_rem(self.limit) else {
            return;
        };
        if let Some(kept) = self.routes[usize::from(route)].get_mut(usize::from(place)) {
            *kept = None;
        }
    }

    /// The packet with this number on a route, if it is still there.
    pub(super) fn get(&mut self, route: u8, number: u16) -> Option<&mut Option<Held<B>>> {
        let place = usize::from(number.checked_rem(self.limit)?);
        let kept = self.routes.get_mut(usize::from(route))?.get_mut(place)?;
        let is_it = |packet: &Held<B>| packet.tunnel.route_number == number;
        kept.as_ref().is_some_and(is_it).then_some(kept)
    }
}

#[cfg(test)]
mod tests {
    use anabranch_core::{
        packet::{ConnectionId, Direction, Ecn, Packet},
        tunnel::Header,
    };

    use super::*;
    use crate::{
        body::Length,
        tcp::{Flags, Segment},
        transport::Transport,
    };

    fn packet(number: u16, len: u32) -> Held<Length> {
        Packet {
            connection: ConnectionId(0),
            index: 0,
            size: 40 + len,
            hop: 0,
            direction: Direction::Forward,
            retransmission: false,
            ecn: Ecn::NotEct,
            dscp: 0,
            tunnel: Header {
                route_number: number,
                ..Header::default()
            },
            payload: Transport::Tcp(Segment {
                flags: Flags::ACK,
                body: Length(len),
                ..Segment::default()
            }),
        }
    }

    /// Numbers have gone round once, and a pure acknowledgment has the number of a segment of long ago. Fails for a
    /// place that what is not kept leaves as it was.
    #[test]
    fn what_had_the_number_before_is_gone() {
        let mut kept = Kept::new(1, 16);
        kept.keep(&packet(3, 100));
        assert!(kept.get(0, 3).is_some());
        kept.keep(&packet(3, 0));
        assert!(kept.get(0, 3).is_none());
    }
}
