//! Deliveries counted by duplicate acknowledgments, for recoveries without SACK that PRR paces.
//!
//! Each duplicate indicates that one segment after the first has left the network, without naming
//! it. It counts as one segment of DeliveredData; an acknowledgment of new data delivers the
//! segments it covers minus those counted (RFC 6937 §3). Counted segments leave the pipe, so each
//! duplicate before a recovery permits one new segment (RFC 3042, without its limit of two).
//!
//! A partial acknowledgment of `n` segments fills one gap; `n - 1` of the counted segments are
//! among them, and the others still count. It marks the next segment lost, which leaves when PRR
//! permits (RFC 6582 §3.2 step 3 sends it at once). A recovery ends when more than `recover` is
//! acknowledged. At `recover` itself duplicates answer retransmissions and do not count (RFC 6582
//! §3.2 step 2). After a recovery that proved spurious they count below `recover` as well.
//!
//! At most all segments outstanding but the first can cause duplicates. If more arrive, some answer
//! needless retransmissions, and the duplicate threshold becomes the number outstanding.
//!
//! All of this is measured of Linux 6.12 in virtual time: with the acknowledgments of the kernel's
//! capture, this sender sends the kernel's segments.
//!
//! # Differs from RFC 9937
//! - RecoverFS is cwnd if reductions are computed from cwnd, as in Linux.
//!
//! # Differs from Linux
//! - After a timeout duplicates do not count, and an acknowledgment of `recover` ends the repair.
//!
//! # Not implemented
//! - The same with rate halving, as in Linux before 3.2.

use super::{AckSummary, Phase, Recovery, Scope};
use crate::cause::RetransmitCause;
use anabranch_wire::seq::Seq;

impl Recovery {
    /// Counts the segment that this duplicate reports as delivered. `dup_acks` includes it.
    pub(super) fn count_duplicate(&mut self, scope: &Scope<'_>, summary: &mut AckSummary) {
        let before = self.state.dup_acks - 1;
        if self.state.phase == Phase::Loss || self.is_counted_complete(scope.una) {
            self.state.dup_acks = 0;
        }
        self.bound_count(scope, 0);
        self.note_counted(scope);
        let new = self.state.dup_acks.saturating_sub(before);
        summary.counted = u64::from(new) * u64::from(scope.smss);
    }

    /// Takes the segments that this acknowledgment names from those counted.
    pub(super) fn count_progress(&mut self, scope: &Scope<'_>, summary: &mut AckSummary) {
        let smss = u64::from(scope.smss);
        let counted = u64::from(self.state.dup_acks);
        let fresh = summary.delivered.fresh - summary.delivered.control_bits;
        summary.counted = fresh.saturating_sub(counted * smss).max(fresh.min(smss));
        let named = fresh.div_ceil(smss);
        let left = counted.saturating_sub(named.saturating_sub(1));
        self.state.dup_acks = u32::try_from(left).unwrap_or(u32::MAX);
        self.bound_count(scope, named);
        self.note_counted(scope);
    }

    /// Bounds the count by the segments outstanding after the first. `acked` segments were
    /// outstanding as well before this acknowledgment.
    fn bound_count(&mut self, scope: &Scope<'_>, acked: u64) {
        let outstanding = u64::try_from(self.board.len()).unwrap_or(u64::MAX);
        let most = outstanding.saturating_sub(1);
        if u64::from(self.state.dup_acks) <= most {
            return;
        }
        self.state.dup_acks = u32::try_from(most).unwrap_or(u32::MAX);
        if scope.settings.adapts_dupthresh()
            && let Some(extensions) = &mut self.extensions
        {
            extensions.reordering.on_outnumbered(outstanding + acked);
        }
    }

    /// Takes the segments counted as delivered from the data in flight.
    pub(super) fn note_counted(&mut self, scope: &Scope<'_>) {
        if self.reports.is_counted() {
            let counted = match self.state.phase {
                Phase::Loss => 0,
                Phase::Open | Phase::Reduction | Phase::Recovery => self.state.dup_acks,
            };
            // A window has fewer than 2^30 octets.
            self.board.set_unnamed(counted.saturating_mul(scope.smss));
        }
    }

    /// Whether all data of a recovery is acknowledged and no more, so that the recovery waits for
    /// its end. A timeout then reduces as outside of a recovery.
    pub(super) fn is_counted_complete(&self, una: Seq) -> bool {
        self.reports.is_counted()
            && self.state.phase == Phase::Recovery
            && una == self.state.recover
    }

    /// Segments counted as delivered outside of any recovery.
    pub(super) const fn counted(&self) -> u32 {
        if self.reports.is_counted() && self.state.phase.repairs_nothing() {
            self.state.dup_acks
        } else {
            0
        }
    }

    /// Marks the first segment lost.
    pub(super) fn lose_first(&mut self, cause: RetransmitCause, summary: &mut AckSummary) {
        let before = self.board.lost();
        self.board.mark_lost(0, cause);
        summary.lost += self.board.lost() - before;
    }

    /// Handles an acknowledgment in a recovery of no more than was outstanding when it began.
    /// Returns whether the retransmission timer restarts.
    pub(super) fn advance_counted(
        &mut self,
        scope: &mut Scope<'_>,
        summary: &mut AckSummary,
    ) -> bool {
        self.state.partial_acks = self.state.partial_acks.saturating_add(1);
        if self.is_counted_complete(scope.una) {
            self.state.dup_acks = 0;
        } else if self
            .board
            .front()
            .is_some_and(|front| !front.is_retransmitted())
        {
            self.lose_first(RetransmitCause::PartialAck, summary);
        }
        self.state.partial_acks == 1 || scope.settings.partial_ack_restarts_timer
    }
}
