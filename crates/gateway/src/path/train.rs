//! A first estimate of a path's rate, before it carries traffic: the delay of a train of datagrams
//! that leave at once, relative to the delay of a single one.
//!
//! A path is chosen before its rate can be measured from traffic. Without an estimate the first
//! packets of a flow would queue in a path that is much slower than the others. A jump of the delay
//! by jitter makes the estimate too low, so a low one is confirmed by further trains.

use anabranch_core::units::Duration;

use crate::time::Instant;

use super::BASE;

/// Datagrams of a train: as many as the initial window of a TCP sender (RFC 6928).
const LENGTH: u64 = 10;
/// The greatest number of trains.
const TRAINS: u8 = 3;
/// The time between trains, and until a delay is measured without the queue of one.
const PAUSE: Duration = Duration::from_millis(200);
/// Shorter queues are not distinguished from none, in seconds.
const RESOLUTION_S: f64 = 20e-6;
/// The part of a delay that jitter explains, in mean differences between delays.
const DEVIATIONS: f64 = 4.0;
/// A datagram up to this size is small: its delay contains hardly any time of transmission. The size
/// of control messages is not known here, it counts as 0.
const SMALL: usize = 100;

/// The trains of a path.
#[derive(Debug, Clone, Default)]
pub struct Train {
    begun: u8,
    /// Datagrams of the present train that have not left.
    left: u64,
    /// The first number of the last train, and one past its last.
    first: u64,
    end: u64,
    /// The delay of a single datagram before the train, in seconds.
    before_s: f64,
    /// The estimate of the last train, and the highest of those before, in octets per second.
    last: f64,
    before: f64,
    /// Whether the last train was measured, and whether a delay was measured after it.
    is_measured: bool,
    is_over: bool,
    /// The newest delay of a small datagram, in seconds.
    small_s: Option<f64>,
    /// The mean difference between consecutive ones of these.
    jitter_s: f64,
    since: Instant,
}

impl Train {
    /// Octets of each datagram of a train.
    pub const OCTETS: usize = BASE;

    /// Whether a train may begin on an idle path. None follows an estimate above `enough`.
    #[must_use]
    pub fn is_due(&self, enough: f64, now: Instant) -> bool {
        if self.small_s.is_none() {
            return false;
        }
        let is_first = self.begun == 0;
        let is_confirmed = self.last.max(self.before) > enough;
        let has_passed = now.saturating_since(self.since) >= PAUSE;
        is_first || self.begun < TRAINS && !is_confirmed && has_passed && self.is_over
    }

    /// Whether a datagram of a train leaves next.
    #[must_use]
    pub const fn is_under_way(&self) -> bool {
        self.left > 0
    }

    /// Begins a train.
    pub fn begin(&mut self, now: Instant) {
        self.begun += 1;
        self.left = LENGTH;
        self.before = self.before.max(self.last);
        (self.last, self.is_measured, self.is_over) = (0.0, false, false);
        (self.before_s, self.since) = (self.small_s.unwrap_or(0.0), now);
    }

    /// Records the number of a datagram of the train that leaves.
    pub fn on_sent(&mut self, number: u64) {
        if self.left == LENGTH {
            self.first = number;
        }
        self.left = self.left.saturating_sub(1);
        self.end = number + 1;
    }

    /// Handles a report of this datagram, the highest that has arrived. Returns the estimate if it
    /// changed.
    pub fn on_delay(
        &mut self,
        number: u64,
        sent: Instant,
        octets: usize,
        delay_s: f64,
    ) -> Option<f64> {
        if number <= self.first && self.begun > 0 {
            return None;
        }
        let later = sent.saturating_since(self.since);
        let is_of_train = self.begun > 0 && number < self.end;
        if !is_of_train && (self.begun == 0 || later >= PAUSE) {
            if (1..=SMALL).contains(&octets) {
                let before_s = self.small_s.replace(delay_s).unwrap_or(delay_s);
                self.jitter_s += ((delay_s - before_s).abs() - self.jitter_s) / 4.0;
                self.is_over = true;
            }
            return None;
        }
        if !is_of_train && self.is_measured {
            return None;
        }
        // A later datagram has a longer queue before it, and the last ones may be lost. One that
        // left after the train arrives no earlier than the train.
        self.is_measured = true;
        let train = (number.min(self.end - 1) + 1 - self.first) as f64 * Self::OCTETS as f64;
        let after_s = if is_of_train {
            0.0
        } else {
            later.as_secs_f64()
        };
        let took_s = delay_s + after_s - self.before_s - DEVIATIONS * self.jitter_s;
        self.last = train / took_s.max(RESOLUTION_S);
        Some(self.last.max(self.before))
    }
}
