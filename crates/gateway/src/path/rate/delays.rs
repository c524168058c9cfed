//! The delays of a path: the base delay, which is that of an empty queue, the jitter, and the
//! change of the least delay from round to round.

use anabranch_core::units::Duration;

use crate::time::Instant;

/// The target queue in a path without jitter.
pub(super) const TARGET_S: f64 = 0.008;
/// Multiple of the jitter that is added to the target: with jitter the least delay of a round
/// exceeds the least of many rounds by about this much.
const JITTER: f64 = 3.0;
/// A queue that persists after this multiple of it must have drained is not a queue.
const DOUBT: f64 = 2.0;
/// A delay that changes by this much indicates a change of a clock.
const CLOCK_STEP_S: f64 = 5.0;
/// The base delay covers one to two of these intervals.
const BASE_LIFE: Duration = Duration::from_secs(10);

/// Consecutive rounds with a long queue.
#[derive(Debug, Clone, Copy)]
struct Long {
    /// The queue in the first of them.
    queue_s: f64,
    /// The part of it that must have drained since.
    drained_s: f64,
}

/// The delays, in seconds, with the offset of the clocks, which all paths share.
#[derive(Debug, Clone)]
pub(super) struct Delays {
    base_s: [f64; 2],
    base_since: Instant,
    smoothed_s: Option<f64>,
    /// Octets in flight when the packets with this delay were sent, smoothed in the same way.
    flight_then: f64,
    /// The newest delay, and the mean difference between consecutive delays: a queue changes more
    /// slowly.
    newest_s: Option<f64>,
    jitter_s: f64,
    /// The least delay of the last round and the octets in flight then, and the mean difference
    /// between the least delays of consecutive rounds that the octets in flight do not explain.
    least: Option<(f64, f64)>,
    sway_s: f64,
    long: Option<Long>,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            base_s: [f64::INFINITY; 2],
            base_since: Instant::START,
            smoothed_s: None,
            flight_then: 0.0,
            newest_s: None,
            jitter_s: 0.0,
            least: None,
            sway_s: 0.0,
            long: None,
        }
    }
}

impl Delays {
    /// The smoothed delay.
    pub(super) const fn smoothed_s(&self) -> Option<f64> {
        self.smoothed_s
    }

    /// The newest delay.
    pub(super) const fn newest_s(&self) -> Option<f64> {
        self.newest_s
    }

    /// Octets in flight when the packets with the smoothed delay were sent.
    pub(super) const fn flight_then(&self) -> f64 {
        self.flight_then
    }

    /// The mean difference between consecutive delays (RFC 3550 §6.4.1).
    pub(super) const fn jitter_s(&self) -> f64 {
        self.jitter_s
    }

    /// The least delay of the last one to two [`BASE_LIFE`]; infinite without a sample.
    pub(super) fn base_s(&self) -> f64 {
        self.base_s[0].min(self.base_s[1])
    }

    /// The queue in the path by the smoothed delay.
    pub(super) fn queue_s(&self) -> f64 {
        let queue = self.smoothed_s.map_or(0.0, |delay| delay - self.base_s());
        if queue.is_finite() {
            queue.max(0.0)
        } else {
            0.0
        }
    }

    /// The target queue, if the path carries its largest datagram in `packet_s`.
    pub(super) fn target_s(&self, packet_s: f64) -> f64 {
        TARGET_S + packet_s + JITTER * self.jitter_s.max(self.sway_s)
    }

    /// Whether a clock was stopped or set before this sample: no queue is that long.
    pub(super) fn is_step(&self, sample: f64) -> bool {
        self.smoothed_s
            .is_some_and(|before| (sample - before).abs() > CLOCK_STEP_S)
    }

    /// Records the delay of the newest arrival, and the octets in flight when it was sent. Differences
    /// up to `packet_s` are no jitter.
    pub(super) fn on_sample(&mut self, sample: f64, in_flight: usize, packet_s: f64, now: Instant) {
        if now.saturating_since(self.base_since) > BASE_LIFE {
            self.base_s = [self.base_s[1], f64::INFINITY];
            self.base_since = now;
        }
        self.base_s[1] = self.base_s[1].min(sample);
        let before = self.newest_s.replace(sample).unwrap_or(sample);
        let change = ((sample - before).abs() - packet_s).max(0.0);
        self.jitter_s += (change - self.jitter_s) / 16.0;
        let delay = self.smoothed_s.get_or_insert(sample);
        *delay += (sample - *delay) / 8.0;
        self.flight_then += (in_flight as f64 - self.flight_then) / 8.0;
    }

    /// Records the least queue of a round, to measure how much the least delay differs from round to
    /// round.
    pub(super) fn on_round(&mut self, least_queue_s: f64, delivery: f64) {
        if !least_queue_s.is_finite() {
            return;
        }
        let least = least_queue_s + self.base_s();
        let flight = self.flight_then;
        if let Some((before, flight_before)) = self.least.replace((least, flight))
            && delivery > 0.0
        {
            let change = least - before;
            let own = (flight - flight_before) / delivery;
            let sway = (change - own).abs().min(change.abs());
            self.sway_s += (sway - self.sway_s) / 8.0;
        }
    }

    /// Raises the base delay if a long queue, `queue_s` now, does not shrink while less is sent than
    /// arrives: either it is not caused by this end, or the path has become longer. `drained_s` of
    /// it must have drained in this round. `None` ends the rounds with a long queue.
    pub(super) fn doubt_the_base(&mut self, queue_s: Option<f64>, drained_s: f64) {
        let Some(queue_s) = queue_s else {
            self.long = None;
            return;
        };
        let base = self.base_s();
        let long = self.long.get_or_insert(Long {
            queue_s,
            drained_s: 0.0,
        });
        long.drained_s += drained_s.max(0.0);
        if long.drained_s > DOUBT * long.queue_s {
            self.base_s = [base + queue_s.min(long.queue_s); 2];
            self.long = None;
        }
    }

    /// Discards the delays, so that the difference of the clocks is measured again.
    pub(super) fn forget(&mut self) {
        (self.smoothed_s, self.newest_s) = (None, None);
        self.least = None;
        self.base_s = [f64::INFINITY; 2];
    }
}
