//! Random streams: one per element, with random access.
//!
//! Every element has a separate stream, keyed by the run's seed and the element's name, so that
//! adding a flow or a link does not change the draws of other elements. A draw is a pure function
//! of (seed, name, index): the outcome for the n-th packet is the same in every engine and in any
//! order. The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2,
//! 3", SC 2011, §2.2 and §4.3).

use crate::units::Duration;

/// The stream of one element: key only, no state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    key: [u32; 2],
}

/// The draws of one index of a stream (one packet, one time slot). Draws are taken in order; their
/// number does not affect the next index.
#[derive(Debug, Clone, Copy)]
pub struct Draw {
    key: [u32; 2],
    index: u64,
    block: u32,
    words: [u32; 4],
    used: u8,
    domain: Domain,
}

/// The meaning of an index: draws for packet 7 and for slot 7 of one stream are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Domain {
    Packet = 0,
    Slot = 1,
}

impl Stream {
    /// The stream of the element called `name` in the run with this `seed`.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Self {
        // FNV-1a over the name, then a finalizer with the seed. Any fixed, sufficiently injective
        // map would do, because Philox accepts every key.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let key = mix(mix(hash) ^ seed);
        Self { key: split(key) }
    }

    /// The key of the generator, for a program outside this process that makes the same draws.
    #[must_use]
    pub const fn key(self) -> [u32; 2] {
        self.key
    }

    /// The draws of index `index`.
    #[must_use]
    #[inline]
    pub fn at(self, index: u64) -> Draw {
        Draw {
            key: self.key,
            index,
            block: 0,
            words: [0; 4],
            used: 4,
            domain: Domain::Packet,
        }
    }
}

impl Draw {
    /// The draws of a time slot of the same stream, for outcomes shared by all packets of that
    /// slot.
    #[must_use]
    pub const fn of_slot(&self, slot: u64) -> Self {
        Self {
            key: self.key,
            index: slot,
            block: 0,
            words: [0; 4],
            used: 4,
            domain: Domain::Slot,
        }
    }
    /// The next 32 random bits.
    #[inline]
    pub fn bits(&mut self) -> u32 {
        if self.used == 4 {
            let [low, high] = split(self.index);
            self.words = philox4x32_10([low, high, self.block, self.domain as u32], self.key);
            self.block += 1;
            self.used = 0;
        }
        let word = self.words[usize::from(self.used)];
        self.used += 1;
        word
    }
    /// Uniform in `[0, 1)`, with 53 random bits.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        let high = u64::from(self.bits() >> 5);
        let low = u64::from(self.bits() >> 6);
        ((high << 26) | low) as f64 / 9_007_199_254_740_992.0
    }
    /// `true` with this probability.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }
    /// Uniform in `[0, span)`.
    pub fn uniform_duration(&mut self, span: Duration) -> Duration {
        let scaled = u128::from(self.wide()) * u128::from(span.as_picos());
        Duration::from_picos((scaled >> 64) as u64)
    }
    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * crate::math::log1p(-self.uniform())
    }
    /// Normal with mean 0 and standard deviation 1 (Box and Muller, "A note on the generation of
    /// random normal deviates", 1958).
    pub fn standard_normal(&mut self) -> f64 {
        let radius = (-2.0 * crate::math::log1p(-self.uniform())).sqrt();
        radius * crate::math::cos(std::f64::consts::TAU * self.uniform())
    }
    fn wide(&mut self) -> u64 {
        (u64::from(self.bits()) << 32) | u64::from(self.bits())
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the halves of a word")]
const fn split(x: u64) -> [u32; 2] {
    [x as u32, (x >> 32) as u32]
}

/// A bijective finalizer: every input bit affects every output bit.
pub(crate) const fn mix(mut x: u64) -> u64 {
    x ^= x >> 32;
    x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^= x >> 32;
    x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 32)
}

/// One block of Philox4x32 with ten rounds (SC 2011, §4.3; constants of table 2).
fn philox4x32_10(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let [lo0, hi0] = split(u64::from(counter[0]) * 0xD251_1F53);
        let [lo1, hi1] = split(u64::from(counter[2]) * 0xCD9E_8D57);
        counter = [
            hi1 ^ counter[1] ^ key[0],
            lo1,
            hi0 ^ counter[3] ^ key[1],
            lo0,
        ];
        key = [
            key[0].wrapping_add(0x9E37_79B9),
            key[1].wrapping_add(0xBB67_AE85),
        ];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers published with the algorithm.
    #[test]
    fn known_answers() {
        assert_eq!(
            philox4x32_10([0; 4], [0; 2]),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            philox4x32_10([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox4x32_10(
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0]
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn streams_differ_by_seed_name_and_index() {
        let draw = |seed, name, index| Stream::new(seed, name).at(index).bits();
        let base = draw(1, "link.a.forward", 0);
        assert_ne!(base, draw(2, "link.a.forward", 0));
        assert_ne!(base, draw(1, "link.a.reverse", 0));
        assert_ne!(base, draw(1, "link.a.forward", 1));
        assert_eq!(base, draw(1, "link.a.forward", 0));
        let slot = |index, slot| {
            Stream::new(1, "link.a.forward")
                .at(index)
                .of_slot(slot)
                .bits()
        };
        assert_ne!(base, slot(0, 0));
        assert_ne!(slot(0, 0), slot(0, 1));
        assert_eq!(slot(0, 3), slot(9, 3), "whichever packet asks");
    }

    #[test]
    fn uniform_has_the_moments_of_the_uniform() {
        let stream = Stream::new(7, "test");
        let n = 100_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for index in 0..n {
            let u = stream.at(index).uniform();
            assert!((0.0..1.0).contains(&u));
            sum += u;
            squares += u * u;
        }
        let mean = sum / n as f64;
        // Five standard errors: 5 * sqrt(1/12/n).
        assert!((mean - 0.5).abs() < 0.0046, "{mean}");
        assert!((squares / n as f64 - 1.0 / 3.0).abs() < 0.0048);
    }
}
