//! A hash over packet observations that does not depend on the order in which they are met.
//!
//! Folding links into arithmetic changes when the engine computes an observation, never the
//! observation. Each is hashed by itself and the hashes are added (mod 2^128), so the digest is a
//! function of the multiset of observations.

use crate::trace::Observation;

/// The running digest of a run's observations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Digest {
    low: u64,
    high: u64,
}

impl Digest {
    /// Adds one observation.
    #[inline]
    pub fn add(&mut self, o: &Observation) {
        let place = (u64::from(o.element.0) << 32) | u64::from(o.connection.0);
        let what = (o.packet << 8) | (u64::from(o.fate as u8) << 1) | u64::from(o.direction as u8);
        let a = fold(
            o.at.as_picos() ^ 0x9e37_79b9_7f4a_7c15,
            place ^ 0xc2b2_ae3d_27d4_eb4f,
        );
        let b = fold(what ^ 0x1656_67b1_9e37_79f9, a ^ 0x2545_f491_4f6c_dd1d);
        self.low = self.low.wrapping_add(fold(a ^ 0x27d4_eb2f_1656_67c5, b));
        self.high = self
            .high
            .wrapping_add(fold(b ^ 0x8542_55ea_60e8_5215, a ^ 0x5851_f42d_4c95_7f2d));
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}{:016x}", self.high, self.low)
    }
}

/// The two halves of a 128-bit product, folded.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "both halves are taken")]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        packet::{ConnectionId, Direction},
        trace::{ElementId, Fate},
        units::Instant,
    };

    fn observation(at: u64, packet: u64, fate: Fate) -> Observation {
        Observation {
            at: Instant::from_nanos(at),
            element: ElementId(3),
            connection: ConnectionId(1),
            direction: Direction::Forward,
            packet,
            fate,
        }
    }

    #[test]
    fn order_does_not_matter_and_everything_else_does() {
        let (a, b) = (
            observation(1, 1, Fate::Passed),
            observation(2, 2, Fate::Dropped),
        );
        let of = |list: &[Observation]| {
            let mut digest = Digest::default();
            for o in list {
                digest.add(o);
            }
            digest
        };
        assert_eq!(of(&[a, b]), of(&[b, a]));
        for other in [
            observation(3, 2, Fate::Dropped),
            observation(2, 3, Fate::Dropped),
            observation(2, 2, Fate::Lost),
        ] {
            assert_ne!(of(&[a, b]), of(&[a, other]));
        }
        assert_ne!(of(&[a]), of(&[a, a, a]));
    }
}
