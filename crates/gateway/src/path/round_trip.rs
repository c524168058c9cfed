//! Smoothed round-trip time and its deviation (RFC 6298 §2).

use anabranch_core::units::Duration;

/// Before the first sample, a report is late after this time.
const LATE_UNKNOWN: Duration = Duration::from_millis(250);
/// Allowance for a report that waits for others, and for a timer of the other end's host.
const SLACK: Duration = Duration::from_millis(30);
/// Lower bound of [`RoundTrip::reordering`]: timers of hosts are no more precise.
const REORDERING_LEAST: Duration = Duration::from_millis(5);
/// Time from late to dead.
const SILENCE: Duration = Duration::from_millis(120);
const LATE_MAX: Duration = Duration::from_secs(1);

/// The estimate.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoundTrip {
    smoothed: Smoothed,
    /// The times from the sending of the oldest packet without a report until the next report.
    silence: Smoothed,
    feedback: Option<Duration>,
}

/// A mean and a mean deviation (RFC 6298 §2).
#[derive(Debug, Clone, Copy, Default)]
struct Smoothed(Option<(Duration, Duration)>);

impl Smoothed {
    fn sample(&mut self, time: Duration) {
        self.0 = Some(match self.0 {
            None => (time, time / 2),
            Some((mean, deviation)) => {
                let distance = mean.saturating_sub(time).max(time.saturating_sub(mean));
                ((mean * 7 + time) / 8, (deviation * 3 + distance) / 4)
            }
        });
    }

    /// The time that is hardly ever exceeded (`RTO` without bounds).
    fn most(&self) -> Option<Duration> {
        self.0.map(|(mean, deviation)| mean + deviation * 4)
    }
}

impl RoundTrip {
    /// Takes a sample.
    pub fn sample(&mut self, rtt: Duration) {
        self.smoothed.sample(rtt);
    }

    /// Records the time from the sending of the oldest packet without a report until a report that
    /// shows later arrivals: it contains the interval of the other end's reports and their losses.
    pub fn on_silence(&mut self, time: Duration) {
        self.silence.sample(time.min(LATE_MAX));
    }

    /// Records the time from the sending of a datagram until its report was processed.
    pub fn on_feedback(&mut self, time: Duration) {
        let smoothed = self.feedback.map_or(time, |before| (before * 7 + time) / 8);
        self.feedback = Some(smoothed);
    }

    /// The smoothed time from sending until the report is processed: the round trip and the waits
    /// of both hosts. The data in flight must last this long.
    #[must_use]
    pub fn feedback(&self) -> Option<Duration> {
        self.feedback
    }

    /// The smoothed round-trip time.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        self.smoothed.0.map(|(srtt, _)| srtt)
    }

    /// The reordering window (RFC 8985 §6.2.1, step 4): a packet is lost if one sent this much
    /// later arrived, unless the path's measured reordering is larger.
    #[must_use]
    pub fn reordering(&self) -> Duration {
        let srtt = self.srtt().unwrap_or(LATE_UNKNOWN);
        (srtt / 4).max(REORDERING_LEAST)
    }

    /// The time after sending at which a report is late.
    #[must_use]
    pub fn late(&self) -> Duration {
        let at_once = self
            .smoothed
            .most()
            .map_or(LATE_UNKNOWN, |most| most + SLACK);
        at_once
            .max(self.silence.most().unwrap_or(Duration::ZERO))
            .min(LATE_MAX)
    }

    /// The time after sending at which the path is dead.
    #[must_use]
    pub fn dead(&self) -> Duration {
        self.late() + SILENCE
    }
}
