//! The trigger of a retransmission, from the sender's state when it was sent.

use serde::Serialize;

use crate::segment::{LostBy, Quic};

/// The trigger of a retransmission, in the order of results: by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// Three duplicate acknowledgments, or a later partial acknowledgment (RFC 5681, RFC 6582).
    FastRetransmit,
    /// Retransmission of later data after a timeout.
    GoBackN,
    /// A keepalive with an old octet (RFC 1122 §4.2.3.6).
    Keepalive,
    /// Elapsed time, by RACK or early retransmit (RFC 8985, RFC 5827).
    Rack,
    /// The retransmission timer (RFC 6298).
    Rto,
    /// SACKed data above it during a recovery (RFC 6675).
    Sack,
    /// A tail loss probe (RFC 8985 §7).
    Tlp,
    /// Unknown.
    Unknown,
    /// A probe of a closed window (RFC 1122 §4.2.2.17).
    WindowProbe,
}

impl Trigger {
    /// The trigger by the record of a QUIC sender. QUIC has one timer, and it sends probes.
    pub(crate) const fn recorded(self, quic: Quic) -> Self {
        match (quic.lost, self) {
            (Some(LostBy::Time), _) => Self::Rack,
            (Some(LostBy::Reordering), Self::FastRetransmit | Self::Sack) => self,
            (Some(LostBy::Reordering), _) => Self::FastRetransmit,
            (Some(LostBy::Probe), _) | (None, Self::Rto | Self::GoBackN) => Self::Tlp,
            (None, _) => self,
        }
    }
}

/// The sender's recovery state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Phase {
    #[default]
    Open,
    /// Fast recovery, until this octet is acknowledged.
    Recovery(i64),
    /// After a timeout, until this octet is acknowledged.
    Loss(i64),
}

impl Phase {
    /// The phase after everything below `una` is acknowledged.
    pub(crate) fn at(self, una: i64) -> Self {
        match self {
            Self::Recovery(high) | Self::Loss(high) if una >= high => Self::Open,
            same => same,
        }
    }
}
