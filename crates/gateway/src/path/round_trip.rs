//! Smoothed round-trip time and its deviation (RFC 6298 §2).

use anabranch_core::units::Duration;

/// Before the first sample, a report is late after this time.
const LATE_UNKNOWN: Duration = Duration::from_millis(250);
/// A report waits for others, and for a timer of the other end's host.
const SLACK: Duration = Duration::from_millis(30);
/// The least time after which a later packet shows a loss: timers of hosts are no better.
const REORDERING_LEAST: Duration = Duration::from_millis(5);
/// From late to dead.
const SILENCE: Duration = Duration::from_millis(120);
const LATE_MAX: Duration = Duration::from_secs(1);

/// The estimate.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoundTrip {
    smoothed: Option<(Duration, Duration)>,
    feedback: Option<Duration>,
}

impl RoundTrip {
    /// Takes a sample.
    pub fn sample(&mut self, rtt: Duration) {
        self.smoothed = Some(match self.smoothed {
            None => (rtt, rtt / 2),
            Some((srtt, rttvar)) => {
                let deviation = srtt.saturating_sub(rtt).max(rtt.saturating_sub(srtt));
                ((srtt * 7 + rtt) / 8, (rttvar * 3 + deviation) / 4)
            }
        });
    }

    /// A report of a datagram was handled this long after it was sent.
    pub fn on_feedback(&mut self, time: Duration) {
        let smoothed = self.feedback.map_or(time, |before| (before * 7 + time) / 8);
        self.feedback = Some(smoothed);
    }

    /// From sending to the handling of the report, smoothed: the round trip and the waits of both hosts. What is in flight has to last
    /// this long.
    #[must_use]
    pub fn feedback(&self) -> Option<Duration> {
        self.feedback
    }

    /// The smoothed round-trip time.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        self.smoothed.map(|(srtt, _)| srtt)
    }

    /// A packet that was sent so much later and arrived shows that one is lost (RFC 8985 §6.2.1, step 4), if the path's own reordering is
    /// less.
    #[must_use]
    pub fn reordering(&self) -> Duration {
        let srtt = self.srtt().unwrap_or(LATE_UNKNOWN);
        (srtt / 4).max(REORDERING_LEAST)
    }

    /// How long after sending a report is late.
    #[must_use]
    pub fn late(&self) -> Duration {
        self.smoothed.map_or(LATE_UNKNOWN, |(srtt, rttvar)| {
            (srtt + rttvar * 4 + SLACK).min(LATE_MAX)
        })
    }

    /// How long after sending the path is dead.
    #[must_use]
    pub fn dead(&self) -> Duration {
        self.late() + SILENCE
    }
}
