//! How round-trip times are measured and timers set.

use anabranch_core::units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How round-trip times are measured and timers set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Timers {
    /// As RFC 6298 has them; what advances SND.UNA is a sample (RFC 7323 §4.1).
    #[serde(rename = "rfc6298")]
    Rfc6298,
    /// As Linux before 3.2: `min_rto` bounds the variance term of the timeout, which exceeds the smoothed round-trip time by
    /// that much at least.
    #[serde(rename = "linux-2.6")]
    Linux26,
    /// As `linux-2.6`; besides, as measured of Linux 6.18:
    ///
    /// - Segments that SACK reports for the first time give round-trip times as well.
    /// - After a timeout of a SYN timestamps give the round-trip time of the handshake; RFC 6298 (5.7) holds only without.
    /// - Four timeouts of a SYN come at intervals of `initial_rto` before it doubles (`tcp_syn_linear_timeouts`).
    /// - `retries` stands for the time that so many timeouts take, the first of 200 ms (`tcp_retries2`).
    /// - The timers of RACK and TLP (RFC 8985 §6.3, §7.2) end with a tick of `clock_tick`: one for x with the
    ///   ⌈(x + 2 ms) ÷ tick⌉ + 1st from when it is set. CUBIC reads its time off that clock.
    #[serde(rename = "linux")]
    Linux,
    /// As 4.4BSD: round-trip times and retransmission timeouts count ticks of `clock_tick` from the start of the run. A timeout
    /// of n ticks ends with the n-th tick from when it was set; a round-trip time is the number of ticks it saw, one more at first
    /// (Wright and Stevens, TCP/IP Illustrated, Volume 2, ch. 25).
    #[serde(rename = "bsd")]
    Bsd,
}

impl Timers {
    /// `min_rto` bounds the variance term of the timeout, which then exceeds the smoothed round-trip time by that much.
    #[must_use]
    #[inline]
    pub const fn bound_variance(self) -> bool {
        matches!(self, Self::Linux26 | Self::Linux)
    }

    /// Round-trip times and retransmission timeouts count ticks.
    #[must_use]
    #[inline]
    pub const fn count_ticks(self) -> bool {
        matches!(self, Self::Bsd)
    }

    /// The timers of RACK and TLP end with a tick.
    #[must_use]
    #[inline]
    pub const fn end_with_ticks(self) -> bool {
        matches!(self, Self::Linux)
    }

    /// Segments that SACK reports for the first time give round-trip times.
    #[must_use]
    #[inline]
    pub const fn sample_sacked(self) -> bool {
        matches!(self, Self::Linux)
    }

    /// After a timeout of a SYN timestamps give the round-trip time of the handshake.
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

    /// The first of the timeouts whose time `retries` stands for; `None`: timeouts are counted.
    #[must_use]
    #[inline]
    pub const fn retries_base_rto(self) -> Option<Duration> {
        match self {
            Self::Linux => Some(Duration::from_millis(200)),
            _ => None,
        }
    }
}
