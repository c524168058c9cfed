//! The captured part of a handshake.

/// The captured part of the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

impl Handshake {
    /// Its name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seen => "seen",
            Self::Partial => "partial",
            Self::Missed => "missed",
            Self::Refused => "refused",
            Self::Unanswered => "unanswered",
        }
    }
}
