//! Datagrams that leave together: those of one size to one destination take one system call (UDP GSO).

use std::collections::BTreeMap;

use anabranch_core::packet::Ecn;
use anabranch_gateway::tunnel::Transmit;

use crate::ways::Ways;

/// Segments and octets that the kernel takes at once.
const SEGMENTS: usize = 64;
const OCTETS: usize = 65_000;

/// Datagrams of one size and ECN field, of which the last may be shorter.
#[derive(Default)]
struct Pending {
    octets: Vec<u8>,
    segment: usize,
    ecn: Ecn,
    count: usize,
    is_complete: bool,
}

impl Pending {
    fn takes(&self, length: usize, ecn: Ecn) -> bool {
        self.count == 0
            || (!self.is_complete
                && ecn == self.ecn
                && length <= self.segment
                && self.count < SEGMENTS
                && self.octets.len() + length <= OCTETS)
    }

    fn add(&mut self, datagram: &[u8], ecn: Ecn) {
        if self.count == 0 {
            (self.segment, self.ecn) = (datagram.len(), ecn);
        }
        self.is_complete = datagram.len() < self.segment;
        self.octets.extend_from_slice(datagram);
        self.count += 1;
    }
}

/// What is to be sent, by socket and destination.
#[derive(Default)]
pub struct Batches {
    routes: BTreeMap<(u32, std::net::SocketAddr), Pending>,
    /// Datagrams that the kernel did not take.
    pub not_sent: u64,
}

impl Batches {
    /// Adds a datagram. Those of one route keep their order.
    pub fn add(&mut self, transmit: Transmit, datagram: &[u8], ways: &mut Ways) {
        let Transmit { route, ecn, .. } = transmit;
        let key = (route.local, route.remote);
        let pending = self.routes.entry(key).or_default();
        if !pending.takes(datagram.len(), ecn) {
            self.not_sent += send(key, pending, ways);
        }
        pending.add(datagram, ecn);
    }

    /// Sends what was added.
    pub fn flush(&mut self, ways: &mut Ways) {
        for (&key, pending) in &mut self.routes {
            if pending.count > 0 {
                self.not_sent += send(key, pending, ways);
            }
        }
        // Addresses of those who are not peers must not pile up.
        if self.routes.len() > SEGMENTS {
            self.routes.clear();
        }
    }
}

fn send(
    (local, remote): (u32, std::net::SocketAddr),
    pending: &mut Pending,
    ways: &mut Ways,
) -> u64 {
    // The tunnel detects lost datagrams; a full socket buffer is one more cause.
    let socket = ways.socket_mut(local);
    let failed = socket.map_or(0, |socket| {
        socket.send(&pending.octets, pending.segment, remote, pending.ecn)
    });
    pending.octets.clear();
    (pending.count, pending.is_complete) = (0, false);
    failed
}

#[cfg(test)]
mod tests {
    use anabranch_core::packet::Ecn;

    use super::{Pending, SEGMENTS};

    impl Pending {
        fn takes_unmarked(&self, length: usize) -> bool {
            self.takes(length, Ecn::NotEct)
        }
    }

    #[test]
    fn a_batch_has_one_size_and_ends_with_a_shorter_datagram() {
        let mut pending = Pending::default();
        assert!(pending.takes_unmarked(1_400));
        pending.add(&[0; 1_400], Ecn::NotEct);
        assert!(pending.takes_unmarked(1_400) && pending.takes_unmarked(10));
        assert!(!pending.takes_unmarked(1_401));
        pending.add(&[0; 10], Ecn::NotEct);
        assert!(!pending.takes_unmarked(10));
    }

    #[test]
    fn a_batch_has_one_ecn_field() {
        let mut pending = Pending::default();
        pending.add(&[0; 1_400], Ecn::Ect0);
        assert!(pending.takes(1_400, Ecn::Ect0) && !pending.takes_unmarked(1_400));
    }

    #[test]
    fn a_packet_in_a_batch_allocates_nothing() {
        let mut pending = Pending::default();
        let mut fill = || {
            while pending.takes_unmarked(1_400) {
                pending.add(&[0; 1_400], Ecn::NotEct);
            }
            pending.octets.clear();
            pending.count = 0;
        };
        fill();
        assert_eq!(allocation_counter::measure(fill).count_total, 0);
    }

    #[test]
    fn a_batch_is_no_larger_than_the_kernel_takes() {
        for size in [10, 1_400, 9_000] {
            let mut pending = Pending::default();
            while pending.takes_unmarked(size) {
                pending.add(&vec![0; size], Ecn::NotEct);
            }
            assert!(pending.count <= SEGMENTS && pending.octets.len() < 65_507);
        }
    }
}
