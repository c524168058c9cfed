//! `TinyMT32`, a pseudorandom number generator with a small state (RFC 8682). The sliding-window
//! code derives its coefficients from it (RFC 8681 §3.5).
//!
//! # Not implemented
//! - Parameter sets other than that of RFC 8682 §2.1.

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TinyMt32([u32; 4]);

const MAT1: u32 = 0x8f70_11ee;
const MAT2: u32 = 0xfc78_ff1f;
const TMAT: u32 = 0x3793_fdff;

impl TinyMt32 {
    /// Creates the generator for `seed` (RFC 8682 §2.2).
    #[must_use]
    pub fn new(seed: u32) -> Self {
        let mut state = [seed, MAT1, MAT2, TMAT];
        for i in 1_u32..8 {
            let last = state[(i as usize - 1) % 4];
            let mixed = (last ^ (last >> 30)).wrapping_mul(1_812_433_253);
            state[i as usize % 4] ^= mixed.wrapping_add(i);
        }
        let mut this = Self(state);
        for _ in 0..8 {
            this.step();
        }
        this
    }

    fn step(&mut self) {
        let [first, second, third, fourth] = self.0;
        let mut x = (first & 0x7fff_ffff) ^ second ^ third;
        x ^= x << 1;
        let y = fourth ^ (fourth >> 1) ^ x;
        let odd = 0_u32.wrapping_sub(y & 1);
        self.0 = [
            second,
            third ^ (odd & MAT1),
            x ^ (y << 10) ^ (odd & MAT2),
            y,
        ];
    }

    /// The next number.
    pub fn next_u32(&mut self) -> u32 {
        self.step();
        let [first, _, third, fourth] = self.0;
        let sum = first.wrapping_add(third >> 8);
        fourth ^ sum ^ (0_u32.wrapping_sub(sum & 1) & TMAT)
    }

    /// The next number's lowest octet (RFC 8682 §2.3).
    pub fn next_u8(&mut self) -> u8 {
        self.next_u32().to_le_bytes()[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_1_gives_the_first_numbers_of_the_rfc() {
        // RFC 8682 §2.3 lists these numbers for a seed of 1.
        let expected = [
            2_545_341_989,
            981_918_433,
            3_715_302_833,
            2_387_538_352,
            3_591_001_365,
            3_820_442_102,
            2_114_400_566,
            2_196_103_051,
            2_783_359_912,
            764_534_509,
        ];
        let mut generator = TinyMt32::new(1);
        assert_eq!(expected.map(|_| generator.next_u32()), expected);
    }
}
