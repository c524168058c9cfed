//! Units of a window: whole octets, segments, or floating-point octets (model-based controls).

use std::{fmt, ops::Add};

use anabranch_core::units::{Bytes, Rate};

/// Same as `f64::ceil`, which is a library call on processors without the instruction. The compiler
/// would make the call for windows counted in octets, too.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an acknowledgment is for fewer than 2^32 segments"
)]
#[inline]
pub(super) fn rounded_up(segments: f64) -> f64 {
    let whole = f64::from(segments as u32);
    if whole < segments { whole + 1.0 } else { whole }
}

/// The whole segments of a window that results from an equation: 0.7 × 90 is slightly below 63.
pub(super) fn whole_segments(cwnd: f64) -> f64 {
    (cwnd + 1e-6).floor()
}

/// Count of acknowledged segments towards the next growth of a window of whole segments.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SegmentCount(u32);

impl SegmentCount {
    /// Counts `acked` segments and grows the window by one for every `cnt`. Segments counted
    /// earlier, possibly with a larger `cnt`, add at most one segment.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a window has fewer than 2^32 segments"
    )]
    #[inline]
    pub(super) fn grow(&mut self, window: &mut Window<f64>, acked: f64, cnt: f64) {
        let mut count = f64::from(self.0);
        if count >= cnt {
            count = 0.0;
            window.cwnd += 1.0;
        }
        count += acked;
        let grown = if count < cnt {
            0.0
        } else {
            (count / cnt).floor()
        };
        window.cwnd += grown;
        self.0 = (count - grown * cnt) as u32;
    }
}

/// A quantity of a model-based control in octets, rounded down.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-int cast saturates"
)]
pub(super) const fn whole_bytes(octets: f64) -> Bytes {
    Bytes::new(octets as u64)
}

/// Pacing rate of a model-based control from octets per second; at least one bit per second.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-int cast saturates"
)]
pub(super) fn whole_rate(octets: f64) -> Option<Rate> {
    Rate::new((octets * 8.0).max(1.0) as u64)
}

/// The unit of a window: `u64` counts whole octets, `f64` counts segments.
pub trait Count: Copy + PartialOrd + Add<Output = Self> + fmt::Debug + Send {
    /// ssthresh before the first reduction.
    const UNLIMITED: Self;

    /// `bytes` in this unit.
    fn of(bytes: Bytes, smss: Bytes) -> Self;
    /// In bytes.
    fn bytes(self, smss: Bytes) -> Bytes;
    /// One segment, as a real number of this unit.
    fn segment(smss: Bytes) -> f64;
    /// As a real number of this unit.
    fn real(self) -> f64;
    /// The inverse of [`Self::real`], rounded down where the unit is whole.
    fn from_real(count: f64) -> Self;
    /// Half of it.
    #[must_use]
    fn half(self) -> Self;
    /// Three quarters of it.
    #[must_use]
    fn three_quarters(self) -> Self;

    /// In segments.
    #[inline]
    fn segments(self, smss: Bytes) -> f64 {
        self.real() / Self::segment(smss)
    }
    /// The smaller of both.
    #[inline]
    #[must_use]
    fn at_most(self, most: Self) -> Self {
        if most < self { most } else { self }
    }
    /// The larger of both.
    #[inline]
    #[must_use]
    fn at_least(self, least: Self) -> Self {
        if least > self { least } else { self }
    }
}

impl Count for u64 {
    const UNLIMITED: Self = Self::MAX;

    #[inline]
    fn of(bytes: Bytes, _smss: Bytes) -> Self {
        bytes.get()
    }
    #[inline]
    fn bytes(self, _smss: Bytes) -> Bytes {
        Bytes::new(self)
    }
    #[inline]
    fn segment(smss: Bytes) -> f64 {
        smss.get() as f64
    }
    #[inline]
    fn real(self) -> f64 {
        self as f64
    }
    #[inline]
    fn from_real(count: f64) -> Self {
        whole_bytes(count).get()
    }
    fn half(self) -> Self {
        self / 2
    }
    fn three_quarters(self) -> Self {
        self / 4 * 3
    }
}

impl Count for f64 {
    const UNLIMITED: Self = Self::INFINITY;

    #[inline]
    fn of(bytes: Bytes, smss: Bytes) -> Self {
        bytes.segments(smss)
    }
    #[inline]
    fn bytes(self, smss: Bytes) -> Bytes {
        Bytes::from_segments(self, smss)
    }
    #[inline]
    fn segment(_smss: Bytes) -> f64 {
        1.0
    }
    #[inline]
    fn real(self) -> f64 {
        self
    }
    #[inline]
    fn from_real(count: f64) -> Self {
        count
    }
    fn half(self) -> Self {
        self / 2.0
    }
    fn three_quarters(self) -> Self {
        self * 0.75
    }
}

/// cwnd and ssthresh.
#[derive(Debug, Clone, Copy)]
pub struct Window<C> {
    /// Congestion window.
    pub cwnd: C,
    /// Slow start threshold; [`Count::UNLIMITED`] before the first reduction.
    pub ssthresh: C,
}

impl<C: Count> Window<C> {
    /// cwnd and ssthresh are both `window`, as after most reductions.
    #[must_use]
    pub const fn of(window: C) -> Self {
        Self {
            cwnd: window,
            ssthresh: window,
        }
    }
    /// RFC 5681 §3.1.
    #[inline]
    #[must_use]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}
