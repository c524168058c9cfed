//! How much of a handshake a capture has.

/// How much of the handshake the capture has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// SYN, SYN-ACK and what follows.
    Seen,
    /// A part of it.
    Partial,
    /// Nothing: the capture begins in mid-flow.
    Missed,
    /// A RST answered the SYN.
    Refused,
    /// Nothing answered the SYN: not even an acknowledgment by its sender shows an answer.
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
