//! Reasons to refuse segments, or parts of them, and their counts.

/// Reason to refuse a segment, a block of its SACK option or a part of its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    /// It acknowledges data that was never sent (RFC 9293 §3.10.7.2 to §3.10.7.4).
    UnsentAck,
    /// It acknowledges less than the window of the peer permits (RFC 5961 §5.2). A packet delayed
    /// by more than a window may be the cause, so it does not count as malformed.
    OldAck,
    /// A SACK block that is reversed, covers data never sent, or overlaps the acknowledged number
    /// or another block of the same option (RFC 2018 §3; RFC 2883 §4 permits a block within the
    /// next).
    SackBlock,
    /// A reset without exactly the expected number (RFC 5961 §3.2, RFC 9293 §3.10.7.2 and
    /// §3.10.7.3): ahead of it, or before the peer's first number.
    BlindReset,
    /// A reset with a number that was expected earlier. A peer without a connection answers a late
    /// segment with the number that the segment acknowledged (RFC 9293 §3.5.2), so it does not
    /// count as malformed, although a blind reset may have such a number.
    OldReset,
    /// A SYN on an open connection, with any number (RFC 5961 §4.2), except the peer's own SYN
    /// again.
    BlindSyn,
    /// Sequence numbers that were never in the window (RFC 9293 §3.4), after a FIN, or before the
    /// peer's first one. Numbers between that one and the window may be from an old segment: with
    /// payload it is a duplicate, and counted there.
    OutsideWindow,
    /// No timestamp though both ends agreed on them (RFC 7323 §3.2).
    MissingTimestamp,
    /// A timestamp older than the last one (PAWS, RFC 7323 §5.3). An old packet may be the cause,
    /// so it does not count as malformed.
    OldTimestamp,
    /// Control bits that are invalid in this state (RFC 9293 §3.10.7).
    Flags,
}

impl Refusal {
    /// All reasons.
    pub const ALL: [Self; 10] = [
        Self::UnsentAck,
        Self::OldAck,
        Self::SackBlock,
        Self::BlindReset,
        Self::OldReset,
        Self::BlindSyn,
        Self::OutsideWindow,
        Self::MissingTimestamp,
        Self::OldTimestamp,
        Self::Flags,
    ];

    /// Its name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnsentAck => "unsent_ack",
            Self::OldAck => "old_ack",
            Self::SackBlock => "sack_block",
            Self::BlindReset => "blind_reset",
            Self::OldReset => "old_reset",
            Self::BlindSyn => "blind_syn",
            Self::OutsideWindow => "outside_window",
            Self::MissingTimestamp => "missing_timestamp",
            Self::OldTimestamp => "old_timestamp",
            Self::Flags => "flags",
        }
    }

    /// Whether only a faulty or hostile peer causes it, whatever the delay of packets.
    #[must_use]
    pub const fn is_malformed(self) -> bool {
        !matches!(self, Self::OldAck | Self::OldReset | Self::OldTimestamp)
    }
}

/// Number of refusals for each reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refusals([u64; Refusal::ALL.len()]);

impl Refusals {
    pub(super) const fn count(&mut self, reason: Refusal) {
        self.0[reason as usize] += 1;
    }
    /// Number of refusals for this reason.
    #[must_use]
    pub const fn of(&self, reason: Refusal) -> u64 {
        self.0[reason as usize]
    }
    /// Refusals that only a faulty or hostile peer causes.
    #[must_use]
    pub fn malformed(&self) -> u64 {
        let reasons = Refusal::ALL.into_iter().filter(|r| r.is_malformed());
        reasons.map(|reason| self.of(reason)).sum()
    }
    /// Every count less `earlier`'s.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] - earlier.0[i]))
    }
    /// Every count with `other`'s added.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }
}
