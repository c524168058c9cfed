//! Events of a connection, as passed to its congestion control.

use anabranch_core::units::{Bytes, Duration, Instant};

/// A segment was sent.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// When.
    pub now: Instant,
    /// Payload bytes.
    pub bytes: Bytes,
    /// In flight, this segment included.
    pub in_flight: Bytes,
    /// Retransmission of a segment.
    pub retransmission: bool,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
}

/// Summary of an acknowledgment.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    /// When it arrived.
    pub now: Instant,
    /// Newly acknowledged cumulatively.
    pub acked: Bytes,
    /// Newly acknowledged selectively (RFC 2018).
    pub sacked: Bytes,
    /// Newly delivered: acknowledged cumulatively or selectively, each byte counted once.
    pub delivered: Bytes,
    /// Newly marked lost.
    pub lost: Bytes,
    /// Newly reported as marked Congestion Experienced.
    pub ce_marked: Bytes,
    /// In flight before this acknowledgment.
    pub prior_in_flight: Bytes,
    /// In flight after it.
    pub in_flight: Bytes,
    /// Round-trip time sample of this acknowledgment.
    pub rtt: Option<Duration>,
    /// Round-trip time sample by timestamp, in whole milliseconds, if some of the delivered data
    /// was retransmitted.
    pub rtt_by_timestamp: Option<Duration>,
    /// Smoothed round-trip time (RFC 6298); zero before the first sample.
    pub srtt: Duration,
    /// Smallest round-trip time so far; zero before the first sample.
    pub min_rtt: Duration,
    /// Delivery-rate sample, if requested.
    pub rate: Option<RateSample>,
    /// Round trips completed: counts up when data sent after the last count is acknowledged.
    pub round: u64,
    /// The window limited the sender in the last round trip (RFC 7661 §4.2).
    pub cwnd_limited: bool,
    /// The application limited the sender.
    pub app_limited: bool,
    /// A recovery is in progress; loss-based controls do not grow during it.
    pub in_recovery: bool,
}

impl Ack {
    /// The rate sample, if it is reliable.
    #[must_use]
    pub fn reliable_rate(&self) -> Option<&RateSample> {
        self.rate.as_ref().filter(|sample| sample.is_reliable)
    }
}

/// A delivery-rate sample (draft-ietf-ccwg-bbr §4.1, delivery rate estimation).
#[derive(Debug, Clone, Copy)]
pub struct RateSample {
    /// Delivered between the transmission of the segment and its acknowledgment.
    pub delivered: Bytes,
    /// Duration of this interval.
    pub interval: Duration,
    /// The interval is at least the smallest round-trip time. A shorter one is no reliable rate:
    /// the acknowledgment was that of an earlier transmission of the segment.
    pub is_reliable: bool,
    /// All delivered on this connection when the segment was sent.
    pub prior_delivered: Bytes,
    /// The sender was application-limited when the segment was sent, so the rate is a lower bound.
    pub app_limited: bool,
    /// In flight when the segment was sent, itself included.
    pub tx_in_flight: Bytes,
    /// Marked lost between its transmission and its acknowledgment; zero unless
    /// [`Wants::losses`](super::Wants::losses).
    pub lost: Bytes,
}

/// A reduction is due.
#[derive(Debug, Clone, Copy)]
pub struct Congestion {
    /// Time of detection.
    pub now: Instant,
    /// The congestion signal.
    pub signal: Signal,
    /// In flight just before: FlightSize of RFC 5681 §3.1.
    pub in_flight: Bytes,
}

/// Type of a congestion signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// A lost packet.
    Loss,
    /// A mark (RFC 3168).
    EcnCe,
}

/// The retransmission timer expired.
#[derive(Debug, Clone, Copy)]
pub struct Rto {
    /// When.
    pub now: Instant,
    /// In flight just before.
    pub in_flight: Bytes,
    /// 1 for the first reduction by an expiry, 2 for the next without progress in between, and so
    /// on. Starts at 2 if the stack counts a fast recovery in progress as the first
    /// ([`timeout_reduces_again`](anabranch_tcp::Settings::timeout_reduces_again)).
    pub consecutive: u32,
}

/// A timer rule found losses during a recovery.
#[derive(Debug, Clone, Copy)]
pub struct TimerLoss {
    /// When.
    pub now: Instant,
    /// In flight just before.
    pub in_flight: Bytes,
}

/// A segment was marked lost (draft-ietf-ccwg-bbr §5.2.4). Sent only to controls that request it
/// ([`Wants::losses`](super::Wants::losses)).
#[derive(Debug, Clone, Copy)]
pub struct Lost {
    /// Time of detection.
    pub now: Instant,
    /// Segment number, in order of first transmission: adjacent segments have consecutive numbers.
    pub number: u64,
    /// Sequence space of the segment.
    pub bytes: Bytes,
    /// In flight at its last transmission, itself included.
    pub tx_in_flight: Bytes,
    /// Marked lost since its last transmission, itself included.
    pub lost: Bytes,
    /// The sender was application-limited at its last transmission.
    pub app_limited: bool,
    /// All delivered on this connection so far.
    pub delivered: Bytes,
    /// The receiver sends SACK (RFC 2018), so that more than one loss per round trip can be found.
    pub selective: bool,
}

/// A recovery ended.
#[derive(Debug, Clone, Copy)]
pub struct Recovered {
    /// When.
    pub now: Instant,
    /// In flight.
    pub in_flight: Bytes,
    /// Upper bound of the window from here on, with ssthresh unchanged (RFC 6582 §3.2 step 3, the
    /// first option of a full acknowledgment); `None` if the stack sets no bound.
    pub cwnd_limit: Option<Bytes>,
}

/// A reduction was spurious.
#[derive(Debug, Clone, Copy)]
pub struct Spurious {
    /// Time of detection.
    pub now: Instant,
    /// The reduction was by a timeout, not by a fast recovery.
    pub timeout: bool,
}

/// Sending resumes after a pause.
#[derive(Debug, Clone, Copy)]
pub struct Idle {
    /// Now.
    pub now: Instant,
    /// How long nothing was in flight.
    pub idle: Duration,
    /// The retransmission timeout, the usual measure of a long pause (RFC 5681 §4.1).
    pub rto: Duration,
    /// The stack's rule for a long pause.
    pub rule: IdleRestart,
}

impl Idle {
    /// The window with which sending resumes, for controls that follow RFC 5681 after a pause. Its
    /// unit is that of `cwnd` and of the initial window `initial`.
    #[must_use]
    pub fn restart_window(&self, cwnd: f64, initial: f64) -> f64 {
        let restart = initial.min(cwnd);
        if self.idle <= self.rto {
            return cwnd;
        }
        match self.rule {
            IdleRestart::Off | IdleRestart::Rfc7661 => cwnd,
            IdleRestart::Rfc5681 => restart,
            IdleRestart::Rfc2861 => {
                let (mut window, mut left) = (cwnd, self.idle);
                while left > self.rto && window > restart {
                    window /= 2.0;
                    left = left.saturating_sub(self.rto);
                }
                window.max(restart)
            }
        }
    }

    /// The slow start threshold with which sending resumes, in segments; `cwnd` is the window
    /// before the pause. RFC 2861 §3.2 keeps three quarters of that window. Linux adds a half and a
    /// quarter, each in whole segments, as measured.
    #[must_use]
    pub fn restart_ssthresh(&self, cwnd: f64, ssthresh: f64) -> f64 {
        if self.rule == IdleRestart::Rfc2861 && self.idle > self.rto {
            ssthresh.max((cwnd / 2.0).floor() + (cwnd / 4.0).floor())
        } else {
            ssthresh
        }
    }
}

/// Treatment of a window that was not in use (RFC 7661 §4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unvalidated {
    /// After a non-validated period (§4.4.3): ssthresh becomes at least three quarters of the
    /// window. The window becomes half of it, or the initial window if that is more.
    PeriodOver,
    /// After the recovery from a loss (§4.4.1).
    Recovered {
        /// Upper bound of the window and of ssthresh from here on, but at least two segments (RFC
        /// 5681 §3.1 equation 4).
        window: Bytes,
    },
}

/// Effect on the window of a pause longer than the retransmission timeout.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum IdleRestart {
    /// No effect.
    Off,
    /// Reduces the window to the initial window, if that is less (RFC 5681 §4.1).
    #[default]
    Rfc5681,
    /// Halves the window for every timeout that has passed, down to the initial window. ssthresh
    /// becomes at least three quarters of the window before the pause (RFC 2861 §3.2; Linux:
    /// `tcp_slow_start_after_idle`).
    Rfc2861,
    /// Keeps the window for up to five minutes (RFC 7661). pipeACK decides whether it is validated.
    /// A non-validated window grows only if it limits the sender, and a loss reduces the window in
    /// use. Needs `cwnd_validation`. For controls that reduce from FlightSize (`reduce_from`).
    Rfc7661,
}
