//! Phases of loss recovery, and the sequence numbers that bound them (RFC 5681 §3.2, RFC 6582, RFC
//! 6675).

use anabranch_wire::seq::Seq;

/// Phase of loss recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// No loss is being repaired.
    Open,
    /// No loss is being repaired, but a reduction for a mark is in progress
    /// ([`WindowRules::pace_at_marks`](crate::policy::WindowRules::pace_at_marks)).
    Reduction,
    /// Fast recovery (RFC 5681 §3.2).
    Recovery,
    /// After a timeout, or after a timer rule ended a recovery: slow start, with the lost segments
    /// first.
    Loss,
}

impl Phase {
    /// Whether no loss is being repaired.
    #[must_use]
    #[inline]
    pub const fn repairs_nothing(self) -> bool {
        matches!(self, Self::Open | Self::Reduction)
    }

    /// Whether the window is shrinking to ssthresh and does not grow.
    #[must_use]
    #[inline]
    pub const fn reduces(self) -> bool {
        matches!(self, Self::Reduction | Self::Recovery)
    }
}

/// The state of loss recovery.
#[derive(Debug, Clone, Copy)]
pub struct RecoveryState {
    /// The current phase.
    pub phase: Phase,
    /// Partial acknowledgments in this recovery.
    pub partial_acks: u32,
    /// Duplicate acknowledgments since the last acknowledgment of new data.
    pub dup_acks: u32,
    /// Octets sent by limited transmit since then; not part of FlightSize (RFC 5681 §3.2 step 2).
    pub limited: u32,
    /// `recover` (RFC 6582) or RecoveryPoint (RFC 6675): one past the highest number sent when the
    /// last recovery began.
    pub recover: Seq,
    /// A timer rule has ended the last recovery and restarted in slow start.
    pub restarted: bool,
    /// One past the highest number sent when cwnd was last reduced for a mark (RFC 3168 §6.1.2).
    pub reduced: Seq,
    /// Octets that RFC 6582 adds to cwnd during fast recovery; negative after a large partial
    /// acknowledgment.
    pub inflation: i64,
    /// RescueRxt of RFC 6675: a rescue retransmission may follow once this is acknowledged.
    pub rescue: Seq,
}

impl RecoveryState {
    /// Creates the state before any transmission; `first` is the initial sequence number.
    #[must_use]
    pub const fn new(first: Seq) -> Self {
        Self {
            phase: Phase::Open,
            partial_acks: 0,
            dup_acks: 0,
            limited: 0,
            recover: first,
            restarted: false,
            reduced: first,
            inflation: 0,
            rescue: first,
        }
    }

    /// Begins fast recovery, with all data before `nxt` outstanding.
    pub const fn enter(&mut self, nxt: Seq) {
        self.phase = Phase::Recovery;
        self.recover = nxt;
        self.restarted = false;
        self.partial_acks = 0;
        self.inflation = 0;
        self.limited = 0;
    }

    /// Begins retransmission of all outstanding data in slow start.
    pub const fn lose(&mut self, nxt: Seq) {
        self.phase = Phase::Loss;
        self.recover = nxt;
        self.restarted = false;
        self.dup_acks = 0;
        self.inflation = 0;
        self.limited = 0;
    }

    /// Like [`Self::lose`], for losses that a timer rule has detected during a recovery.
    pub const fn restart(&mut self, nxt: Seq) {
        self.lose(nxt);
        self.restarted = true;
    }

    /// Ends the recovery.
    pub const fn open(&mut self) {
        self.phase = Phase::Open;
        self.dup_acks = 0;
        self.inflation = 0;
        self.limited = 0;
    }

    /// `cwnd` plus the inflation of the recovery, at least one segment.
    #[must_use]
    #[inline]
    pub const fn window(&self, cwnd: u64, smss: u32) -> u64 {
        if self.inflation == 0 {
            return cwnd;
        }
        let window = cwnd.saturating_add_signed(self.inflation);
        if window > smss as u64 {
            window
        } else {
            smss as u64
        }
    }
}
