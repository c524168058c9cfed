//! BIC in the form of Linux's module: its documented parameters (`max_increment` 16, `beta` 819 of 1024, `low_window` 14,
//! `smooth_part` 20, `fast_convergence`), and its window as measured on Linux 6.12.
//!
//! - Below the maximum a round trip adds a quarter of the distance; within four segments of it, on either side, a segment takes
//!   five round trips. From there on a round trip adds a third of the way covered since the maximum.
//! - Without a maximum a round trip adds a twentieth of the window at least.
//! - These steps assume an acknowledgment for each segment. The module divides its counts by the mean number of segments of an
//!   acknowledgment, which begins at two and in its integers hardly falls, and it counts segments: growth is twice as fast.
//! - Windows are whole segments. A timeout discards the maximum.

use super::{SegmentCount, Window};

/// Segments that an acknowledgment is taken for at first.
const ACK_RATIO: u32 = 2;
/// Weight of the mean number of segments of an acknowledgment, and its fixed point: 16ths.
const RATIO_PARTS: u32 = 16;
/// A round trip adds this part of the distance to the maximum.
const SEARCH_PARTS: f64 = 4.0;
/// Acknowledged segments for one more without a maximum, at most: a twentieth of the window per round trip.
const MOST_WITHOUT_MAXIMUM: f64 = 20.0;

/// State of the search.
#[derive(Debug, Clone, Copy)]
pub struct Linux {
    /// Round trips for a segment close to the maximum.
    flat_round_trips: f64,
    /// Mean number of segments of an acknowledgment, in 16ths.
    ratio: u32,
    count: SegmentCount,
}

impl Linux {
    /// `s_min`: the least that a round trip adds, in segments.
    pub(super) fn new(s_min: f64) -> Self {
        Self {
            flat_round_trips: 1.0 / s_min,
            ratio: ACK_RATIO * RATIO_PARTS,
            count: SegmentCount::default(),
        }
    }

    /// Counts the `acked` segments of an acknowledgment outside a recovery.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an acknowledgment is for fewer than 2^32 segments"
    )]
    pub(super) fn measure(&mut self, acked: f64) {
        self.ratio = self.ratio - self.ratio / RATIO_PARTS + acked as u32;
    }

    /// Growth outside slow start. `max_win` is infinite while unknown.
    pub(super) fn grow(
        &mut self,
        window: &mut Window<f64>,
        acked: f64,
        (max_win, s_max, low_window): (f64, f64, f64),
    ) {
        let cwnd = window.cwnd;
        let known = max_win.is_finite();
        let last_max = if known { max_win } else { 0.0 };
        let flat = (cwnd * self.flat_round_trips).floor();
        let cnt = if cwnd <= low_window {
            cwnd
        } else if cwnd < last_max {
            let step = ((last_max - cwnd) / SEARCH_PARTS).floor();
            if step > s_max {
                (cwnd / s_max).floor()
            } else if step <= 1.0 {
                flat
            } else {
                (cwnd / step).floor()
            }
        } else if cwnd < last_max + SEARCH_PARTS {
            flat
        } else if cwnd < last_max + s_max * (SEARCH_PARTS - 1.0) {
            (cwnd * (SEARCH_PARTS - 1.0) / (cwnd - last_max)).floor()
        } else {
            (cwnd / s_max).floor()
        };
        let cnt = if known {
            cnt
        } else {
            cnt.min(MOST_WITHOUT_MAXIMUM)
        };
        let cnt = (cnt * f64::from(RATIO_PARTS) / f64::from(self.ratio))
            .floor()
            .max(1.0);
        self.count.grow(window, acked, cnt);
    }
}
