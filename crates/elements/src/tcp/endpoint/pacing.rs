//! When paced data may leave: a control's own rate, or a multiple of cwnd ÷ srtt.
//!
//! Data leaves in bursts of about [`pacing_burst`](crate::tcp::settings::Settings::pacing_burst)
//! at the rate, as a stack does that hands large segments to the network card; the next burst
//! waits until this one would have left at the rate. Time not used earns nothing.
//!
//! # Differs from Linux
//! - The first segments of a recovery leave at once; what they take is still counted.
//! - Slow start is where cwnd is below ssthresh.

use anabranch_core::units::{Bytes, Instant, Rate};

use super::Endpoint;
use crate::{body::Body, cc::CongestionControl};

/// Octets of a burst at most: the largest segment that a network card splits.
const MAX_BURST: u64 = 65_536;

impl<B: Body> Endpoint<B> {
    /// The rate to send at, if there is one yet.
    pub(super) fn pacing_rate(&self) -> Option<Rate> {
        if let Some(rate) = self.control.pacing_rate() {
            return Some(rate);
        }
        if !self.settings.pacing {
            return None;
        }
        let cwnd = self.control.cwnd();
        let slow_start = self
            .control
            .ssthresh()
            .is_none_or(|ssthresh| cwnd < ssthresh);
        let ratio = if slow_start {
            self.settings.pacing_ss_ratio
        } else {
            self.settings.pacing_ca_ratio
        };
        // A window that has just been reduced does not stop what is already in flight.
        let window = cwnd.max(Bytes::new(self.board.in_flight()));
        let rate = Rate::from_bytes_per(window, self.rtt.srtt())?;
        Rate::new(u64::try_from(u128::from(rate.bits_per_s()) * u128::from(ratio) / 100).ok()?)
    }

    /// Whether `len` octets must wait; if so, the deadline is set.
    #[inline(never)]
    pub(super) fn is_held_back(&mut self, now: Instant, len: u32) -> bool {
        let held = now < self.paced_from
            && self.cold.extras().burst < u64::from(len)
            && self.pacing_rate().is_some();
        if held {
            self.paced_until = self.paced_from;
        }
        held
    }

    /// `len` octets leave.
    #[inline(never)]
    pub(super) fn pace(&mut self, now: Instant, len: u32) {
        let Some(rate) = self.pacing_rate() else {
            return;
        };
        if now >= self.paced_from {
            self.paced_from = now;
            let most = (rate * self.settings.pacing_burst).get().min(MAX_BURST);
            self.cold.extras().burst = if self.settings.pacing_burst.is_zero() {
                0
            } else {
                most.max(2 * u64::from(self.smss))
            };
        }
        let len = u64::from(len);
        let burst = &mut self.cold.extras().burst;
        *burst = burst.saturating_sub(len);
        self.paced_from = self.paced_from.saturating_add(Bytes::new(len) / rate);
    }
}
