//! Mapping of connections to FIFOs.

use anabranch_core::{packet::ConnectionId, rng::Stream};

/// Stream index that belongs to no packet and no time slot.
const PERTURBATION: u64 = u64::MAX;

/// A keyed hash of connections: two connections that share a FIFO in one run are separate in
/// another (RFC 8290 §4.1, after McKenney 1990).
#[derive(Debug, Clone, Copy)]
pub(super) struct Perturbed(u64);

impl Perturbed {
    pub fn new(stream: Stream) -> Self {
        let mut draw = stream.at(PERTURBATION);
        Self((u64::from(draw.bits()) << 32) | u64::from(draw.bits()))
    }
    /// Number of the FIFO of `connection`, below `lines`.
    #[inline]
    pub fn line(self, connection: ConnectionId, lines: u32) -> u32 {
        self.line_of(u64::from(connection.0), lines)
    }
    /// Number of the FIFO of any key.
    #[inline]
    pub fn line_of(self, key: u64, lines: u32) -> u32 {
        let high = spread(key ^ self.0) >> 32;
        ((high * u64::from(lines)) >> 32) as u32
    }
}

/// A bijection in which each bit of the argument changes about half of the result's bits (a
/// multiply and xor-shift finalizer).
#[inline]
const fn spread(mut x: u64) -> u64 {
    x ^= x >> 32;
    x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 29;
    x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^ (x >> 32)
}

/// No FIFO.
const FREE: u32 = u32::MAX;

/// The FIFO of each connection that has one. Open addressing with linear probing: no allocation
/// once it has reached the maximum number of concurrent connections, and no iteration.
#[derive(Debug)]
pub(super) struct Index {
    /// (connection, FIFO); [`FREE`] instead of the FIFO if the place is unused.
    places: Vec<(u32, u32)>,
    used: usize,
}

impl Index {
    pub fn new() -> Self {
        Self {
            places: vec![(0, FREE); 16],
            used: 0,
        }
    }
    /// Preferred place of `connection`.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "masked anyway")]
    fn home(&self, connection: u32) -> usize {
        spread(u64::from(connection)) as usize & (self.places.len() - 1)
    }
    /// Place of `connection`, or the free place where it would be inserted.
    #[inline]
    fn find(&self, connection: u32) -> usize {
        let mut at = self.home(connection);
        while self.places[at].1 != FREE && self.places[at].0 != connection {
            at = (at + 1) & (self.places.len() - 1);
        }
        at
    }
    #[inline]
    pub fn get(&self, connection: ConnectionId) -> Option<u32> {
        let (_, line) = self.places[self.find(connection.0)];
        (line != FREE).then_some(line)
    }
    /// Assigns a FIFO to `connection`, which has none.
    pub fn insert(&mut self, connection: ConnectionId, line: u32) {
        if (self.used + 1) * 2 > self.places.len() {
            let larger = vec![(0, FREE); self.places.len() * 2];
            for (connection, line) in std::mem::replace(&mut self.places, larger) {
                if line != FREE {
                    let at = self.find(connection);
                    self.places[at] = (connection, line);
                }
            }
        }
        let at = self.find(connection.0);
        self.places[at] = (connection.0, line);
        self.used += 1;
    }
    /// Removes `connection`, which has a FIFO.
    pub fn remove(&mut self, connection: ConnectionId) {
        let last = self.places.len() - 1;
        let mut hole = self.find(connection.0);
        let mut at = hole;
        // Displaced entries move back into the hole, so that a probe never crosses one.
        loop {
            at = (at + 1) & last;
            let (other, line) = self.places[at];
            if line == FREE {
                break;
            }
            let wanted = self.home(other);
            if (at.wrapping_sub(wanted) & last) >= (at.wrapping_sub(hole) & last) {
                self.places[hole] = self.places[at];
                hole = at;
            }
        }
        self.places[hole].1 = FREE;
        self.used -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_index_agrees_with_a_map() {
        let mut index = Index::new();
        let mut map = BTreeMap::new();
        let draws = Stream::new(1, "index");
        for step in 0..20_000 {
            let mut draw = draws.at(step);
            // A small range, so that connections return, with runs of neighbours.
            let connection = (draw.bits() % 300).wrapping_mul(0x1000_0001);
            let id = ConnectionId(connection);
            assert_eq!(index.get(id), map.get(&connection).copied());
            if map.remove(&connection).is_some() {
                index.remove(id);
            } else {
                let line = draw.bits() % 1_000;
                index.insert(id, line);
                map.insert(connection, line);
            }
            assert_eq!(index.used, map.len());
        }
        for (connection, line) in map {
            assert_eq!(index.get(ConnectionId(connection)), Some(line));
        }
    }

    /// Adjacent numbers spread evenly: chi squared with 63 degrees of freedom is below 103.4 in 999
    /// of 1,000 cases.
    #[test]
    fn neighbours_spread_over_the_lines() {
        let hash = Perturbed::new(Stream::new(1, "hash"));
        let mut counts = [0_u32; 64];
        for connection in 0..6_400 {
            counts[hash.line(ConnectionId(connection), 64) as usize] += 1;
        }
        let chi: f64 = counts
            .iter()
            .map(|&n| (f64::from(n) - 100.0) * (f64::from(n) - 100.0) / 100.0)
            .sum();
        assert!(chi < 103.4, "{chi}");
    }
}
