//! The captured part of a handshake.

use serde::Serialize;

/// The captured part of the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Handshake {
    /// SYN, SYN-ACK and the packet that completes it.
    Seen,
    /// A part of it.
    Partial,
    /// None: the capture begins in mid-flow.
    Missed,
    /// A RST answered the SYN.
    Refused,
    /// No answer to the SYN: not even an acknowledgment by its sender shows one.
    Unanswered,
}
