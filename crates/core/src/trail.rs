//! Observations of one packet: the part of the [digest](crate::digest) that the packet carries.

use crate::{
    trace::{ElementId, Fate},
    units::Instant,
};

/// Observations of one packet that are not yet in the digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trail(pub(crate) u64);

impl Trail {
    /// Adds one observation.
    #[inline]
    pub fn add(&mut self, at: Instant, element: ElementId, fate: Fate) {
        let what = (u64::from(element.0) << 8) | u64::from(fate as u8);
        let term = fold(
            at.as_picos() ^ 0x9e37_79b9_7f4a_7c15,
            what ^ 0xc2b2_ae3d_27d4_eb4f,
        );
        self.0 = self.0.wrapping_add(term);
    }
    /// Whether there is no observation.
    #[must_use]
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Both halves of a 128-bit product, combined by XOR.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "both halves are taken")]
pub(crate) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}
