//! Round-trip measurement and timers.

use anabranch_core::units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Round-trip measurement and timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Timers {
    /// RFC 6298; an acknowledgment that advances SND.UNA gives a sample (RFC 7323 §4.1).
    #[serde(rename = "rfc6298")]
    Rfc6298,
    /// As Linux before 3.2: `min_rto` bounds the variance term, so the timeout exceeds the smoothed
    /// round-trip time by at least `min_rto`. The variance term decays once per round trip
    /// (Sarolahti and Kuznetsov, FREENIX 2002).
    #[serde(rename = "linux-2.6")]
    Linux26,
    /// As `linux-2.6`, and as measured of Linux 6.18:
    ///
    /// - Segments SACKed for the first time give round-trip times as well.
    /// - RACK.rtt is that of the segment with the highest number acknowledged, not of the one sent
    ///   latest (RFC 8985 §6.2 step 2).
    /// - After a timeout of a SYN timestamps give the round-trip time of the handshake; RFC 6298
    ///   (5.7) applies only without them.
    /// - Four timeouts of a SYN come at intervals of `initial_rto` before the interval doubles
    ///   (`tcp_syn_linear_timeouts`).
    /// - `retries` is converted to the time that this number of timeouts takes, the first of 200 ms
    ///   (`tcp_retries2`).
    /// - The timers of RACK and TLP (RFC 8985 §6.3, §7.2) end at a tick of `clock_tick`: a timer of
    ///   x at tick ⌈(x + 2 ms) ÷ tick⌉ + 1 after it is set. CUBIC reads its time from that clock.
    /// - The retransmission timer ends at a tick as well; one of at least 63 ticks at a multiple of 8
    ///   ticks, of 504 at one of 64, of 4,032 at one of 512 (the timer wheel). It backs off in whole
    ///   ticks: 430 ms are 108 ticks of 4 ms, and 216 the next time.
    #[serde(rename = "linux")]
    Linux,
    /// As 4.4BSD: round-trip times and retransmission timeouts count ticks of `clock_tick` from the
    /// start of the run. A timeout of n ticks ends at the n-th tick after it is set; a round-trip
    /// time is the number of ticks in it, and one more for the first sample (Wright and Stevens,
    /// TCP/IP Illustrated, Volume 2, ch. 25).
    #[serde(rename = "bsd")]
    Bsd,
}

impl Timers {
    /// Whether `min_rto` bounds the variance term, so that the timeout exceeds the smoothed
    /// round-trip time by at least `min_rto`, and the term decays once per round trip.
    #[must_use]
    #[inline]
    pub const fn keep_variance(self) -> bool {
        matches!(self, Self::Linux26 | Self::Linux)
    }

    /// Whether round-trip times and retransmission timeouts count ticks.
    #[must_use]
    #[inline]
    pub const fn count_ticks(self) -> bool {
        matches!(self, Self::Bsd)
    }

    /// Whether the timers of RACK and TLP and the retransmission timer end at a tick.
    #[must_use]
    #[inline]
    pub const fn end_with_ticks(self) -> bool {
        matches!(self, Self::Linux)
    }

    /// Whether segments SACKed for the first time give round-trip times.
    #[must_use]
    #[inline]
    pub const fn sample_sacked(self) -> bool {
        matches!(self, Self::Linux)
    }

    /// Whether RACK processes the segments of an acknowledgment in the order of their numbers.
    #[must_use]
    #[inline]
    pub const fn rack_by_number(self) -> bool {
        matches!(self, Self::Linux)
    }

    /// Whether timestamps give the round-trip time of the handshake after a timeout of a SYN.
    #[must_use]
    #[inline]
    pub const fn sample_after_syn_timeout(self) -> bool {
        matches!(self, Self::Linux)
    }

    /// Timeouts of a SYN before the interval doubles.
    #[must_use]
    #[inline]
    pub const fn syn_linear_timeouts(self) -> u32 {
        if matches!(self, Self::Linux) { 4 } else { 0 }
    }

    /// First of the timeouts whose total time `retries` sets; `None` if timeouts are counted.
    #[must_use]
    #[inline]
    pub const fn retries_base_rto(self) -> Option<Duration> {
        match self {
            Self::Linux => Some(Duration::from_millis(200)),
            _ => None,
        }
    }
}
