//! Unwrapped sequence numbers: distances from the first octet of data (RFC 9293 §3.4).

/// The number of the first octet. Converts a 32-bit number into the distance nearest to a known
/// one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sequence {
    first: u32,
}

impl Sequence {
    pub(crate) const fn new(first: u32) -> Self {
        Self { first }
    }

    pub(crate) const fn first(self) -> u32 {
        self.first
    }

    /// The distance nearest to `near` that corresponds to `number`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        reason = "arithmetic modulo 2^32 is meant"
    )]
    pub(crate) const fn unwrap(self, number: u32, near: i64) -> i64 {
        let low = self.first.wrapping_add(near as u32);
        near + number.wrapping_sub(low) as i32 as i64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_distance_within_two_gib_is_found(first: u32, near in -(1_i64 << 40)..1 << 40, step in -(1_i64 << 31)..1 << 31) {
            let there = near + step;
            let number = u32::try_from((i64::from(first) + there).rem_euclid(1 << 32)).expect("32 bits");
            prop_assert_eq!(Sequence::new(first).unwrap(number, near), there);
        }
    }
}
