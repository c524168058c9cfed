//! A hash over packet observations that is independent of their order.
//!
//! Folding links into arithmetic changes when the engine computes an observation, but not the
//! observation. The observations of one packet are summed in its [`Trail`]. The trails of all
//! packets, each hashed with the packet's name, are summed in the [`Digest`]. Both sums wrap, so
//! the digest is a function of the observations of each packet.

use crate::{
    packet::{ConnectionId, Direction},
    trail::{Trail, fold},
};

/// The running digest of a run's observations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Digest(u128);

impl Digest {
    /// Adds the trail of packet `index` of a connection and direction.
    #[inline]
    pub fn add(
        &mut self,
        (connection, direction, index): (ConnectionId, Direction, u32),
        trail: Trail,
    ) {
        // There are fewer than 2^31 connections, and one number for packets without a connection.
        let name =
            ((u64::from(connection.0) << 32) | u64::from(index)) ^ ((direction as u64) << 63);
        let hash = fold(
            trail.0 ^ 0x9e37_79b9_7f4a_7c15,
            name ^ 0x1656_67b1_9e37_79f9,
        );
        let wide = u128::from(hash) * u128::from(hash ^ 0x2545_f491_4f6c_dd1d);
        self.0 = self.0.wrapping_add(wide);
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        trace::{ElementId, Fate},
        units::Instant,
    };

    type Observation = (u64, u32, Fate);
    const PACKET: (ConnectionId, Direction, u32) = (ConnectionId(1), Direction::Forward, 7);

    fn trail(observations: &[Observation]) -> Trail {
        let mut trail = Trail::default();
        for &(at, element, fate) in observations {
            trail.add(Instant::from_nanos(at), ElementId(element), fate);
        }
        trail
    }

    fn digest(packets: &[((ConnectionId, Direction, u32), Trail)]) -> Digest {
        let mut digest = Digest::default();
        for &(packet, trail) in packets {
            digest.add(packet, trail);
        }
        digest
    }

    #[test]
    fn a_trail_depends_on_time_element_and_outcome_but_not_on_order() {
        let (a, b) = ((1, 3, Fate::Passed), (2, 3, Fate::Dropped));
        assert_eq!(trail(&[a, b]), trail(&[b, a]));
        for other in [
            (3, 3, Fate::Dropped),
            (2, 4, Fate::Dropped),
            (2, 3, Fate::Lost),
        ] {
            assert_ne!(trail(&[a, b]), trail(&[a, other]), "{other:?}");
        }
        assert_ne!(trail(&[a]), trail(&[a, a, a]));
        // Two links that exchange the times at which a packet enters them.
        let exchanged = [(1, 4, Fate::Passed), (2, 3, Fate::Passed)];
        assert_ne!(
            trail(&[(1, 3, Fate::Passed), (2, 4, Fate::Passed)]),
            trail(&exchanged)
        );
    }

    #[test]
    fn a_digest_depends_on_the_packet_of_a_trail_but_not_on_order() {
        let (one, two) = (
            trail(&[(1, 1, Fate::Passed)]),
            trail(&[(2, 1, Fate::Passed)]),
        );
        let (connection, direction, index) = PACKET;
        let next = (connection, direction, index + 1);
        let of = digest(&[(PACKET, one), (next, two)]);
        assert_eq!(of, digest(&[(next, two), (PACKET, one)]));
        assert_ne!(of, digest(&[(PACKET, two), (next, one)]));
        for other in [
            (ConnectionId(2), direction, index),
            (connection, Direction::Reverse, index),
            (connection, direction, index + 2),
        ] {
            assert_ne!(of, digest(&[(other, one), (next, two)]), "{other:?}");
        }
    }
}
