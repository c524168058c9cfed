//! Measurements of a connection in addition to its endpoints' counters.

use anabranch_core::{
    reordering::{Arrival, Params, Reordering},
    units::{Bytes, Duration, Instant},
};
use anabranch_path::link::Window;

/// The srtt is sampled at multiples of this (contract: `mean_srtt_ms`).
const SRTT_SAMPLE: Duration = Duration::from_millis(10);

/// A sender's window and round-trip time over the measured time.
#[derive(Debug, Clone)]
pub struct SenderMeter {
    window: Window,
    cwnd: u64,
    since: Instant,
    /// Byte-picoseconds.
    integral: u128,
    next_sample: Instant,
    srtt: Duration,
    srtt_sum_ms: f64,
    samples: u64,
}

impl SenderMeter {
    /// For a connection measured in `window`.
    #[must_use]
    pub fn new(window: Window) -> Self {
        let start = window
            .start()
            .as_picos()
            .next_multiple_of(SRTT_SAMPLE.as_picos());
        Self {
            window,
            cwnd: 0,
            since: window.start(),
            integral: 0,
            next_sample: Instant::from_picos(start),
            srtt: Duration::ZERO,
            srtt_sum_ms: 0.0,
            samples: 0,
        }
    }
    /// Ends the measured time at `now`.
    pub fn stop(&mut self, now: Instant) {
        self.settle(now);
        if now >= self.next_sample {
            self.sample(now);
        }
        self.window = Window::new(self.window.start(), now.min(self.window.end()));
    }
    /// Records the state after an event at `now`.
    #[expect(
        clippy::inline_always,
        reason = "measured: it is a step of the hot path"
    )]
    #[inline(always)]
    pub fn update(&mut self, now: Instant, cwnd: Bytes, srtt: Duration) {
        if cwnd.get() != self.cwnd {
            self.settle(now);
            self.cwnd = cwnd.get();
        }
        if now >= self.next_sample {
            self.sample(now);
        }
        self.srtt = srtt;
    }
    fn settle(&mut self, now: Instant) {
        let span = self.window.overlap(self.since, now).as_picos();
        self.integral += u128::from(span) * u128::from(self.cwnd);
        self.since = self.since.max(now);
    }
    /// Takes the samples due before `now` with the preceding srtt.
    fn sample(&mut self, now: Instant) {
        let last = now.min(self.window.end());
        while self.next_sample <= last {
            if !self.srtt.is_zero() {
                self.srtt_sum_ms += self.srtt.as_millis_f64();
                self.samples += 1;
            }
            self.next_sample = self.next_sample + SRTT_SAMPLE;
        }
    }
    /// Returns the mean window in bytes over the measured time, and the mean srtt in milliseconds.
    #[must_use]
    pub fn finish(&mut self, end: Instant) -> (Option<f64>, Option<f64>) {
        let end = end.min(self.window.end());
        self.settle(end);
        if end >= self.next_sample {
            self.sample(end);
        }
        let span = end.saturating_since(self.window.start());
        let cwnd = (!span.is_zero()).then(|| self.integral as f64 / span.as_picos() as f64);
        let srtt = (self.samples > 0).then(|| self.srtt_sum_ms / self.samples as f64);
        (cwnd, srtt)
    }
}

/// Arrivals at a receiver in the measured time.
#[derive(Debug, Clone)]
pub struct ReceiverMeter {
    window: Window,
    /// Bytes of IP packets.
    pub ip_bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Retransmissions of data that an earlier transmission delivered.
    pub spurious_retransmissions: u64,
    /// The time of the last in-order delivery.
    pub last_delivery: Instant,
    /// The order of arrivals.
    pub reordering: Reordering,
}

impl ReceiverMeter {
    /// For a connection measured in `window`.
    #[must_use]
    pub fn new(window: Window) -> Self {
        Self {
            window,
            ip_bytes: 0,
            packets: 0,
            spurious_retransmissions: 0,
            last_delivery: Instant::START,
            reordering: Reordering::new(&Params::default()),
        }
    }
    /// Ends the measured time at `now`.
    pub fn stop(&mut self, now: Instant) {
        self.window = Window::new(self.window.start(), now.min(self.window.end()));
    }
    /// Records a packet, and returns whether it was reordered; `None` outside the measured time.
    #[inline]
    pub fn on_packet(&mut self, now: Instant, number: u64, size: u32) -> Option<Arrival> {
        if !self.window.contains(now) {
            return None;
        }
        self.ip_bytes += u64::from(size);
        self.packets += 1;
        Some(self.reordering.on_arrival(number))
    }
}
