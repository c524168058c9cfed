//! Quantities. Every public number in the engine has one of these types.
//!
//! Time is counted in picoseconds: 1,500 bytes at 100 Gbit/s take 120,000 of them, and a run may
//! last 106 days. [`text`] reads and writes quantities in the spelling of scenario files.
//!
//! `+` and `*` do not saturate. They are for times of a run: [`text::MAX_DURATION`] is the longest
//! duration in a file, and the sum of two fits the clock of 213 days. Times that may be later, and
//! unbounded sums, use `saturating_add`.

use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

pub mod text;

/// A point on the simulated or live clock, in picoseconds since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

/// A span of time, in picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

/// A data rate in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// A size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

/// Power consumption of a device, in microwatts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Power(u64);

/// A dimensionless number in `0.0..=1.0`: a probability, a share, a factor.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Fraction(f64);

const PS_PER_S: u64 = 1_000_000_000_000;

impl Instant {
    /// The clock's start.
    pub const START: Self = Self(0);
    /// Later than any instant of a run. Means "no deadline" where an `Option` would cost a branch.
    pub const NEVER: Self = Self(u64::MAX);

    /// From picoseconds since the start.
    #[must_use]
    pub const fn from_picos(ps: u64) -> Self {
        Self(ps)
    }
    /// From nanoseconds since the start.
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns * 1_000)
    }
    /// From milliseconds since the start.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000_000)
    }
    /// Picoseconds since the start.
    #[must_use]
    pub const fn as_picos(self) -> u64 {
        self.0
    }
    /// Seconds since the start.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }
    /// `self - earlier`, zero if `earlier` is later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
    /// `self + d`, at most [`Instant::NEVER`].
    #[must_use]
    pub const fn saturating_add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(d.0))
    }
}

impl Duration {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// From picoseconds.
    #[must_use]
    pub const fn from_picos(ps: u64) -> Self {
        Self(ps)
    }
    /// From nanoseconds.
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns * 1_000)
    }
    /// From microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000_000)
    }
    /// From milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000_000)
    }
    /// From seconds.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s * PS_PER_S)
    }
    /// From seconds, rounded to the nearest picosecond. Negative numbers and NaN become zero;
    /// larger numbers become the longest span.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-int cast saturates"
    )]
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * PS_PER_S as f64 + 0.5) as u64)
    }
    /// In picoseconds.
    #[must_use]
    pub const fn as_picos(self) -> u64 {
        self.0
    }
    /// In nanoseconds, rounded down.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0 / 1_000
    }
    /// In seconds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }
    /// In milliseconds.
    #[must_use]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Whether the duration is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// `self - other`, at least zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// `self * n`, at most the longest span.
    #[must_use]
    pub const fn saturating_mul(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
    /// `self * factor`, rounded to the nearest picosecond, saturating.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-int cast saturates"
    )]
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor + 0.5) as u64)
    }
}

impl Rate {
    /// From bits per second; `None` for zero, which is not a valid rate.
    #[must_use]
    pub const fn new(bits_per_s: u64) -> Option<Self> {
        if bits_per_s == 0 {
            None
        } else {
            Some(Self(bits_per_s))
        }
    }
    /// From Mbit/s.
    ///
    /// # Panics
    /// If `m` is zero.
    #[must_use]
    pub const fn from_mbit_per_s(m: u64) -> Self {
        assert!(m > 0, "a rate is positive");
        Self(m * 1_000_000)
    }
    /// In bits per second; never zero.
    #[must_use]
    pub const fn bits_per_s(self) -> u64 {
        self.0
    }
    /// In Mbit/s.
    #[must_use]
    pub fn as_mbit_per_s(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// From an amount and its duration; `None` if either is zero.
    #[must_use]
    pub fn from_bytes_per(bytes: Bytes, time: Duration) -> Option<Self> {
        if time.0 == 0 {
            return None;
        }
        let bits = u128::from(bytes.0) * 8 * u128::from(PS_PER_S) / u128::from(time.0);
        Self::new(u64::try_from(bits).unwrap_or(u64::MAX))
    }
}

impl Power {
    /// From microwatts.
    #[must_use]
    pub const fn from_microwatts(uw: u64) -> Self {
        Self(uw)
    }
    /// From milliwatts.
    ///
    /// # Panics
    /// If the result exceeds 64 bits of microwatts.
    #[must_use]
    pub const fn from_milliwatts(mw: u64) -> Self {
        Self(mw * 1_000)
    }
    /// Microwatts.
    #[must_use]
    pub const fn microwatts(self) -> u64 {
        self.0
    }
    /// Energy consumed in a time, in joules.
    #[must_use]
    pub fn joules(self, time: Duration) -> f64 {
        self.0 as f64 / 1e6 * time.as_secs_f64()
    }
}

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);
    /// From a count of bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }
    /// The count of bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
    /// Size in segments of `smss`, the unit of most window equations.
    #[must_use]
    pub fn segments(self, smss: Self) -> f64 {
        self.0 as f64 / smss.0 as f64
    }
    /// The inverse of [`Bytes::segments`], rounded down.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-int cast saturates"
    )]
    pub fn from_segments(n: f64, smss: Self) -> Self {
        Self((n * smss.0 as f64) as u64)
    }
    /// `self - other`, at least zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// `self * factor`, rounded down, saturating.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-int cast saturates"
    )]
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
}

impl Fraction {
    /// Zero.
    pub const ZERO: Self = Self(0.0);
    /// One.
    pub const ONE: Self = Self(1.0);
    /// # Panics
    /// If `value` is outside `0.0..=1.0`; in a `const` this is a compile error.
    #[must_use]
    pub const fn new(value: f64) -> Self {
        assert!(value >= 0.0 && value <= 1.0, "a fraction lies in 0..=1");
        Self(value)
    }
    /// The number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Fraction {
    type Error = String;
    fn try_from(value: f64) -> Result<Self, String> {
        if (0.0..=1.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(format!("{value} is outside 0..1"))
        }
    }
}

impl Sub for Instant {
    type Output = Duration;
    #[inline]
    fn sub(self, o: Self) -> Duration {
        Duration(self.0 - o.0)
    }
}
impl Add<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn add(self, d: Duration) -> Self {
        Self(self.0 + d.0)
    }
}
impl Sub<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn sub(self, d: Duration) -> Self {
        Self(self.0 - d.0)
    }
}
impl Add for Duration {
    type Output = Self;
    #[inline]
    fn add(self, o: Self) -> Self {
        Self(self.0 + o.0)
    }
}
impl AddAssign for Duration {
    #[inline]
    fn add_assign(&mut self, o: Self) {
        self.0 += o.0;
    }
}
impl Sub for Duration {
    type Output = Self;
    #[inline]
    fn sub(self, o: Self) -> Self {
        Self(self.0 - o.0)
    }
}
impl Mul<u64> for Duration {
    type Output = Self;
    #[inline]
    fn mul(self, n: u64) -> Self {
        Self(self.0 * n)
    }
}
impl Div<u64> for Duration {
    type Output = Self;
    #[inline]
    fn div(self, n: u64) -> Self {
        Self(self.0 / n)
    }
}
impl Add for Bytes {
    type Output = Self;
    #[inline]
    fn add(self, o: Self) -> Self {
        Self(self.0 + o.0)
    }
}
impl AddAssign for Bytes {
    #[inline]
    fn add_assign(&mut self, o: Self) {
        self.0 += o.0;
    }
}
impl Sub for Bytes {
    type Output = Self;
    #[inline]
    fn sub(self, o: Self) -> Self {
        Self(self.0 - o.0)
    }
}
impl SubAssign for Bytes {
    #[inline]
    fn sub_assign(&mut self, o: Self) {
        self.0 -= o.0;
    }
}
impl Mul<u64> for Bytes {
    type Output = Self;
    #[inline]
    fn mul(self, n: u64) -> Self {
        Self(self.0 * n)
    }
}
impl Div<u64> for Bytes {
    type Output = Self;
    #[inline]
    fn div(self, n: u64) -> Self {
        Self(self.0 / n)
    }
}
/// `rate * delay` is the bandwidth-delay product.
impl Mul<Duration> for Rate {
    type Output = Bytes;
    fn mul(self, d: Duration) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(d.0) / (8 * u128::from(PS_PER_S));
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}
/// `size / rate` is the serialization delay, rounded down to the picosecond.
impl Div<Rate> for Bytes {
    type Output = Duration;
    fn div(self, r: Rate) -> Duration {
        let ps = u128::from(self.0) * 8 * u128::from(PS_PER_S) / u128::from(r.0);
        Duration(u64::try_from(ps).unwrap_or(u64::MAX))
    }
}

/// `bytes / rate` without a division, for the packet path: the same result to the picosecond for
/// packets up to 4 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SerializationDelay {
    /// Picoseconds per byte, rounded up: an integer part, and 64 fractional bits.
    whole: u64,
    part: u64,
}

impl SerializationDelay {
    /// A link without a rate: a packet takes no time.
    pub const NONE: Self = Self { whole: 0, part: 0 };

    /// The delay on a link of this rate.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    pub fn at(rate: Rate) -> Self {
        // 8e12 is below 2^43, so the shifted numerator fits 107 bits.
        let numerator = (8 * u128::from(PS_PER_S)) << 64;
        let ps_per_byte = numerator.div_ceil(u128::from(rate.0));
        Self {
            whole: (ps_per_byte >> 64) as u64,
            part: ps_per_byte as u64,
        }
    }
    /// The serialization time of `bytes`.
    #[must_use]
    #[inline]
    pub fn of(self, bytes: u32) -> Duration {
        let n = u64::from(bytes);
        let carry = (u128::from(n) * u128::from(self.part)) >> 64;
        Duration(n * self.whole + carry as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialization_without_division_is_the_division() {
        let mut state = 1_u64;
        for _ in 0..100_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let rate = Rate::new(1 + (state >> 20)).expect("positive");
            let bytes = u32::try_from((state >> 7) % 70_000).expect("it is small");
            assert_eq!(
                SerializationDelay::at(rate).of(bytes),
                Bytes::new(u64::from(bytes)) / rate,
                "{rate:?} {bytes}"
            );
        }
        assert_eq!(
            SerializationDelay::at(Rate::from_mbit_per_s(10)).of(1500),
            Duration::from_micros(1200)
        );
        assert_eq!(SerializationDelay::NONE.of(1500), Duration::ZERO);
    }

    #[test]
    fn a_fraction_is_between_zero_and_one() {
        assert!(Fraction::try_from(7.0).is_err());
        assert!(Fraction::try_from(f64::NAN).is_err());
        assert_eq!(Fraction::try_from(1.0).map(Fraction::get), Ok(1.0));
    }

    #[test]
    fn bandwidth_delay_product() {
        assert_eq!(
            Rate::from_mbit_per_s(10) * Duration::from_millis(70),
            Bytes::new(87_500)
        );
    }
}
