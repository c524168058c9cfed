//! Loss recovery: when a loss is found, what is retransmitted, and how much may leave meanwhile.
//!
//! The congestion control owns cwnd; what a recovery adds to it for a while or takes from it is
//! kept here ([`RecoveryState::inflation`]).

pub mod counted_pipe;
pub mod dsack;
pub mod dupthresh;
pub mod frto;
pub mod limited_transmit;
pub mod new_reno;
pub mod pace;
pub mod prr;
pub mod rack;
pub mod rate_halving;
pub mod reordering;
pub mod sack;
pub mod timer_rule;
pub mod tlp;
pub mod undo;
pub mod watch;
pub mod window_log;

use std::ops::Range;

use anabranch_core::units::Duration;

use super::seq::Seq;
use crate::scoreboard::Delivered;

/// State of the sender before an acknowledgment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prior {
    pub(crate) phase: Phase,
    /// Duplicates since the last acknowledgment of new data.
    pub(crate) dup_acks: u32,
    pub(crate) una: Seq,
    pub(crate) in_flight: u64,
}

/// Summary of an acknowledgment.
#[derive(Debug)]
pub(crate) struct AckSummary {
    pub(crate) prior: Prior,
    pub(crate) delivered: Delivered,
    /// Octets newly acknowledged cumulatively; SYN and FIN count here.
    pub(crate) acked: u64,
    /// Octets newly marked lost.
    pub(crate) lost: u64,
    /// A SACK block reports something new.
    pub(crate) new_sack: bool,
    /// It reports these octets as a duplicate (RFC 2883).
    pub(crate) duplicate: Option<Range<Seq>>,
    /// It is a duplicate acknowledgment (RFC 5681 §2).
    pub(crate) is_duplicate: bool,
    /// It has neither payload nor SACK blocks.
    pub(crate) is_bare: bool,
    /// The timestamp that it echoes, where timestamps are in use.
    pub(crate) echo: Option<u32>,
    /// Round-trip time by timestamp, where retransmissions leave no other.
    pub(crate) rtt_by_timestamp: Option<Duration>,
}

impl AckSummary {
    /// An acknowledgment of `acked` octets.
    pub(crate) const fn new(acked: u64, prior: Prior) -> Self {
        Self {
            prior,
            delivered: Delivered::NOTHING,
            acked,
            lost: 0,
            new_sack: false,
            duplicate: None,
            is_duplicate: false,
            is_bare: false,
            echo: None,
            rtt_by_timestamp: None,
        }
    }
}

/// Where the sender stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// No loss is being repaired.
    Open,
    /// The same, while a reduction that a mark asked for goes on
    /// ([`WindowRules::pace_at_marks`](crate::policy::WindowRules::pace_at_marks)).
    Reduction,
    /// Fast recovery (RFC 5681 §3.2).
    Recovery,
    /// After a timeout, or after a timer rule ended a recovery: slow start, with what was lost.
    Loss,
}

impl Phase {
    /// Whether no loss is being repaired.
    #[must_use]
    #[inline]
    pub const fn repairs_nothing(self) -> bool {
        matches!(self, Self::Open | Self::Reduction)
    }

    /// Whether the window is on its way down to ssthresh, and does not grow.
    #[must_use]
    #[inline]
    pub const fn reduces(self) -> bool {
        matches!(self, Self::Reduction | Self::Recovery)
    }
}

/// The state of loss recovery.
#[derive(Debug, Clone, Copy)]
pub struct RecoveryState {
    /// Where the sender stands.
    pub phase: Phase,
    /// Partial acknowledgments in this recovery.
    pub partial_acks: u32,
    /// Duplicate acknowledgments since the last acknowledgment of new data.
    pub dup_acks: u32,
    /// Octets sent by limited transmit since then; no part of FlightSize (RFC 5681 §3.2 step 2).
    pub limited: u32,
    /// `recover` (RFC 6582) or RecoveryPoint (RFC 6675): behind the highest number sent when the
    /// last recovery began.
    pub recover: Seq,
    /// A timer rule has ended the last recovery and started over.
    pub restarted: bool,
    /// Behind the highest number sent when cwnd was last reduced for a mark (RFC 3168 §6.1.2).
    pub reduced: Seq,
    /// What RFC 6582 adds to cwnd during fast recovery; below zero after a large partial
    /// acknowledgment.
    pub inflation: i64,
    /// RescueRxt of RFC 6675: a rescue retransmission may follow once this is acknowledged.
    pub rescue: Seq,
}

impl RecoveryState {
    /// Before anything is sent; `first` is the initial sequence number.
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

    /// Fast recovery begins with everything before `nxt` outstanding.
    pub const fn enter(&mut self, nxt: Seq) {
        self.phase = Phase::Recovery;
        self.recover = nxt;
        self.restarted = false;
        self.partial_acks = 0;
        self.inflation = 0;
        self.limited = 0;
    }

    /// Everything outstanding is retransmitted in slow start.
    pub const fn lose(&mut self, nxt: Seq) {
        self.phase = Phase::Loss;
        self.recover = nxt;
        self.restarted = false;
        self.dup_acks = 0;
        self.inflation = 0;
        self.limited = 0;
    }

    /// As [`Self::lose`], for what a timer rule has found during a recovery.
    pub const fn restart(&mut self, nxt: Seq) {
        self.lose(nxt);
        self.restarted = true;
    }

    /// No loss is left.
    pub const fn open(&mut self) {
        self.phase = Phase::Open;
        self.dup_acks = 0;
        self.inflation = 0;
        self.limited = 0;
    }

    /// `cwnd` with what the recovery adds, one segment at least.
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
