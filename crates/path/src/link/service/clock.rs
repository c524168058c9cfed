//! Recurring times: an offset plus multiples of a period.

use anabranch_core::units::{Duration, Instant};

/// Times `offset`, `offset + period`, `offset + 2 period`, …
#[derive(Debug, Clone, Copy)]
pub(super) struct Recurring {
    period: u64,
    offset: u64,
}

impl Recurring {
    /// A `period` of zero recurs at every instant.
    pub(super) fn new(period: Duration, offset: Duration) -> Self {
        let period = period.as_picos();
        Self {
            period,
            offset: offset.as_picos().checked_rem(period).unwrap_or(0),
        }
    }

    /// First recurrence at or after `at`.
    pub(super) fn at_or_after(self, at: Instant) -> Instant {
        let at = at.as_picos();
        if self.period == 0 {
            return Instant::from_picos(at);
        }
        let periods = at.saturating_sub(self.offset).div_ceil(self.period);
        let time = periods.saturating_mul(self.period);
        Instant::from_picos(time.saturating_add(self.offset))
    }
}
