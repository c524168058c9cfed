//! Acknowledgments and windows of a receiver, apart from delayed acknowledgments.

use anabranch_core::units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Acknowledgments sent at once, windows offered, and segments answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Receiver {
    /// Every out-of-order segment is acknowledged at once (RFC 5681 §4.2); PAWS accepts no older
    /// timestamp (RFC 7323 §5.3 R1); every unacceptable segment is answered (RFC 9293 §3.10.7.4);
    /// only unread data reduces the window (RFC 9293 §3.8.6).
    Rfc,
    /// As measured of Linux 6.18.
    ///
    /// - SACK compression (`tcp_comp_sack_nr`, `tcp_comp_sack_delay_ns`, `tcp_comp_sack_slack_ns`).
    /// - A separate window update is sent only if the window has doubled since the last one
    ///   advertised.
    /// - An acknowledgment that would offer a smaller window than the last one is sent once the
    ///   data has been read.
    /// - PAWS accepts a timestamp that is 1 ms older. In an acknowledgment without data that
    ///   repeats the last number and offers no larger window, it accepts one that is up to 1.2 RTO
    ///   older.
    /// - Answers to unacceptable segments without data are limited as challenge ACKs are
    ///   (`tcp_invalid_ratelimit`).
    /// - A segment without a timestamp is accepted although both ends use timestamps; a SYN-ACK that
    ///   echoes none of those sent is answered with a reset.
    /// - A tuned window begins at 80 KiB, never exceeds the buffer, and is reduced by data beyond a
    ///   gap.
    Linux,
    /// As measured of Linux 6.12: as `linux`, but a tuned window is 16 segments more than twice the
    /// data that arrives in a round trip.
    #[serde(rename = "linux-6.12")]
    Linux6_12,
}

/// SACK compression: the number of reports in one acknowledgment, and their delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SackCompression {
    /// Reports in one acknowledgment at most.
    pub reports: u32,
    /// Longest delay; at most a twentieth of the round-trip time.
    pub delay: Duration,
    /// Lateness of the timer if nothing else wakes the host.
    pub slack: Duration,
}

/// Initial memory of a receive buffer (Linux: `tcp_rmem`).
const FIRST_MEMORY: u64 = 128 << 10;
/// First window of a tuned receiver: half of that memory.
const FIRST_WINDOW: u64 = FIRST_MEMORY / 2;

/// Payload in the memory of a segment from a TUN device, in parts of 256. Buffers are powers of
/// two. A segment has headers and bookkeeping of 386 octets in its buffer, and 256 outside it. Half
/// is assumed until a segment of more than 536 octets has arrived. Measured: windows of 80,480 and
/// 56,832 octets for segments of 1,448 and 1,000; 65,536 for 536.
const fn payload_share(segment: u64) -> u64 {
    if segment <= 536 {
        return 128;
    }
    // Longer ones are in pages, which waste equally little.
    let segment = if segment > FULL { FULL } else { segment };
    let buffer = (segment + 386).next_power_of_two();
    segment * 256 / (buffer + 256)
}

/// Payload of a full Ethernet segment with no options but timestamps.
const FULL: u64 = 1_448;

impl Receiver {
    const fn is_linux(self) -> bool {
        matches!(self, Self::Linux | Self::Linux6_12)
    }

    /// Whether a SYN-ACK that echoes no timestamp of our SYN is refused (Linux).
    #[must_use]
    pub const fn checks_echo_of_syn(self) -> bool {
        self.is_linux()
    }

    /// Whether a segment without a timestamp is accepted although both ends use them (RFC 7323 §3.2
    /// asks to drop it). Linux checks only timestamps that a segment has.
    #[must_use]
    pub const fn accepts_missing_timestamp(self) -> bool {
        self.is_linux()
    }

    /// Whether an open connection answers an acknowledgment of data that was never sent (RFC 9293
    /// §3.10.7.4). Measured: Linux 6.18 does, 6.12 drops the segment.
    #[must_use]
    #[inline]
    pub const fn answers_unsent_ack(self) -> bool {
        !matches!(self, Self::Linux6_12)
    }

    /// SACK compression, from the fourth out-of-order segment since RCV.NXT moved (measured); needs
    /// SACK.
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

    /// Whether a separate window update is sent only if the window has doubled, not after two
    /// segments or half of the buffer (RFC 9293 §3.8.6.2.2).
    #[must_use]
    #[inline]
    pub const fn doubles_window_updates(self) -> bool {
        self.is_linux()
    }

    /// Whether an acknowledgment that would offer less than the last one waits until the data is
    /// read.
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

    /// Whether PAWS passes an overtaken acknowledgment without data.
    #[must_use]
    #[inline]
    pub const fn passes_overtaken_acks(self) -> bool {
        self.is_linux()
    }

    /// Whether answers to unacceptable segments without data are limited as challenge ACKs are.
    #[must_use]
    #[inline]
    pub const fn limits_answers(self) -> bool {
        self.is_linux()
    }

    /// Whether the tuned window ends at the end of the buffer, which holds unread data and data
    /// beyond a gap. If so, data unread at the end of a round trip does not count in the
    /// measurement, and segments beyond a gap give round-trip times.
    #[must_use]
    #[inline]
    pub const fn accounts_for_buffer(self) -> bool {
        self.is_linux()
    }

    /// Whether a SYN offers whole segments: 65,160 octets are 45 of 1,448 (measured of Linux 6.1 to
    /// 7.0).
    #[must_use]
    #[inline]
    pub const fn offers_whole_segments(self) -> bool {
        self.is_linux()
    }

    /// Whether the window scale can express the memory of the largest buffer, which is twice the
    /// window (`tcp_rmem`; measured).
    #[must_use]
    #[inline]
    pub const fn scales_memory(self) -> bool {
        self.is_linux()
    }

    /// Whether a tuned window begins with a segment less than the buffer holds (measured: 64,088
    /// octets for segments of 1,448).
    #[must_use]
    #[inline]
    pub const fn reserves_a_segment(self) -> bool {
        self.is_linux()
    }

    /// Limit of a tuned window before the first measurement, for segments of `segment` octets: the
    /// payload that 128 KiB of memory hold. The window grows by twice the octets that arrive.
    #[must_use]
    #[inline]
    pub const fn tuning_start(self, segment: u64) -> u64 {
        match self {
            Self::Rfc => FIRST_WINDOW,
            Self::Linux | Self::Linux6_12 => (FIRST_MEMORY >> 8) * payload_share(segment),
        }
    }

    /// Whether the tuned window has additional room for the data beyond a gap (measured of 6.18,
    /// and not of 6.12).
    #[must_use]
    #[inline]
    pub const fn adds_data_beyond_gap(self) -> bool {
        !matches!(self, Self::Linux6_12)
    }

    /// Segments that a tuned window has in addition to twice the data that arrives in a round trip.
    #[must_use]
    #[inline]
    pub const fn spare_segments(self) -> u64 {
        if matches!(self, Self::Linux6_12) {
            16
        } else {
            0
        }
    }

    /// First window of a tuned receiver.
    #[must_use]
    #[inline]
    pub const fn first_window() -> u64 {
        FIRST_WINDOW
    }
}
