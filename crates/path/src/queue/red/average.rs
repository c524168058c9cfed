//! RED's average: exponentially weighted over arrivals, and over the packets that an idle link
//! could have sent.

use anabranch_core::{
    math,
    units::{Bytes, Duration, Instant, Rate},
};

/// Average length of a queue (Floyd and Jacobson §4).
#[derive(Debug)]
pub(super) struct Average {
    value: f64,
    weight: f64,
    /// `ln(1 - weight)`.
    log_rest: f64,
    /// Start of the link's idle period.
    idle_since: Option<Instant>,
    idle_packet: Bytes,
    /// Transmission time of a small packet.
    packet_time: Duration,
}

impl Average {
    /// Average of an empty queue on an idle link.
    pub(super) fn new(weight: f64, idle_packet: Bytes, rate: Option<Rate>) -> Self {
        let mut average = Self {
            value: 0.0,
            weight,
            log_rest: math::log1p(-weight),
            idle_since: Some(Instant::START),
            idle_packet,
            packet_time: Duration::ZERO,
        };
        average.set_rate(rate);
        average
    }
    pub(super) fn get(&self) -> f64 {
        self.value
    }
    pub(super) fn set_weight(&mut self, weight: f64) {
        (self.weight, self.log_rest) = (weight, math::log1p(-weight));
    }
    pub(super) fn set_rate(&mut self, rate: Option<Rate>) {
        self.packet_time = rate.map_or(Duration::ZERO, |rate| self.idle_packet / rate);
    }
    /// Notes that the link is idle from `now` on.
    pub(super) fn ran_out(&mut self, now: Instant) {
        self.idle_since.get_or_insert(now);
    }
    /// Updates the average for a packet that finds a backlog of `waiting`; returns whether the link
    /// was idle.
    #[inline]
    pub(super) fn update(&mut self, now: Instant, waiting: f64) -> bool {
        if let Some(since) = self.idle_since.take() {
            self.decay(now.saturating_since(since));
            return true;
        }
        self.value += self.weight * (waiting - self.value);
        false
    }
    /// Decays the average over an idle period by `(1 - weight)^m`, where m is the number of small
    /// packets that could have been sent.
    fn decay(&mut self, idle: Duration) {
        if self.value <= 0.0 || idle == Duration::ZERO {
            return;
        }
        if self.packet_time == Duration::ZERO {
            self.value = 0.0;
            return;
        }
        let m = idle.as_picos() as f64 / self.packet_time.as_picos() as f64;
        self.value *= math::exp(m * self.log_rest);
        // Flushes subnormal values to 0: no threshold distinguishes them, and they are slow to
        // compute with.
        if self.value < f64::MIN_POSITIVE {
            self.value = 0.0;
        }
    }
}
