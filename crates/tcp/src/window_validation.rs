//! Validation of the congestion window for senders whose application limits them (RFC 7661, "New
//! CWV").
//!
//! An unused window indicates nothing about the path. pipeACK is the amount that the path is known
//! to carry: the largest amount acknowledged in a round trip, over the last [sampling
//! period](Validation::period). While it is at least half of cwnd, or undefined, cwnd is
//! *validated* and the control is unchanged. Otherwise cwnd is *non-validated* (§4.3): it is kept
//! through pauses, grows only while it limits the sender, and a loss reduces the amount that was in
//! use, not the window (§4.4.1). After [five minutes](NON_VALIDATED_PERIOD) of that it is halved
//! (§4.4.3).
//!
//! A sample is the amount acknowledged from the end of one round trip to the end of the next, as
//! the endpoint counts round trips, or until all data is acknowledged.
//!
//! # Differs from Linux
//! - Linux does not implement RFC 7661; there a pause halves the window for each timeout that has
//!   passed (RFC 2861).
//!
//! # Not implemented
//! - Limits on bursts (§4.4.2): pacing is a separate switch.
//! - The further reduction by the amount marked (§4.4.1, for peers that report it).

use std::collections::VecDeque;

use anabranch_core::units::{Duration, Instant};

/// Duration for which a non-validated window is kept (NVP, §4.4: five minutes at most).
pub const NON_VALIDATED_PERIOD: Duration = Duration::from_secs(300);
/// Shortest sampling period (§4.2).
const LEAST_PERIOD: Duration = Duration::from_secs(1);

/// pipeACK and the phase that follows from it.
#[derive(Debug, Clone, Default)]
pub struct Validation {
    /// Samples of pipeACK, each larger than all later ones: the first valid sample is the largest.
    samples: VecDeque<(Instant, u64)>,
    /// A sample was taken since the connection or the last recovery began; pipeACK is undefined
    /// before.
    defined: bool,
    /// Start of the non-validated phase.
    since: Option<Instant>,
    /// Octets acknowledged when the current sample began; `None` until a round trip begins.
    from: Option<u64>,
    /// A loss is being repaired: no samples are taken.
    repairs: bool,
    /// A recovery that began with a non-validated window.
    recovery: Option<Repair>,
}

/// Values for the end of a recovery (§4.4.1).
#[derive(Debug, Clone, Copy)]
struct Repair {
    /// max(pipeACK, LossFlightSize)
    used: u64,
    /// R: octets retransmitted, each once.
    resent: u64,
}

impl Validation {
    /// The pipeACK sampling period (§4.2).
    #[must_use]
    pub fn period(srtt: Duration) -> Duration {
        srtt.saturating_mul(3).max(LEAST_PERIOD)
    }

    /// Takes a sample. A round trip has ended, or everything sent is acknowledged, and `acked`
    /// octets have been acknowledged in total.
    pub fn on_round(&mut self, now: Instant, acked: u64) {
        if self.repairs {
            return;
        }
        let Some(from) = self.from.replace(acked) else {
            return;
        };
        let sample = acked - from;
        while self.samples.back().is_some_and(|last| last.1 <= sample) {
            self.samples.pop_back();
        }
        self.samples.push_back((now, sample));
        self.defined = true;
    }

    /// pipeACK at `now`; `None` while it is undefined.
    #[must_use]
    pub fn pipe_ack(&self, now: Instant, srtt: Duration) -> Option<u64> {
        let period = Self::period(srtt);
        let counts = |sample: &&(Instant, u64)| now.saturating_since(sample.0) < period;
        let largest = self.samples.iter().find(counts);
        self.defined.then(|| largest.map_or(0, |sample| sample.1))
    }

    /// Updates the phase for a window of `cwnd`. Returns whether the window is validated (§4.3).
    pub fn look(&mut self, now: Instant, srtt: Duration, cwnd: u64) -> bool {
        if !self.defined {
            self.since = None;
            return true;
        }
        let period = Self::period(srtt);
        let enough = |sample: &&(Instant, u64)| sample.1.saturating_mul(2) >= cwnd;
        let validated_until = self
            .samples
            .iter()
            .rfind(enough)
            .map(|sample| sample.0.saturating_add(period));
        let validated = validated_until.is_some_and(|until| now < until);
        if validated {
            self.since = None;
        } else if self.since.is_none() {
            // If no sample is large enough, the window has outgrown them, at the latest with the
            // last one.
            let last = self.samples.back().map(|sample| sample.0);
            self.since = validated_until.or(last);
        }
        while self.samples.len() > 1 && now.saturating_since(self.samples[0].0) >= period {
            self.samples.pop_front();
        }
        validated
    }

    /// Whether a non-validated period is over (§4.4.3); the next one begins at its end. Must be
    /// called after [`Self::look`], until it returns `false`.
    pub fn period_is_over(&mut self, now: Instant) -> bool {
        match self.since {
            Some(since) if now.saturating_since(since) > NON_VALIDATED_PERIOD => {
                self.since = Some(since.saturating_add(NON_VALIDATED_PERIOD));
                true
            }
            _ => false,
        }
    }

    /// Returns the base of a reduction, instead of `flight` (LossFlightSize, §4.4.1). Called after
    /// [`Self::look`]. `repairs`: a recovery begins, at whose end [`Self::on_recovered`] must be
    /// called.
    pub fn on_congestion(
        &mut self,
        now: Instant,
        srtt: Duration,
        flight: u64,
        repairs: bool,
    ) -> u64 {
        let used = match self.pipe_ack(now, srtt) {
            Some(pipe) if self.since.is_some() => pipe.max(flight),
            _ => flight,
        };
        let unvalidated = self.since.is_some();
        self.forget();
        if repairs {
            self.repairs = true;
            self.recovery = unvalidated.then_some(Repair { used, resent: 0 });
        }
        used
    }

    /// Octets are retransmitted for the first time in this recovery.
    pub const fn on_resent(&mut self, octets: u64) {
        if let Some(repair) = &mut self.recovery {
            repair.resent += octets;
        }
    }

    /// The retransmission timer has expired: the standard response, and no samples until
    /// [`Self::on_recovered`].
    pub fn on_timeout(&mut self) {
        self.forget();
        self.repairs = true;
    }

    /// The reduction of the current recovery was spurious: no further reduction at its end.
    pub const fn on_spurious(&mut self) {
        self.recovery = None;
    }

    /// Ends a recovery. Returns the largest window after it, if it began with a non-validated one
    /// (§4.4.1).
    pub fn on_recovered(&mut self) -> Option<u64> {
        let repair = self.recovery.take();
        self.forget();
        self.repairs = false;
        repair.map(|repair| repair.used.saturating_sub(repair.resent) / 2)
    }

    /// Makes pipeACK undefined.
    fn forget(&mut self) {
        self.samples.clear();
        self.defined = false;
        self.since = None;
        self.from = None;
        self.recovery = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SRTT: Duration = Duration::from_millis(100);

    fn at(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    #[test]
    fn the_sampling_period_is_three_round_trips_or_one_second() {
        assert_eq!(Validation::period(SRTT), Duration::from_secs(1));
        assert_eq!(
            Validation::period(Duration::from_millis(600)),
            Duration::from_millis(1800)
        );
    }

    #[test]
    fn pipe_ack_is_the_largest_sample_of_the_period() {
        let mut validation = Validation::default();
        validation.on_round(at(0), 7);
        assert_eq!(validation.pipe_ack(at(0), SRTT), None);
        validation.on_round(at(100), 20_007);
        validation.on_round(at(200), 50_007);
        validation.on_round(at(300), 60_007);
        assert_eq!(validation.pipe_ack(at(300), SRTT), Some(30_000));
        assert_eq!(validation.pipe_ack(at(1199), SRTT), Some(30_000));
        assert_eq!(validation.pipe_ack(at(1200), SRTT), Some(10_000));
        assert_eq!(validation.pipe_ack(at(1300), SRTT), Some(0));
    }

    #[test]
    fn half_of_the_window_validates_it() {
        for (cwnd, expected) in [(60_000, true), (60_001, false)] {
            let mut validation = Validation::default();
            validation.on_round(at(0), 0);
            // Undefined pipeACK: the window is validated (§4.3).
            assert!(validation.look(at(50), SRTT, cwnd));
            validation.on_round(at(100), 30_000);
            assert_eq!(validation.look(at(100), SRTT, cwnd), expected);
        }
    }

    #[test]
    fn the_period_begins_at_the_end_of_the_last_large_sample() {
        let mut validation = Validation::default();
        validation.on_round(at(0), 0);
        validation.on_round(at(500), 30_000);
        assert!(validation.look(at(500), SRTT, 40_000));
        // No call for a little more than ten minutes; the window stopped being validated at 1.5 s.
        assert!(!validation.look(at(601_500), SRTT, 40_000));
        assert!(validation.period_is_over(at(601_500)));
        assert!(!validation.period_is_over(at(601_500)));
        assert!(validation.period_is_over(at(601_501)));
    }

    #[test]
    fn a_loss_reduces_the_window_in_use() {
        let mut validation = Validation::default();
        validation.on_round(at(0), 0);
        validation.on_round(at(100), 30_000);
        validation.look(at(100), SRTT, 100_000);
        assert_eq!(validation.on_congestion(at(150), SRTT, 8_000, true), 30_000);
        validation.on_resent(4_000);
        validation.on_round(at(200), 60_000);
        assert_eq!(validation.pipe_ack(at(200), SRTT), None);
        assert_eq!(validation.on_recovered(), Some(13_000));
        validation.on_round(at(250), 60_000);
        // More is in flight than was acknowledged in a round trip, and more than that is
        // retransmitted.
        validation.on_round(at(300), 70_000);
        validation.look(at(300), SRTT, 100_000);
        assert_eq!(
            validation.on_congestion(at(350), SRTT, 50_000, true),
            50_000
        );
        validation.on_resent(60_000);
        assert_eq!(validation.on_recovered(), Some(0));
    }

    #[test]
    fn a_validated_window_is_reduced_from_the_flight_size() {
        let mut validation = Validation::default();
        validation.on_round(at(0), 0);
        validation.on_round(at(100), 30_000);
        validation.look(at(100), SRTT, 40_000);
        assert_eq!(validation.on_congestion(at(150), SRTT, 8_000, true), 8_000);
        validation.on_resent(4_000);
        assert_eq!(validation.on_recovered(), None);
        assert_eq!(validation.pipe_ack(at(200), SRTT), None);
    }
}
