//! Duplicate acknowledgments and the threshold of fast retransmit (RFC 5681 §3.2).
//!
//! # Differs from Linux
//! - Linux adapts the threshold to the reordering it has seen, as `max_dupthresh` permits
//!   ([`reordering`](super::reordering)).
//!
//! # Not implemented
//! - Early retransmit (RFC 5827).

use super::{Phase, RecoveryState};
use crate::{policy::Recovery, settings::Settings};
use anabranch_wire::seq::Seq;

/// The conditions for a duplicate acknowledgment (RFC 5681 §2).
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "RFC 5681 lists them so")]
pub struct Duplicate {
    /// (a) The sender has outstanding data.
    pub outstanding: bool,
    /// (b) The segment carries no data.
    pub no_data: bool,
    /// (c) SYN and FIN are both off.
    pub no_control_bits: bool,
    /// (d) It acknowledges the same number as the last.
    pub same_number: bool,
    /// (e) Its window equals the last one advertised.
    pub same_window: bool,
}

impl Duplicate {
    /// Whether all conditions hold.
    #[must_use]
    #[inline]
    pub const fn is(self) -> bool {
        self.outstanding
            && self.no_data
            && self.no_control_bits
            && self.same_number
            && self.same_window
    }
}

/// A segment that may be lost.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    /// SND.UNA
    pub una: Seq,
    /// Duplicates that indicate a loss.
    pub dupthresh: u32,
    /// A timer rule is active. It retransmits segments that duplicates then answer, so these need
    /// progress even in Reno.
    pub timer_rule: bool,
}

/// Whether enough duplicates have come to retransmit the first segment without SACK.
#[must_use]
pub fn reached(state: &RecoveryState, waiting: &Waiting, settings: &Settings) -> bool {
    let una = waiting.una;
    if state.dup_acks < waiting.dupthresh {
        return false;
    }
    match settings.recovery {
        Recovery::Reno if !waiting.timer_rule => state.phase != Phase::Recovery,
        // RFC 6582 §3.2 step 2: not for segments that the last recovery or timeout may have
        // duplicated. A restart by a timer rule retransmits mostly data that has arrived. The
        // duplicates that answer it stop at `recover`; `recover_inclusive` would take them for a
        // loss there.
        _ => {
            una > state.recover
                || (settings.recover_inclusive && !state.restarted && una == state.recover)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;
    use anabranch_wire::seq::Seq;

    #[test]
    fn duplicates_at_the_edge_of_a_restart_are_ignored() {
        let settings = Profile::named("ns3-2018").expect("it exists").settings;
        assert!(settings.recover_inclusive);
        let edge = Seq::first(9000);
        let mut state = RecoveryState::new(Seq::first(0));
        let mut holds = |change: fn(&mut RecoveryState, Seq), una| {
            change(&mut state, edge);
            state.dup_acks = settings.dupthresh;
            let waiting = Waiting {
                una,
                dupthresh: 3,
                timer_rule: true,
            };
            reached(&state, &waiting, &settings)
        };
        assert!(holds(RecoveryState::enter, edge));
        assert!(holds(RecoveryState::lose, edge));
        assert!(!holds(RecoveryState::restart, edge));
        assert!(holds(RecoveryState::restart, edge + 1));
        // The next recovery is as any other.
        assert!(holds(RecoveryState::enter, edge));
    }
}
