//! Causes of retransmissions.

use serde::Serialize;

/// Cause of a retransmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum RetransmitCause {
    /// Duplicate acknowledgments, or an equal amount SACKed above it (RFC 5681 §3.2, RFC 6675 §4).
    DupThresh,
    /// A partial acknowledgment (RFC 6582 §3.2).
    PartialAck,
    /// A segment sent later was delivered, long enough ago (RFC 8985 §6.2).
    Rack,
    /// A tail loss probe (RFC 8985 §7.3).
    Tlp,
    /// The retransmission timer (RFC 6298 (5.4)), for a SYN as well.
    Rto,
    /// The timer rule of a congestion control.
    TimerRule,
    /// No other data could be sent and it is below SACKed data (NextSeg (3), RFC 6675 §4).
    Speculative,
    /// Once per recovery, to trigger acknowledgments (NextSeg (4), RFC 6675 §4).
    Rescue,
    /// The path does not carry the segment; it is sent in pieces (RFC 1191 §6.5, RFC 4821 §7.6).
    PathMtu,
}

impl RetransmitCause {
    /// All causes, in the order of their discriminants.
    pub(crate) const ALL: [Self; 9] = [
        Self::DupThresh,
        Self::PartialAck,
        Self::Rack,
        Self::Tlp,
        Self::Rto,
        Self::TimerRule,
        Self::Speculative,
        Self::Rescue,
        Self::PathMtu,
    ];

    /// Its name in tables and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DupThresh => "dup-thresh",
            Self::PartialAck => "partial-ack",
            Self::Rack => "rack",
            Self::Tlp => "tlp",
            Self::Rto => "rto",
            Self::TimerRule => "timer-rule",
            Self::Speculative => "speculative",
            Self::Rescue => "rescue",
            Self::PathMtu => "path-mtu",
        }
    }
}
