//! Which acknowledgments and windows a receiver sends beyond what delayed acknowledgments decide.

use anabranch_core::units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a receiver acknowledges at once, which window it offers, and which segments it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Receiver {
    /// Every segment out of order is acknowledged at once (RFC 5681 §4.2); PAWS takes no older timestamp (RFC 7323
    /// §5.3 R1); every unacceptable segment is answered (RFC 9293 §3.10.7.4); only unread data takes from the window
    /// (RFC 9293 §3.8.6).
    Rfc,
    /// As measured of Linux 6.18.
    ///
    /// - SACK compression (`tcp_comp_sack_nr`, `tcp_comp_sack_delay_ns`, `tcp_comp_sack_slack_ns`).
    /// - A window update leaves alone only where the window has become twice what the sender knows.
    /// - An acknowledgment that could not offer as much as the last one leaves once the data has been read.
    /// - PAWS accepts a timestamp that is one millisecond older, and one that is older by up to 1.2 RTO in an acknowledgment
    ///   without data that repeats the number of the last one and offers no more.
    /// - Answers to unacceptable segments without data are limited as challenge ACKs are (`tcp_invalid_ratelimit`).
    /// - A tuned window begins with 80 KiB, ends where the buffer does, and counts what waits beyond a gap.
    Linux,
    /// As measured of Linux 6.12: as `linux`, but a tuned window grows by 16 segments more than twice what arrives in a round trip.
    #[serde(rename = "linux-6.12")]
    Linux6_12,
}

/// How many reports of segments out of order one acknowledgment carries, and how long they wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SackCompression {
    /// Reports in one acknowledgment at most.
    pub reports: u32,
    /// The longest wait; a twentieth of the round-trip time at most.
    pub delay: Duration,
    /// How late the timer is where nothing else wakes the host.
    pub slack: Duration,
}

/// The memory of a receive buffer at first (Linux: `tcp_rmem`).
const FIRST_MEMORY: u64 = 128 << 10;
/// The window offered at first where it is tuned: half of that memory.
const FIRST_WINDOW: u64 = FIRST_MEMORY / 2;

/// Payload in the memory of a segment from a TUN device, in parts of 256. Buffers are powers of two; a segment has headers and
/// bookkeeping of 386 octets in its buffer, and 256 beside it. Half is assumed until a segment of more than 536 octets has come.
/// Measured: windows of 80,480 and 56,832 octets for segments of 1,448 and 1,000; 65,536 for 536.
const fn payload_share(segment: u64) -> u64 {
    if segment <= 536 {
        return 128;
    }
    // Longer ones lie in pages, which waste as little.
    let segment = if segment > FULL { FULL } else { segment };
    let buffer = (segment + 386).next_power_of_two();
    segment * 256 / (buffer + 256)
}

/// The segment of an Ethernet without options but timestamps.
const FULL: u64 = 1_448;

impl Receiver {
    const fn is_linux(self) -> bool {
        matches!(self, Self::Linux | Self::Linux6_12)
    }

    /// From the fourth segment out of order on since RCV.NXT moved (measured); needs SACK.
    #[must_use]
    #[inline]
    pub const fn sack_compression(self) -> Option<SackCompression> {
        match self {
            Self::Rfc => None,
            Self::Linux | Self::Linux6_12 => Some(SackCompression {
                reports: 44,
                delay: Duration::from_millis(1),
                slack: Duration::from_micros(100),
            }),
        }
    }

    /// A window update leaves alone only where the window has doubled, not after two segments or half of the buffer
    /// (RFC 9293 §3.8.6.2.2).
    #[must_use]
    #[inline]
    pub const fn doubles_window_updates(self) -> bool {
        self.is_linux()
    }

    /// An acknowledgment that could not offer as much as the last one did waits until the data is read.
    #[must_use]
    #[inline]
    pub const fn acks_wait_for_read(self) -> bool {
        self.is_linux()
    }

    /// Milliseconds by which a timestamp may be older than the last one.
    #[must_use]
    #[inline]
    pub const fn paws_tolerance(self) -> u32 {
        if self.is_linux() { 1 } else { 0 }
    }

    /// PAWS passes an overtaken acknowledgment without data.
    #[must_use]
    #[inline]
    pub const fn passes_overtaken_acks(self) -> bool {
        self.is_linux()
    }

    /// Answers to unacceptable segments without data are limited as challenge ACKs are.
    #[must_use]
    #[inline]
    pub const fn limits_answers(self) -> bool {
        self.is_linux()
    }

    /// The tuned window ends where the buffer does, which holds unread data and data beyond a gap; what is unread at the
    /// end of a round trip does not count in the measurement, and segments beyond a gap give round-trip times.
    #[must_use]
    #[inline]
    pub const fn accounts_for_buffer(self) -> bool {
        self.is_linux()
    }

    /// A SYN offers whole segments: 65,160 octets are 45 of 1,448 (measured of Linux 6.1 to 7.0).
    #[must_use]
    #[inline]
    pub const fn offers_whole_segments(self) -> bool {
        self.is_linux()
    }

    /// The window scale can tell the memory of the largest buffer, which is twice the window (`tcp_rmem`; measured).
    #[must_use]
    #[inline]
    pub const fn scales_memory(self) -> bool {
        self.is_linux()
    }

    /// A tuned window begins with a segment less than the buffer holds (measured: 64,088 octets for segments of 1,448).
    #[must_use]
    #[inline]
    pub const fn reserves_a_segment(self) -> bool {
        self.is_linux()
    }

    /// Limit of a tuned window before the first measurement, for segments of `segment` octets: as many as 128 KiB of memory
    /// hold. The window grows by twice the octets that arrive.
    #[must_use]
    #[inline]
    pub const fn tuning_start(self, segment: u64) -> u64 {
        match self {
            Self::Rfc => FIRST_WINDOW,
            Self::Linux | Self::Linux6_12 => (FIRST_MEMORY >> 8) * payload_share(segment),
        }
    }

    /// The tuned window has room for the data beyond a gap in addition (measured of 6.18, and not of 6.12).
    #[must_use]
    #[inline]
    pub const fn adds_data_beyond_gap(self) -> bool {
        !matches!(self, Self::Linux6_12)
    }

    /// Segments that a tuned window has beyond twice what arrives in a round trip.
    #[must_use]
    #[inline]
    pub const fn spare_segments(self) -> u64 {
        if matches!(self, Self::Linux6_12) {
            16
        } else {
            0
        }
    }

    /// The window offered at first where it is tuned.
    #[must_use]
    #[inline]
    pub const fn first_window() -> u64 {
        FIRST_WINDOW
    }
}
