//! The exchange between the two ends apart from the links: the octets of datagrams, and the
//! simulator's packets that they carry.
//!
//! A link does not report which packets it lost, so both are stored by number, the newest [`KEPT`]
//! of them. The replay window has fewer numbers, so the core would refuse an older datagram.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use anabranch_core::{
    body::Body,
    packet::{ConnectionId, Direction},
    units::{Duration, Instant},
};
use anabranch_path::middlebox::Held;
use anabranch_wire::Ports;

/// The most entries of a [`Numbered`], so that 16 bits of a number identify one.
const KEPT: usize = 1 << 16;

/// The longest time of a packet in the tunnel while any path works: repair, reordering and queues
/// take less.
const LONGEST: Duration = Duration::from_secs(5);

/// Values by consecutive numbers.
#[derive(Debug)]
struct Numbered<T> {
    /// The number of the first value.
    first: u32,
    kept: VecDeque<Option<T>>,
    /// The number of values stored.
    count: u64,
    /// The number of values displaced by newer ones.
    displaced: u64,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self {
            first: 0,
            kept: VecDeque::new(),
            count: 0,
            displaced: 0,
        }
    }
}

impl<T> Numbered<T> {
    fn next(&self) -> u32 {
        let kept = u32::try_from(self.kept.len()).unwrap_or(u32::MAX);
        self.first.wrapping_add(kept)
    }

    /// Returns the value's number, and the value that it displaces.
    fn push(&mut self, value: T) -> (u32, Option<T>) {
        let number = self.next();
        self.kept.push_back(Some(value));
        self.count += 1;
        let displaced = if self.kept.len() > KEPT {
            self.kept[0].take()
        } else {
            None
        };
        if displaced.is_some() {
            self.count -= 1;
            self.displaced += 1;
        }
        self.forget_taken();
        (number, displaced)
    }

    fn take(&mut self, number: u32) -> Option<T> {
        let place = usize::try_from(number.wrapping_sub(self.first)).ok()?;
        let value = self.kept.get_mut(place)?.take()?;
        self.count -= 1;
        self.forget_taken();
        Some(value)
    }

    /// Like [`Self::take`], by the low half of a number.
    fn take_by_low_half(&mut self, low: u16) -> Option<T> {
        let [.., a, b] = self.first.to_be_bytes();
        let place = low.wrapping_sub(u16::from_be_bytes([a, b]));
        self.take(self.first.wrapping_add(u32::from(place)))
    }

    fn forget_taken(&mut self) {
        while self.kept.front().is_some_and(Option::is_none) {
            self.kept.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }
}

/// One direction.
#[derive(Debug)]
struct Way<B: Body> {
    /// By path.
    datagrams: Vec<Numbered<Vec<u8>>>,
    packets: Numbered<Inside<B>>,
    /// Packets that newer ones displaced.
    lost: Vec<(ConnectionId, u32)>,
}

/// A packet that entered.
#[derive(Debug)]
struct Inside<B: Body> {
    packet: Held<B>,
    ports: Ports,
    at: Instant,
}

/// The state shared by the two ends; clones refer to the same state.
#[derive(Debug, Clone)]
pub(super) struct Crossing<B: Body>(Arc<Mutex<[Way<B>; 2]>>);

impl<B: Body> Crossing<B> {
    pub(super) fn new(paths: usize) -> Self {
        let way = || Way {
            datagrams: (0..paths).map(|_| Numbered::default()).collect(),
            packets: Numbered::default(),
            lost: Vec::new(),
        };
        Self(Arc::new(Mutex::new([way(), way()])))
    }

    fn with<T>(&self, direction: Direction, act: impl FnOnce(&mut Way<B>) -> T) -> T {
        let mut ways = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut ways[direction as usize])
    }

    /// Stores a datagram sent on a path, and returns its number on that path.
    pub(super) fn send(&self, direction: Direction, path: usize, octets: Vec<u8>) -> Option<u32> {
        self.with(direction, |way| {
            Some(way.datagrams.get_mut(path)?.push(octets).0)
        })
    }

    /// Takes an arriving datagram; `None` if it is a duplicate or too old.
    pub(super) fn receive(
        &self,
        direction: Direction,
        path: usize,
        number: u32,
    ) -> Option<Vec<u8>> {
        self.with(direction, |way| way.datagrams.get_mut(path)?.take(number))
    }

    /// The low half of the number of the next packet to enter.
    pub(super) fn next_packet(&self, direction: Direction) -> u16 {
        let [.., a, b] = self.with(direction, |way| way.packets.next()).to_be_bytes();
        u16::from_be_bytes([a, b])
    }

    /// Stores a packet that enters, with its ports inside the tunnel.
    pub(super) fn enter(&self, at: Instant, direction: Direction, packet: Held<B>, ports: Ports) {
        let inside = Inside { packet, ports, at };
        self.with(direction, |way| {
            if let (_, Some(Inside { packet, .. })) = way.packets.push(inside) {
                way.lost.push((packet.connection, packet.index));
            }
        });
    }

    /// Takes a packet that leaves or is refused; `None` if it was taken before.
    pub(super) fn leave(&self, direction: Direction, number: u16) -> Option<(Held<B>, Ports)> {
        let inside = self.with(direction, |way| way.packets.take_by_low_half(number));
        inside.map(|inside| (inside.packet, inside.ports))
    }

    /// Packets that entered and will not leave.
    pub(super) fn lost(&self, direction: Direction, now: Instant) -> Vec<(ConnectionId, u32)> {
        self.with(direction, |way| {
            let inside = way.packets.kept.iter().flatten();
            let late = inside.filter(|inside| inside.at + LONGEST < now);
            let late = late.map(|inside| (inside.packet.connection, inside.packet.index));
            way.lost.iter().copied().chain(late).collect()
        })
    }

    /// The number of packets that entered and have not left, and the number displaced by newer
    /// ones.
    pub(super) fn inside(&self, direction: Direction) -> (u64, u64) {
        self.with(direction, |way| (way.packets.count, way.packets.displaced))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_taken_once() {
        let mut numbered = Numbered::default();
        let numbers: Vec<_> = (0..10).map(|value| numbered.push(value).0).collect();
        for number in [3, 0, 9] {
            assert_eq!(numbered.take(numbers[number]), Some(number));
            assert_eq!(numbered.take(numbers[number]), None);
        }
        assert_eq!((numbered.count, numbered.displaced), (7, 0));
    }

    #[test]
    fn the_oldest_values_are_displaced_and_low_halves_identify_the_rest() {
        let mut numbered = Numbered::default();
        let most = u32::try_from(KEPT).expect("16 bits");
        for value in 0..most + 100 {
            let displaced = value.checked_sub(most);
            assert_eq!(numbered.push(value), (value, displaced));
        }
        assert_eq!((numbered.count, numbered.displaced), (most.into(), 100));
        assert_eq!(numbered.take(99), None);
        assert_eq!(numbered.take_by_low_half(100), Some(100));
        assert_eq!(numbered.take_by_low_half(99), Some(most + 99));
        assert_eq!(numbered.take_by_low_half(99), None);
    }
}
