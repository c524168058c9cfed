//! The start of a path: as TCP's slow start, until the delivery does not keep up.

use super::{
    CLEAR, FLAT, FULL_OCTETS, GROWS, INITIAL, KEEPS_UP_AT_START, LEAST, LEAST_FLIGHT, Newest,
    RateControl, TARGET_S, round::Seen,
};

impl RateControl {
    /// The rate with which the start begins.
    pub(super) fn initial(&self) -> f64 {
        self.first
            .map_or(INITIAL, |first| first.clamp(LEAST, INITIAL))
    }

    /// Takes a first estimate of the rate.
    pub fn on_first_estimate(&mut self, rate: f64) {
        if self.is_starting {
            self.first = Some(rate);
        }
    }

    /// Records that packets begin to use the path. One that is slower than the initial rate has no
    /// start.
    pub fn on_use(&mut self) {
        if self.is_starting
            && let Some(first) = self.first.filter(|&first| first < INITIAL)
        {
            self.is_starting = false;
            self.delivery = first.max(LEAST);
            self.rate = self.delivery.min(self.limit);
        }
    }

    /// Ends a start that is too fast: while a queue persists or grows from report to report, the
    /// path delivers at capacity, even over less than a round. With no more in flight than is always
    /// allowed, the start is not too fast.
    pub(super) fn follow_queue(&mut self, arrived: u32, delay_s: f64, in_flight: usize) {
        let newest = Newest {
            arrived,
            delay_s,
            total: self.total,
        };
        let before = self.last.replace(newest);
        let is_little = (in_flight.max(self.in_flight) as f64) < LEAST_FLIGHT;
        let may_end = self.is_starting && self.has_pauses && !is_little;
        let Some(before) = before.filter(|_| may_end) else {
            self.queued = None;
            return;
        };
        let is_queued = delay_s - self.base() > self.target_s();
        if delay_s < before.delay_s - self.jitter_s && !is_queued {
            self.queued = None;
            return;
        }
        let first = *self.queued.get_or_insert(before);
        let took_s = f64::from(arrived.wrapping_sub(first.arrived)) * 1e-6;
        let octets = (self.total - first.total) as f64;
        let grown_s = delay_s - first.delay_s;
        if octets < LEAST_FLIGHT || took_s < CLEAR * self.jitter_s {
            return;
        }
        let delivery = octets / took_s;
        let is_growing = grown_s > TARGET_S && grown_s > (1.0 - KEEPS_UP_AT_START) * took_s;
        if delivery < KEEPS_UP_AT_START * self.rate && (is_queued || is_growing) {
            self.is_starting = false;
            self.delivery = delivery;
            self.rate = delivery;
        }
    }

    /// Handles a round of the start, which ends when more sending does not increase the delivery.
    pub(super) fn start(&mut self, seen: &Seen) {
        if seen.is_busy || seen.is_long {
            let grows = seen.delivery > GROWS * self.delivery;
            self.flat = if grows { 0 } else { self.flat + 1 };
        }
        // A burst of few packets at the end of a round looks like a full path, but not twice.
        self.full = if seen.full > 0 {
            self.full + seen.full
        } else {
            0
        };
        let is_full = self.full > FULL_OCTETS;
        let is_over = seen.is_long && !seen.keeps_up || seen.is_loss || is_full;
        if is_over || self.flat >= FLAT {
            self.is_starting = false;
            self.delivery = if seen.is_fed {
                seen.delivery
            } else {
                self.delivery.max(seen.delivery)
            };
        } else {
            self.delivery = self.delivery.max(seen.delivery);
        }
    }
}
