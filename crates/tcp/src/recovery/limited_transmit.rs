//! Limited transmit (RFC 3042): new data is sent on the first two duplicate acknowledgments, so
//! that a small window yields the third.
//!
//! With SACK the same follows from RFC 6675 §5 (3), because SACKed data leaves the pipe. So it does
//! if duplicates count as deliveries ([`counted_deliveries`](super::counted_deliveries)).
//!
//! # Differs from Linux
//! - In Linux it follows from the estimate of the data in flight: with a threshold above three, each
//!   duplicate before a recovery permits a new segment.

use super::{Phase, RecoveryState};

/// Octets beyond cwnd that may be outstanding while the duplicates are few: at most two segments.
#[must_use]
#[inline]
pub const fn allowance(state: &RecoveryState, smss: u32) -> u64 {
    match state.phase {
        Phase::Open => {
            let segments = if state.dup_acks < 2 {
                state.dup_acks
            } else {
                2
            };
            segments as u64 * smss as u64
        }
        Phase::Reduction | Phase::Recovery | Phase::Loss => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::seq::Seq;

    #[test]
    fn two_segments_at_most_and_only_before_recovery() {
        let mut state = RecoveryState::new(Seq::first(0));
        let mut allowances = Vec::new();
        for dup_acks in 0..5 {
            state.dup_acks = dup_acks;
            allowances.push(allowance(&state, 1000));
        }
        assert_eq!(allowances, [0, 1000, 2000, 2000, 2000]);
        state.enter(Seq::first(9));
        assert_eq!(allowance(&state, 1000), 0);
    }
}
