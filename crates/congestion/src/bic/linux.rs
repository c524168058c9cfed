//! BIC in the form of Linux's module: its documented parameters (`max_increment` 16, `beta` 819 of
//! 1024, `low_window` 14, `smooth_part` 20, `fast_convergence`), and its window as measured on
//! Linux 6.12.
//!
//! - Below the maximum the window grows by a quarter of the distance per round trip. Within four
//!   segments of it, on either side, a segment takes five round trips. Further above it the window
//!   grows by a third of the distance from the maximum per round trip.
//! - Without a maximum the window grows by at least a twentieth per round trip.
//! - These steps assume an acknowledgment for each segment. The module divides its counts by the
//!   mean number of segments per acknowledgment, but it counts segments, so growth is twice as
//!   fast. The mean starts at two and hardly falls in integer arithmetic. Up to `low_window` nothing
//!   is divided: from 3 to 14 segments the window grows by one per round trip.
//! - Windows are whole segments. A timeout discards the maximum.

use super::{SegmentCount, Window};

/// Initial mean number of segments per acknowledgment.
const ACK_RATIO: u32 = 2;
/// Unit of the mean number of segments per acknowledgment, and weight of a sample: 1/16.
const RATIO_PARTS: u32 = 16;
/// Growth per round trip is this part of the distance to the maximum.
const SEARCH_PARTS: f64 = 4.0;
/// Without a maximum, upper bound of the acknowledged segments per segment of growth: a twentieth
/// of the window per round trip.
const MOST_WITHOUT_MAXIMUM: f64 = 20.0;

/// State of the search.
#[derive(Debug, Clone, Copy)]
pub struct Linux {
    /// Round trips per segment of growth close to the maximum.
    flat_round_trips: f64,
    /// Mean number of segments per acknowledgment, in 16ths.
    ratio: u32,
    count: SegmentCount,
}

impl Linux {
    /// `s_min`: smallest growth per round trip, in segments.
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
        if cwnd <= low_window {
            self.count.grow(window, acked, cwnd);
            return;
        }
        let known = max_win.is_finite();
        let last_max = if known { max_win } else { 0.0 };
        let flat = (cwnd * self.flat_round_trips).floor();
        let cnt = if cwnd < last_max {
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
