//! A first estimate of a path's rate, before it carries traffic: the delay of a train of datagrams
//! that leave at once, relative to the delay of a single one.
//!
//! A path is chosen before its rate can be measured from traffic. Without an estimate the first
//! packets of a flow would queue in a path that is much slower than the others. A jump of the delay
//! by jitter makes the estimate too low, so a low one is confirmed by further trains.

use anabranch_core::units::{Duration, Instant};

use super::BASE;

/// Datagrams of a train: as many as the initial window of a TCP sender (RFC 6928).
const LENGTH: u64 = 10;
/// The greatest number of trains.
const TRAINS: u8 = 3;
/// The time between trains.
const PAUSE: Duration = Duration::from_millis(50);
/// Shorter queues are not distinguished from none, in seconds.
const RESOLUTION_S: f64 = 20e-6;

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
    /// Whether a delay was measured after the last train, without its queue.
    is_over: bool,
    since: Instant,
}

impl Train {
    /// Octets of each datagram of a train.
    pub const OCTETS: usize = BASE;

    /// Whether a train may begin on an idle path. None follows an estimate above `enough`.
    #[must_use]
    pub fn is_due(&self, enough: f64, now: Instant) -> bool {
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

    /// Begins a train; `before_s` is the delay of a single datagram in seconds.
    pub fn begin(&mut self, before_s: f64, now: Instant) {
        self.begun += 1;
        self.left = LENGTH;
        self.before = self.before.max(self.last);
        (self.last, self.is_over) = (0.0, false);
        (self.before_s, self.since) = (before_s, now);
    }

    /// Records the number of a datagram of the train that leaves.
    pub fn on_sent(&mut self, number: u64) {
        if self.left == LENGTH {
            self.first = number;
        }
        self.left = self.left.saturating_sub(1);
        self.end = number + 1;
    }

    /// Handles a report: the highest number that arrived, and its delay in seconds. Returns the
    /// estimate if it changed.
    pub fn on_delay(&mut self, number: u64, delay_s: f64) -> Option<f64> {
        if number >= self.end || number <= self.first {
            self.is_over |= number >= self.end;
            return None;
        }
        // A later datagram has a longer queue before it. The last ones may be lost.
        let octets = (number + 1 - self.first) as f64 * Self::OCTETS as f64;
        self.last = octets / (delay_s - self.before_s).max(RESOLUTION_S);
        Some(self.last.max(self.before))
    }

    /// Whether no train follows.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.begun >= TRAINS
    }
}
