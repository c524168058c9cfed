//! Batches of datagrams: datagrams of one size to one destination are sent in one system call (UDP
//! GSO).

use std::collections::BTreeMap;

use anabranch_gateway::path::Route;

use crate::{socket::Marks, ways::Ways};

/// The most segments and octets that the kernel accepts in one call.
const SEGMENTS: usize = 64;
const OCTETS: usize = 65_000;

/// Datagrams of one size and with the same marks; the last may be shorter.
#[derive(Default)]
struct Pending {
    octets: Vec<u8>,
    segment: usize,
    marks: Marks,
    count: usize,
    is_complete: bool,
}

impl Pending {
    fn takes(&self, length: usize, marks: Marks) -> bool {
        self.count == 0
            || (!self.is_complete
                && !marks.is_alone
                && marks == self.marks
                && length <= self.segment
                && self.count < SEGMENTS
                && self.octets.len() + length <= OCTETS)
    }

    fn add(&mut self, datagram: &[u8], marks: Marks) {
        if self.count == 0 {
            (self.segment, self.marks) = (datagram.len(), marks);
        }
        self.is_complete = datagram.len() < self.segment;
        self.octets.extend_from_slice(datagram);
        self.count += 1;
    }
}

/// Datagrams to be sent, by socket and destination.
#[derive(Default)]
pub struct Batches {
    routes: BTreeMap<(u32, std::net::SocketAddr), Pending>,
    /// Datagrams that the kernel refused.
    pub not_sent: u64,
}

impl Batches {
    /// Adds a datagram. Datagrams of one route keep their order.
    pub fn add(&mut self, route: Route, marks: Marks, datagram: &[u8], ways: &mut Ways) {
        let key = (route.local, route.remote);
        let pending = self.routes.entry(key).or_default();
        if !pending.takes(datagram.len(), marks) {
            self.not_sent += send(key, pending, ways);
        }
        pending.add(datagram, marks);
    }

    /// Sends all datagrams that were added.
    pub fn flush(&mut self, ways: &mut Ways) {
        for (&key, pending) in &mut self.routes {
            if pending.count > 0 {
                self.not_sent += send(key, pending, ways);
            }
        }
        // Addresses of senders that are not peers must not accumulate.
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
        socket.send(&pending.octets, pending.segment, remote, pending.marks)
    });
    pending.octets.clear();
    (pending.count, pending.is_complete) = (0, false);
    failed
}

#[cfg(test)]
mod tests {
    use anabranch_core::packet::Ecn;

    use super::{Marks, Pending, SEGMENTS};

    impl Pending {
        fn takes_unmarked(&self, length: usize) -> bool {
            self.takes(length, Marks::default())
        }
    }

    #[test]
    fn batches_have_one_size_and_end_with_a_shorter_datagram() {
        let mut pending = Pending::default();
        assert!(pending.takes_unmarked(1_400));
        pending.add(&[0; 1_400], Marks::default());
        assert!(pending.takes_unmarked(1_400) && pending.takes_unmarked(10));
        assert!(!pending.takes_unmarked(1_401));
        pending.add(&[0; 10], Marks::default());
        assert!(!pending.takes_unmarked(10));
    }

    #[test]
    fn a_batch_has_one_ecn_field() {
        let mut pending = Pending::default();
        let marks = Marks {
            ecn: Ecn::Ect0,
            ..Marks::default()
        };
        pending.add(&[0; 1_400], marks);
        assert!(pending.takes(1_400, marks) && !pending.takes_unmarked(1_400));
    }

    #[test]
    fn a_probe_of_the_path_mtu_is_alone() {
        let alone = Marks {
            is_alone: true,
            ..Marks::default()
        };
        let mut pending = Pending::default();
        pending.add(&[0; 1_400], Marks::default());
        assert!(!pending.takes(1_400, alone));
        let mut pending = Pending::default();
        pending.add(&[0; 1_400], alone);
        assert!(!pending.takes(1_400, alone) && !pending.takes_unmarked(1_400));
    }

    #[test]
    fn a_packet_in_a_batch_allocates_nothing() {
        let mut pending = Pending::default();
        let mut fill = || {
            while pending.takes_unmarked(1_400) {
                pending.add(&[0; 1_400], Marks::default());
            }
            pending.octets.clear();
            pending.count = 0;
        };
        fill();
        assert_eq!(allocation_counter::measure(fill).count_total, 0);
    }

    #[test]
    fn a_batch_does_not_exceed_the_kernels_limit() {
        for size in [10, 1_400, 9_000] {
            let mut pending = Pending::default();
            while pending.takes_unmarked(size) {
                pending.add(&vec![0; size], Marks::default());
            }
            assert!(pending.count <= SEGMENTS && pending.octets.len() < 65_507);
        }
    }
}
