//! The random part of the wait between probes (draft-ietf-ccwg-bbr §5.3.3.8). It is derived from
//! the time of the draw and the amount delivered: the same run yields the same numbers, and flows
//! with different histories yield different numbers at the same time.

use anabranch_core::units::Instant;

/// 64 mixed bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draw(u64);

impl Draw {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-int cast saturates"
    )]
    pub(super) fn new(now: Instant, delivered: f64) -> Self {
        // Fibonacci hashing, applied twice: the upper bits depend on all inputs.
        const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
        let first = now.as_picos().wrapping_mul(ODD) ^ (delivered as u64);
        Self((first ^ (first >> 29)).wrapping_mul(ODD))
    }

    /// 0 or 1.
    pub(super) const fn bit(self) -> u64 {
        self.0 >> 63
    }

    /// A number from 0 to 1 (exclusive), independent of [`Self::bit`].
    pub(super) fn share(self) -> f64 {
        #[expect(clippy::cast_possible_truncation, reason = "32 bits of 64")]
        let middle = (self.0 >> 31) as u32;
        f64::from(middle) / 4_294_967_296.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_spread_evenly() {
        let (mut ones, mut quarters) = (0, [0_u32; 4]);
        for n in 0..4_000_u64 {
            let draw = Draw::new(Instant::from_nanos(37_000 * n), 1448.0 * (n % 7) as f64);
            ones += draw.bit();
            assert!((0.0..1.0).contains(&draw.share()));
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "0 to 3"
            )]
            let quarter = (draw.share() * 4.0) as usize;
            quarters[quarter] += 1;
        }
        // Five standard deviations of a fair draw: 158 and 137.
        assert!(ones.abs_diff(2_000) < 158, "{ones}");
        assert!(
            quarters.iter().all(|n| n.abs_diff(1_000) < 137),
            "{quarters:?}"
        );
    }
}
