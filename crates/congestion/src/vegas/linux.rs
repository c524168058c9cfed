//! Vegas in the form of Linux's module, as measured on Linux 6.12.
//!
//! - The round-trip time of a round trip is the smallest, so a queue that drains between two bursts
//!   does not count. The packets queued are `cwnd · (RTT - BaseRTT) / BaseRTT`, rounded down; the
//!   paper divides by `RTT`.
//! - Slow start doubles the window in every round trip. If more than `gamma` packets are queued, it
//!   ends at the window that fills the path without a queue plus one segment, or at cwnd if that is
//!   less. A burst that overflows the queue ends it earlier.
//! - A round trip with two samples or fewer counts as Reno, with its last acknowledgment.
//! - Growth does not require that cwnd limits the sender.
//! - `BaseRTT` is the smallest since sending last resumed: a pause discards it.
//! - ssthresh is lowered with the window, but not below three quarters of it.
//!
//! # Differs from Linux
//! - Growth is suspended in recoveries, as in every control here. Linux grows as Reno between the
//!   first duplicate ACK and the recovery.

use anabranch_core::units::Bytes;

use super::{Ack, RttSamples, SegmentCount, VegasLaw, Window, whole_segments};

/// A round trip with this number of samples or fewer counts as Reno.
const FEW_SAMPLES: u32 = 2;

/// Round trips of the module.
#[derive(Debug)]
pub(super) struct Rounds {
    smss: Bytes,
    /// Bytes outstanding at the start of the round trip and not yet acknowledged; `None` before it
    /// begins.
    left: Option<Bytes>,
    /// Vegas is active: all data sent before the last reduction is acknowledged.
    at_work: bool,
    /// The acknowledgment counts as in Reno.
    as_reno: bool,
    /// Growth of Reno.
    count: SegmentCount,
}

impl Rounds {
    pub(super) fn new(smss: Bytes) -> Self {
        Self {
            smss,
            left: None,
            at_work: true,
            as_reno: false,
            count: SegmentCount::default(),
        }
    }

    /// Suspends Vegas until the `flight` outstanding segments are acknowledged.
    pub(super) fn wait_for(&mut self, flight: f64) {
        self.left = Some(Bytes::from_segments(flight, self.smss));
        self.at_work = false;
    }

    /// Whether this acknowledgment is the first for data of the next round trip.
    fn ends(&mut self, ack: &Ack) -> bool {
        let ends = match &mut self.left {
            Some(left) if ack.acked <= *left => {
                *left = left.saturating_sub(ack.acked);
                return false;
            }
            left => left.is_some(),
        };
        self.left = Some(ack.in_flight);
        ends
    }

    /// Congestion avoidance of Reno.
    #[inline]
    pub(super) fn grow_as_reno(&mut self, window: &mut Window<f64>, ack: &Ack, acked: f64) {
        if self.as_reno && ack.cwnd_limited {
            self.count.grow(window, acked, window.cwnd);
        }
    }
}

impl VegasLaw {
    pub(super) fn restart_rounds(&mut self) {
        self.rounds.left = None;
        self.rounds.at_work = true;
        self.samples = RttSamples::default();
    }

    /// Whether the acknowledgment grows the window by slow start.
    pub(super) fn slow_starts_as_linux(&mut self, window: &mut Window<f64>, ack: &Ack) -> bool {
        let at_work = self.rounds.at_work;
        self.rounds.as_reno = !at_work;
        if self.rounds.ends(ack) {
            self.rounds.at_work = true;
            let samples = std::mem::take(&mut self.samples);
            match self.base_and_rtt(samples, ack) {
                Some((base, rtt)) if at_work && samples.count() > FEW_SAMPLES => {
                    self.end_round_as_linux(window, base.as_secs_f64(), rtt.as_secs_f64());
                }
                _ => self.rounds.as_reno = true,
            }
        }
        window.in_slow_start() && (ack.cwnd_limited || !self.rounds.as_reno)
    }

    /// Moves the window, given `BaseRTT` and `RTT` in seconds.
    fn end_round_as_linux(&mut self, window: &mut Window<f64>, base: f64, rtt: f64) {
        let cwnd = window.cwnd;
        self.queued = whole_segments(cwnd * (rtt - base).max(0.0) / base);
        if window.in_slow_start() {
            if self.queued > self.gamma {
                window.cwnd = cwnd.min(whole_segments(cwnd * base / rtt) + 1.0).max(2.0);
                window.ssthresh = window.ssthresh.min(window.cwnd);
            }
        } else if self.queued > self.beta {
            window.cwnd = (cwnd - 1.0).max(2.0);
            window.ssthresh = window.ssthresh.min(window.cwnd);
        } else if self.queued < self.alpha {
            window.cwnd += 1.0;
        }
        let three_quarters = (window.cwnd / 2.0).floor() + (window.cwnd / 4.0).floor();
        window.ssthresh = window.ssthresh.max(three_quarters);
    }
}
