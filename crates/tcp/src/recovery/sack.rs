//! Loss recovery from selective acknowledgments (RFC 6675).
//!
//! The pipe, IsLost and Update are in the [scoreboard](crate::scoreboard). This module holds
//! NextSeg, the choice of the next transmission during a recovery.
//!
//! # Differs from Linux
//! - Linux also detects losses by time (RACK), raises the threshold with the reordering it has
//!   seen, and spreads the reduction over the recovery (PRR).
//!
//! # Not implemented
//! - Nothing of RFC 6675 §4 and §5.

use super::RecoveryState;
use crate::scoreboard::Scoreboard;
use anabranch_wire::seq::Seq;

/// The next transmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextSeg {
    /// The record at this index, marked lost (rule 1).
    Lost(usize),
    /// Data not sent before (rule 2).
    New,
    /// The record at this index, not marked lost (rule 3).
    Speculative(usize),
    /// The last record, once per recovery, to get acknowledgments flowing (rule 4).
    Rescue(usize),
    /// Nothing.
    Nothing,
}

/// Data not sent before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewData {
    /// New data can be sent now.
    Available,
    /// No new data can be sent.
    Missing,
    /// New data waits for the retransmission of every hole below the highest SACKed octet
    /// ([`counted_pipe`](super::counted_pipe)).
    BehindHoles,
}

/// NextSeg (RFC 6675 §4).
pub fn next_seg(
    board: &mut Scoreboard,
    state: &RecoveryState,
    una: Seq,
    new_data: NewData,
) -> NextSeg {
    if let Some(index) = board.next_lost() {
        return NextSeg::Lost(index);
    }
    if new_data == NewData::BehindHoles {
        return board
            .speculative()
            .map_or(NextSeg::New, NextSeg::Speculative);
    }
    if new_data == NewData::Available {
        return NextSeg::New;
    }
    if let Some(index) = board.speculative() {
        return NextSeg::Speculative(index);
    }
    if una >= state.rescue
        && let Some(index) = board.last_unreported()
    {
        return NextSeg::Rescue(index);
    }
    NextSeg::Nothing
}
