//! Points and lengths of time, in nanoseconds.

/// Nanoseconds: since 1970, or a length.
pub(crate) type Nanos = i64;

pub(crate) const MICROSECOND: Nanos = 1_000;
pub(crate) const MILLISECOND: Nanos = 1_000_000;
pub(crate) const SECOND: Nanos = 1_000_000_000;

/// A time far beyond any capture's; differences of two times in bounds fit.
const LATEST: i128 = 1 << 62;

/// A capture's picoseconds as nanoseconds, held within bounds.
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

/// Milliseconds as a length of time.
#[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
pub(crate) fn from_millis(millis: f64) -> Nanos {
    (millis * MILLISECOND as f64) as Nanos
}
