//! Times and durations, in nanoseconds.

/// Nanoseconds: since 1970, or a duration.
pub(crate) type Nanos = i64;

pub(crate) const MICROSECOND: Nanos = 1_000;
pub(crate) const MILLISECOND: Nanos = 1_000_000;
pub(crate) const SECOND: Nanos = 1_000_000_000;

/// The bound on times, far beyond that of any capture: the difference of two times fits in 64 bits.
const LATEST: i128 = 1 << 62;

/// The lower 32 bits.
const LOW: i128 = 0xffff_ffff;

/// Converts a capture's picoseconds to nanoseconds, clamped to ±`LATEST`.
pub(crate) fn from_picos(picos: i128) -> Nanos {
    // Times of today fit, and two divisions of 64 bits are faster than one of 128.
    if let (Ok(high), Ok(low)) = (u64::try_from(picos >> 32), u64::try_from(picos & LOW))
        && high < 1_000 << 30
    {
        let rest = ((high % 1_000) << 32) | low;
        return (((high / 1_000) << 32) | (rest / 1_000)).cast_signed();
    }
    let nanos = (picos / 1_000).clamp(-LATEST, LATEST);
    Nanos::try_from(nanos).unwrap_or_default()
}

/// Seconds.
pub(crate) fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / SECOND as f64
}

/// Milliseconds.
pub(crate) fn millis(nanos: Nanos) -> f64 {
    nanos as f64 / MILLISECOND as f64
}

/// Converts milliseconds to a duration.
#[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
pub(crate) fn from_millis(millis: f64) -> Nanos {
    (millis * MILLISECOND as f64) as Nanos
}
