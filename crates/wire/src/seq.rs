//! Sequence numbers (RFC 9293 §3.4), extended to 64 bits so that they never wrap.
//!
//! Segments carry the low 32 bits. A number read from a segment is extended to the value closest to
//! a known one. This is the modulo-2^32 comparison of RFC 9293 §3.4, done once when a segment is
//! read; all other code compares plain integers.

use std::ops::{Add, AddAssign, Sub};

/// An extended sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(u64);

impl Seq {
    /// Smaller than every number that a connection can send.
    pub const START: Self = Self(0);
    /// Larger than every number that a connection can send.
    pub const END: Self = Self(u64::MAX);
    /// Largest possible end of a finite stream. No connection reaches it, and sums beyond it do not
    /// overflow.
    pub const LAST: Self = Self(u64::MAX >> 1);

    /// Initial sequence number. It is offset by 2^32 so that slightly smaller numbers exist.
    #[must_use]
    pub const fn first(iss: u32) -> Self {
        Self((1 << 32) + iss as u64)
    }
    /// The 32 bits that segments carry.
    #[must_use]
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half travels")]
    pub const fn wire(self) -> u32 {
        self.0 as u32
    }
    /// The number closest to `self` whose low 32 bits are `wire`.
    #[must_use]
    #[inline]
    pub const fn near(self, wire: u32) -> Self {
        Self(near(self.0, wire))
    }
    /// `self - earlier`; zero if `earlier` is larger.
    #[must_use]
    #[inline]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
    /// `self + n`, at most [`Seq::END`].
    #[must_use]
    #[inline]
    pub const fn saturating_add(self, n: u64) -> Self {
        Self(self.0.saturating_add(n))
    }
}

/// The number closest to `known` whose low 32 bits are `wire`. For protocols that count in 64 bits
/// and send 32 of them.
#[must_use]
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low half travels")]
pub const fn near(known: u64, wire: u32) -> u64 {
    let distance = wire.wrapping_sub(known as u32).cast_signed();
    known.wrapping_add_signed(distance as i64)
}

impl Add<u64> for Seq {
    type Output = Self;
    #[inline]
    fn add(self, n: u64) -> Self {
        Self(self.0 + n)
    }
}
impl AddAssign<u64> for Seq {
    #[inline]
    fn add_assign(&mut self, n: u64) {
        self.0 += n;
    }
}
impl Sub<u64> for Seq {
    type Output = Self;
    #[inline]
    fn sub(self, n: u64) -> Self {
        Self(self.0 - n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn extending_the_wire_number_restores_the_sequence_number(iss: u32, sent in 0_u64..1 << 40, skew in -0x7fff_ffff_i64..0x7fff_ffff) {
            let known = Seq::first(iss) + sent;
            let other = Seq(known.0.wrapping_add_signed(skew));
            prop_assert_eq!(known.near(other.wire()), other);
        }
    }

    #[test]
    fn just_below_the_first_is_below_it() {
        let first = Seq::first(0);
        assert!(first.near(u32::MAX) < first);
        assert_eq!(first.since(first.near(u32::MAX)), 1);
        assert_eq!(first.near(u32::MAX).since(first), 0);
    }
}
