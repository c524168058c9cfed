//! Times of a tunnel.

use std::ops::Add;

use anabranch_core::units::{self, Duration};

/// A point on the clock of an end, in picoseconds since its start.
///
/// The engine's clock has 64 bits and ends after 213 days. A gateway runs for years, so this one has
/// 128 bits. Spans remain of 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u128);

impl Instant {
    /// The clock's start.
    pub const START: Self = Self(0);

    /// From nanoseconds since the start.
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Self {
        // A cast: `From` is not const.
        Self(ns as u128 * 1_000)
    }

    /// `self - earlier`; zero if `earlier` is later, and at most [`Duration::MAX`], 213 days.
    #[must_use]
    pub fn saturating_since(self, earlier: Self) -> Duration {
        let span = self.0.saturating_sub(earlier.0);
        u64::try_from(span).map_or(Duration::MAX, Duration::from_picos)
    }

    /// `self - span`, at least [`Self::START`].
    #[must_use]
    pub fn saturating_sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.as_picos().into()))
    }

    /// Nanoseconds since the start, rounded down: 64 bits of them last 584 years.
    #[must_use]
    pub fn as_nanos(self) -> u64 {
        u64::try_from(self.0 / 1_000).unwrap_or(u64::MAX)
    }

    /// Microseconds since the start, modulo 2^32: only differences matter.
    #[must_use]
    pub fn as_wrapped_micros(self) -> u32 {
        u32::try_from((self.as_nanos() / 1_000) & u64::from(u32::MAX)).unwrap_or(0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn add(self, span: Duration) -> Self {
        Self(self.0 + u128::from(span.as_picos()))
    }
}

impl From<units::Instant> for Instant {
    fn from(at: units::Instant) -> Self {
        Self(at.as_picos().into())
    }
}
