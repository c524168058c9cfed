//! The Internet checksum (RFC 1071).

/// A partial sum. Its parts may have odd lengths.
#[derive(Debug, Clone, Copy, Default)]
pub struct Checksum {
    /// Not yet folded. Below 2^48 for any IP packet.
    sum: u64,
    /// The number of octets added is odd.
    odd: bool,
}

impl Checksum {
    /// Returns the sum of these octets.
    #[must_use]
    pub fn of(octets: &[u8]) -> Self {
        let mut sum = Self::default();
        sum.add(octets);
        sum
    }
    /// Adds octets.
    pub fn add(&mut self, octets: &[u8]) {
        let mut rest = octets;
        if self.odd
            && let [first, tail @ ..] = rest
        {
            self.sum += u64::from(*first);
            self.odd = false;
            rest = tail;
        }
        let mut pairs = rest.chunks_exact(2);
        for pair in &mut pairs {
            self.sum += u64::from(u16::from_be_bytes([pair[0], pair[1]]));
        }
        if let [last] = pairs.remainder() {
            self.sum += u64::from(*last) << 8;
            self.odd = true;
        }
    }

    /// Adds zeros. Only the parity of their number has an effect.
    pub const fn add_zeros(&mut self, count: usize) {
        self.odd ^= count % 2 == 1;
    }

    /// Returns the checksum that makes the sum over everything zero.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "folded to 16 bits")]
    pub const fn finish(self) -> u16 {
        let mut sum = self.sum;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    /// Whether the octets, including their checksum, are unchanged.
    #[must_use]
    pub const fn holds(self) -> bool {
        self.finish() == 0
    }
}

/// Returns the checksum after a covered word has changed from `old` to `new` (RFC 1624, equation
/// 3).
#[must_use]
pub fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    let mut sum = Checksum::default();
    for word in [!checksum, !old, new] {
        sum.add(&word.to_be_bytes());
    }
    sum.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_rfc_1071() {
        // RFC 1071 §3: the sum of these is ddf2.
        let mut sum = Checksum::default();
        sum.add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.finish(), !0xddf2);
    }

    #[test]
    fn the_example_of_rfc_1624() {
        // RFC 1624 §4: with equation 3 the checksum becomes 0000, which equation 4 misses.
        assert_eq!(updated(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    proptest! {
        #[test]
        fn parts_sum_like_the_whole(octets in prop::collection::vec(any::<u8>(), 0..100), cut in 0_usize..100, zeros in 0_usize..50) {
            let cut = cut.min(octets.len());
            let mut parts = Checksum::default();
            parts.add(&octets[..cut]);
            parts.add_zeros(zeros);
            parts.add(&octets[cut..]);
            let mut whole = octets.clone();
            whole.splice(cut..cut, std::iter::repeat_n(0, zeros));
            // By the definition: 16-bit words, the last padded, in one's complement arithmetic.
            let reference = whole.chunks(2).fold(0_u32, |sum, pair| {
                let word = u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low));
                let sum = sum + word;
                if sum > 0xffff { sum - 0xffff } else { sum }
            });
            let ours = parts.finish();
            // 0 and ffff are the same number in one's complement.
            prop_assert_eq!(u32::from(!ours) % 0xffff, reference % 0xffff);
        }
    }
}
