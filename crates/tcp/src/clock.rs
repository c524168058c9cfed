//! Clocks for timestamps (RFC 7323 §5.4, §5.5).

use anabranch_core::units::Instant;

/// Picoseconds of a tick of the timestamp clock: 1 ms (RFC 7323 §5.4).
const TICK: u64 = 1_000_000_000;

/// The timestamp clock.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the clock wraps (RFC 7323 §5.4)"
)]
pub(crate) const fn timestamp(now: Instant) -> u32 {
    (now.as_picos() / TICK) as u32
}

/// The clock of TS.Recent's age, with ticks of 2^47 ps (141 s), which a shift computes. It does not
/// wrap within the longest run.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a run takes 63 bits")]
pub(crate) const fn age_tick(now: Instant) -> u16 {
    (now.as_picos() >> 47) as u16
}

/// TS.Recent is outdated after 24 days (RFC 7323 §5.5): by then half of the range of timestamps has
/// passed.
pub(crate) const OUTDATED: u16 = age_tick(Instant::from_millis(24 * 86_400_000));
