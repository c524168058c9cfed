//! Times and durations, in nanoseconds.

/// Nanoseconds: since 1970, or a duration.
pub(crate) type Nanos = i64;

pub(crate) const MICROSECOND: Nanos = 1_000;
pub(crate) const MILLISECOND: Nanos = 1_000_000;
pub(crate) const SECOND: Nanos = 1_000_000_000;

/// The bound on times, far beyond that of any capture: the difference of two times fits in 64 bits.
const LATEST: i128 = 1 << 62;

/// Converts a capture's picoseconds to nanoseconds, clamped to ±`LATEST`.
pub(crate) fn from_picos(picos: i128) -> Nanos {
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
