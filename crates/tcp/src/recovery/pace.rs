//! Limits on transmission during a recovery guided by SACK, other than the window alone (RFC 6675
//! §5 (C)).

use super::{
    counted_pipe::CountedPipe,
    prr::{Progress, Prr},
    rate_halving::RateHalving,
};

/// The active limit.
#[derive(Debug, Clone, Copy)]
pub enum Pace {
    /// Proportional rate reduction (RFC 9937).
    Prr(Prr),
    /// Rate halving.
    Halving(RateHalving),
    /// The counted pipe.
    Counted(CountedPipe),
}

/// An acknowledgment during a recovery.
#[derive(Debug, Clone, Copy)]
pub struct RecoveryAck {
    /// Data delivered and in flight.
    pub progress: Progress,
    /// It acknowledges new data.
    pub advances: bool,
    /// The recovery begins with it.
    pub begins: bool,
}

impl Pace {
    /// Processes an acknowledgment of this recovery. The first is the acknowledgment that begins
    /// it.
    pub fn on_ack(&mut self, ack: &RecoveryAck) {
        match self {
            Self::Prr(prr) => prr.on_ack(&ack.progress),
            Self::Halving(halving) => halving.on_ack(ack),
            Self::Counted(counted) => counted.on_ack(ack),
        }
    }
    /// Records the transmission of `len` octets.
    pub const fn on_sent(&mut self, len: u32) {
        match self {
            Self::Prr(prr) => prr.on_sent(len),
            Self::Halving(_) => {}
            Self::Counted(counted) => counted.on_sent(len),
        }
    }
    /// Limits the data in flight to `cwnd` until the next acknowledgment.
    pub const fn limit(&mut self, cwnd: u64) {
        match self {
            Self::Prr(prr) => prr.limit(cwnd),
            Self::Halving(halving) => halving.limit(cwnd),
            Self::Counted(_) => {}
        }
    }
    /// Octets that may be in flight now, given `in_flight` and the control's window `cwnd`.
    #[must_use]
    pub fn window(&self, in_flight: u64, cwnd: u64) -> u64 {
        match self {
            Self::Prr(prr) => prr.cwnd(),
            Self::Halving(halving) => halving.cwnd(),
            Self::Counted(counted) => in_flight.saturating_add(counted.room(cwnd)),
        }
    }
    /// The window at the end of the recovery, if it differs from the control's.
    #[must_use]
    pub const fn left(&self) -> Option<u64> {
        match self {
            Self::Halving(halving) => Some(halving.cwnd()),
            Self::Prr(_) | Self::Counted(_) => None,
        }
    }
}
