//! What happens to a connection, as its congestion control is told.

use anabranch_core::units::{Bytes, Duration, Instant};

/// A segment left.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// When.
    pub now: Instant,
    /// Payload bytes.
    pub bytes: Bytes,
    /// In flight, this segment included.
    pub in_flight: Bytes,
    /// Sent before.
    pub retransmission: bool,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
}

/// What an acknowledgment told.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    /// When it arrived.
    pub now: Instant,
    /// Newly acknowledged cumulatively.
    pub acked: Bytes,
    /// Newly acknowledged selectively (RFC 2018).
    pub sacked: Bytes,
    /// Newly delivered: acknowledged in one way or the other, each byte once.
    pub delivered: Bytes,
    /// Newly found lost.
    pub lost: Bytes,
    /// Newly reported as marked Congestion Experienced.
    pub ce_marked: Bytes,
    /// In flight before this acknowledgment.
    pub prior_in_flight: Bytes,
    /// In flight after it.
    pub in_flight: Bytes,
    /// The round-trip time that it measured.
    pub rtt: Option<Duration>,
    /// The round-trip time by timestamp, in whole milliseconds, if some of what it delivered was retransmitted.
    pub rtt_by_timestamp: Option<Duration>,
    /// Smoothed round-trip time (RFC 6298); zero before the first sample.
    pub srtt: Duration,
    /// Smallest round-trip time seen; zero before the first sample.
    pub min_rtt: Duration,
    /// Delivery-rate sample, if wanted.
    pub rate: Option<RateSample>,
    /// Round trips completed: counts up when data sent after the last count is acknowledged.
    pub round: u64,
    /// The window kept the sender from sending more in the last round trip (RFC 7661 §4.2).
    pub cwnd_limited: bool,
    /// The application kept the sender from sending more.
    pub app_limited: bool,
    /// A recovery is under way; loss-based controls do not grow then.
    pub in_recovery: bool,
}

/// How fast data was delivered lately (draft-ietf-ccwg-bbr §4.1, delivery rate estimation).
#[derive(Debug, Clone, Copy)]
pub struct RateSample {
    /// Delivered between the segment's sending and its acknowledgment.
    pub delivered: Bytes,
    /// In this time.
    pub interval: Duration,
    /// All delivered on this connection when the segment was sent.
    pub prior_delivered: Bytes,
    /// The sender was application-limited when the segment was sent: a lower bound only.
    pub app_limited: bool,
    /// In flight when the segment was sent, itself included.
    pub tx_in_flight: Bytes,
    /// Found lost between its sending and its acknowledgment; zero unless
    /// [`Wants::losses`](super::Wants::losses).
    pub lost: Bytes,
}

/// A reduction is due.
#[derive(Debug, Clone, Copy)]
pub struct Congestion {
    /// When it was found.
    pub now: Instant,
    /// By what.
    pub signal: Signal,
    /// In flight just before: FlightSize of RFC 5681 §3.1.
    pub in_flight: Bytes,
}

/// How congestion was signalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// By a lost packet.
    Loss,
    /// By a mark (RFC 3168).
    EcnCe,
}

/// The retransmission timer expired.
#[derive(Debug, Clone, Copy)]
pub struct Rto {
    /// When.
    pub now: Instant,
    /// In flight just before.
    pub in_flight: Bytes,
    /// 1 for the first reduction by an expiry, 2 for the next without progress between them, and so
    /// on. Where the stack counts a fast recovery under way as the first, it begins at 2
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

/// A segment was marked lost (draft-ietf-ccwg-bbr §5.2.4). Only who asks is told
/// ([`Wants::losses`](super::Wants::losses)).
#[derive(Debug, Clone, Copy)]
pub struct Lost {
    /// When this was found.
    pub now: Instant,
    /// Counts segments in the order in which they were sent first: what lies next to each other
    /// has neighbouring numbers.
    pub number: u64,
    /// Sequence numbers that it takes.
    pub bytes: Bytes,
    /// In flight when it was sent last, itself included.
    pub tx_in_flight: Bytes,
    /// Found lost since it was sent last, itself included.
    pub lost: Bytes,
    /// The sender was application-limited when it was sent last.
    pub app_limited: bool,
    /// All delivered on this connection so far.
    pub delivered: Bytes,
    /// The receiver reports selectively what has arrived (RFC 2018), so that more than one loss a
    /// round trip can be found.
    pub selective: bool,
}

/// A recovery ended.
#[derive(Debug, Clone, Copy)]
pub struct Recovered {
    /// When.
    pub now: Instant,
    /// In flight.
    pub in_flight: Bytes,
    /// The window is to be no larger from here on, ssthresh stays as it is (RFC 6582 §3.2 step 3,
    /// the first option of a full acknowledgment); `None` where the stack asks for no such thing.
    pub cwnd_limit: Option<Bytes>,
}

/// A reduction was for nothing.
#[derive(Debug, Clone, Copy)]
pub struct Spurious {
    /// When this was found out.
    pub now: Instant,
    /// It was a timeout, not a fast recovery.
    pub timeout: bool,
}

/// Sending starts again after a pause.
#[derive(Debug, Clone, Copy)]
pub struct Idle {
    /// Now.
    pub now: Instant,
    /// How long nothing was in flight.
    pub idle: Duration,
    /// The retransmission timeout, the usual measure of a long pause (RFC 5681 §4.1).
    pub rto: Duration,
    /// What the stack makes of a long pause.
    pub rule: IdleRestart,
}

impl Idle {
    /// The window with which sending starts again, for controls that take a pause as RFC 5681 has
    /// it; in the same unit as `cwnd` and the initial window `initial`.
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

    /// The slow start threshold with which sending starts again, in segments, as `cwnd`, the window before the
    /// pause. By RFC 2861 (§3.2) what the path took then is remembered, three quarters of it; Linux takes a half and a
    /// quarter in whole segments, as measured.
    #[must_use]
    pub fn restart_ssthresh(&self, cwnd: f64, ssthresh: f64) -> f64 {
        if self.rule == IdleRestart::Rfc2861 && self.idle > self.rto {
            ssthresh.max((cwnd / 2.0).floor() + (cwnd / 4.0).floor())
        } else {
            ssthresh
        }
    }
}

/// What becomes of a window that was not in use (RFC 7661 §4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unvalidated {
    /// For a non-validated period (§4.4.3): ssthresh is three quarters of the window at least, the
    /// window half of it, or the initial one if that is more.
    PeriodOver,
    /// When a loss was found whose recovery is over now (§4.4.1).
    Recovered {
        /// The window and ssthresh are no larger from here on; two segments are left in any case (RFC
        /// 5681 §3.1 equation 4).
        window: Bytes,
    },
}

/// What a pause longer than the retransmission timeout does to the window.
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
    /// Nothing.
    Off,
    /// The initial window is left, if that is less (RFC 5681 §4.1).
    #[default]
    Rfc5681,
    /// It is halved for every timeout that has passed, down to the initial window, and ssthresh becomes three
    /// quarters of what it was before that at least (RFC 2861 §3.2; Linux: `tcp_slow_start_after_idle`).
    Rfc2861,
    /// It is kept, as long as five minutes, while pipeACK tells whether it is still valid; one that is
    /// not grows only where it is what limits the sender, and a loss reduces what was in use (RFC 7661).
    /// Needs `cwnd_validation`. For controls that reduce from what is in flight (`reduce_from`).
    Rfc7661,
}
