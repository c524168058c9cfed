//! Loss recovery from selective acknowledgments (RFC 6675).
//!
//! The pipe, IsLost and Update live in the [scoreboard](crate::scoreboard); here is NextSeg,
//! the choice of what leaves next during a recovery.
//!
//! # Differs from Linux
//! - Linux finds losses by time (RACK) besides, raises the threshold with the reordering it has
//!   seen, and spreads the reduction over the recovery (PRR).
//!
//! # Not implemented
//! - Nothing of RFC 6675 §4 and §5.

use super::RecoveryState;
use crate::scoreboard::Scoreboard;
use anabranch_wire::seq::Seq;

/// What may leave next.
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
    /// It could leave now.
    Available,
    /// It could not.
    Missing,
    /// It waits for all that has not been reported below the highest report
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
