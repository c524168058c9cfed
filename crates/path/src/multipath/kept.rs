//! Packets that an entrance stores after sending, as long as the other end may request them.

use super::restore::TcpPlace;
use crate::middlebox::Held;
use anabranch_core::body::Body;

/// The last packets of each route.
#[derive(Debug)]
pub(super) struct Kept<B: Body> {
    /// Maximum number of packets per route.
    limit: u16,
    routes: Vec<Route<B>>,
}

/// Stored packets of one route.
#[derive(Debug)]
struct Route<B: Body> {
    /// Indexed by the count of packets modulo the limit. The 16-bit numbers would not do as an
    /// index: the limit seldom divides 2^16, so packets just before the wrap would be overwritten
    /// early.
    places: Vec<Option<Held<B>>>,
    /// Number of packets sent.
    count: u64,
    /// Number of the last packet.
    newest: u16,
}

impl<B: Body> Route<B> {
    /// Advances to the packet with this number and returns its slot, emptied. Emptying prevents an
    /// old packet with the same number, before the wrap, from being taken for this one.
    fn advance(&mut self, number: u16, limit: u16) -> Option<usize> {
        // The first packet, or the distance from the last.
        let ahead = if self.count == 0 {
            1
        } else {
            number.wrapping_sub(self.newest)
        };
        self.count += u64::from(ahead);
        self.newest = number;
        let place = self.place(number, limit)?;
        if let Some(kept) = self.places.get_mut(place) {
            *kept = None;
        }
        Some(place)
    }

    /// Returns the slot of the packet with this number, if it is among the last `limit`.
    fn place(&self, number: u16, limit: u16) -> Option<usize> {
        let behind = self.newest.wrapping_sub(number);
        let count = self.count.checked_sub(1 + u64::from(behind))?;
        (behind < limit).then_some(usize::try_from(count % u64::from(limit)).ok()?)
    }
}

impl<B: Body> Kept<B> {
    /// Creates a store for `limit` packets on each of `routes` routes.
    pub(super) fn new(routes: usize, limit: u16) -> Self {
        Self {
            limit,
            routes: (0..routes)
                .map(|_| Route {
                    places: Vec::new(),
                    count: 0,
                    newest: 0,
                })
                .collect(),
        }
    }

    /// Whether packets are stored at all.
    pub(super) const fn is_used(&self) -> bool {
        self.limit > 0
    }

    /// Stores a packet that is being sent, with its header. Pure acknowledgments are not stored,
    /// because the next one replaces them.
    pub(super) fn keep(&mut self, packet: &Held<B>) {
        if !self.is_used() {
            return;
        }
        let is_pure_ack = TcpPlace::of(&packet.payload).is_some_and(|tcp| tcp.is_pure_ack());
        let route = &mut self.routes[usize::from(packet.tunnel.route)];
        let place = route.advance(packet.tunnel.route_number, self.limit);
        if let Some(place) = place.filter(|_| !is_pure_ack) {
            if place >= route.places.len() {
                route.places.resize_with(place + 1, || None);
            }
            route.places[place] = Some(packet.clone());
        }
    }

    /// Accounts for a number used by a packet of the tunnel.
    pub(super) fn skip(&mut self, route: u8, number: u16) {
        if self.is_used() {
            self.routes[usize::from(route)].advance(number, self.limit);
        }
    }

    /// Returns the packet with this number on a route, if it is still stored.
    pub(super) fn get(&mut self, route: u8, number: u16) -> Option<&mut Option<Held<B>>> {
        let route = self.routes.get_mut(usize::from(route))?;
        let place = route.place(number, self.limit)?;
        let kept = route.places.get_mut(place)?;
        let is_it = |packet: &Held<B>| packet.tunnel.route_number == number;
        kept.as_ref().is_some_and(is_it).then_some(kept)
    }
}

#[cfg(test)]
mod tests {
    use anabranch_core::{
        body::Length,
        packet::{ConnectionId, Direction, Ecn, Packet, WaitAccount},
        trail::Trail,
        tunnel::Header,
    };

    use super::*;
    use anabranch_wire::transport::Transport;
    use anabranch_wire::{Flags, Segment};

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
            trail: Trail::default(),
            waits: WaitAccount::NONE,
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

    /// Numbers wrap, and the limit does not divide 2^16. Detects slots indexed by number.
    #[test]
    fn the_last_packets_are_kept_across_the_wrap_of_numbers() {
        let limit: u16 = 1_000;
        let mut kept = Kept::new(1, limit);
        for count in 65_000..140_000_u32 {
            let number = |back: u32| u16::try_from((count - back) % 65_536).unwrap();
            kept.keep(&packet(number(0), 100));
            for back in [0, 1, 500, 999] {
                let present = kept.get(0, number(back)).is_some();
                assert_eq!(present, count - back >= 65_000, "{count} - {back}");
            }
            assert!(kept.get(0, number(1_000)).is_none());
        }
    }

    /// A pure acknowledgment reuses the number of an old segment after the wrap. Detects a slot
    /// that is not emptied for packets that are not stored.
    #[test]
    fn a_reused_number_removes_the_old_packet() {
        let mut kept = Kept::new(1, 16);
        kept.keep(&packet(3, 100));
        assert!(kept.get(0, 3).is_some());
        kept.keep(&packet(3, 0));
        assert!(kept.get(0, 3).is_none());
    }
}
