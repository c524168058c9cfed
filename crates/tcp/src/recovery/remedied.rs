//! Delivery of sender events to a remedy for reordering, and the remedy's decisions
//! ([`remedy`](crate::remedy)).

use anabranch_core::units::Duration;

use super::{AckSummary, Detection, Phase, Recovery, Scope, detection::Base, extensions::Remedied};
use crate::{
    cause::RetransmitCause,
    remedy::{Late, Policy, Progress, View},
    scoreboard::Record,
};
use anabranch_wire::seq::Seq;

impl Recovery {
    /// Selects the loss detection and the events for the remedy after the handshake.
    pub(super) fn begin_remedy(&mut self) {
        let Some(Remedied { policy, .. }) = self.remedied().filter(|r| r.policy.attends()) else {
            return;
        };
        let goes_by_age = policy.dupthresh() == u32::MAX;
        if self.reports.is_sack() {
            self.needs_all = true;
            self.detection = if goes_by_age {
                Detection::Age
            } else {
                Detection::Duplicates
            };
        } else if let Some(extensions) = &mut self.extensions {
            // Without SACK the stack's own duplicate threshold applies.
            extensions.remedy = None;
        }
    }

    fn remedied(&self) -> Option<&Remedied> {
        self.extensions.as_ref()?.remedy.as_deref()
    }

    fn remedied_mut(&mut self) -> Option<&mut Remedied> {
        self.extensions.as_mut()?.remedy.as_deref_mut()
    }

    fn view(&self, scope: &Scope<'_>) -> View {
        View {
            now: scope.now,
            smss: u64::from(scope.smss),
            cwnd: scope.window.cwnd().get(),
            flight_size: scope.nxt.since(scope.una),
            pipe: self.board.in_flight(),
            srtt: scope.rtt.srtt(),
            rto: scope.rtt.rto(),
        }
    }

    /// Calls `event` with the remedy, if there is one.
    fn with_remedy<T>(
        &mut self,
        scope: &Scope<'_>,
        event: impl FnOnce(&mut Remedied, &View) -> T,
    ) -> Option<T> {
        self.remedied()?;
        let view = self.view(scope);
        Some(event(self.remedied_mut()?, &view))
    }

    /// Handles a duplicate outside of any recovery.
    pub(super) fn remedy_on_duplicate(&mut self, scope: &Scope<'_>) {
        self.with_remedy(scope, |remedied, view| remedied.policy.on_duplicate(view));
    }

    /// Handles an acknowledgment of new data.
    pub(super) fn remedy_on_progress(&mut self, scope: &Scope<'_>, summary: &AckSummary) {
        let rtt = summary
            .delivered
            .timed()
            .map(|once| scope.now.saturating_since(once.first_sent_at));
        let progress = Progress {
            acked: summary.acked,
            open: summary.prior.phase == Phase::Open,
            reports: self.board.sacked() > 0,
            rtt,
        };
        self.with_remedy(scope, |remedied, view| {
            remedied.policy.on_progress(&progress, view);
        });
    }

    /// Handles newly delivered data. `fack` was one past the highest octet delivered before, and
    /// `behind` is how many octets below it the lowest segment that was sent once lies.
    pub(super) fn remedy_on_delivered(
        &mut self,
        scope: &Scope<'_>,
        summary: &AckSummary,
        fack: Seq,
        behind: Option<u64>,
    ) {
        if !self.reports.is_sack() {
            return;
        }
        let smss = u64::from(scope.smss);
        let count = |octets: u64| u32::try_from(octets.div_ceil(smss)).unwrap_or(u32::MAX);
        let resent = summary.delivered.again.map(|again| again.end);
        self.with_remedy(scope, |remedied, view| {
            if let Some(octets) = behind {
                let late = Late {
                    length: count(octets).saturating_sub(1),
                    resent: false,
                };
                remedied.policy.on_late(late, view);
            }
            if let Some(end) = resent.filter(|end| *end < fack) {
                remedied.arrivals.note(end, count(fack.since(end)));
            }
        });
    }

    /// Handles the retransmission of a segment; `record` is its state before.
    pub(super) fn remedy_on_retransmission(
        &mut self,
        una: Seq,
        record: &Record,
        cause: RetransmitCause,
    ) {
        let end = record.end(una);
        let Some(remedied) = self.remedied_mut() else {
            return;
        };
        let by_duplicates = matches!(
            cause,
            RetransmitCause::DupThresh | RetransmitCause::PartialAck
        );
        if by_duplicates && !record.is_retransmitted() {
            remedied.arrivals.expect(end);
        } else {
            remedied.arrivals.forget(end);
        }
    }

    /// Handles a report that the segment before `end` arrived twice.
    pub(super) fn remedy_on_spurious(&mut self, scope: &Scope<'_>, end: Seq) {
        self.with_remedy(scope, |remedied, view| {
            if let Some(length) = remedied.arrivals.take(end) {
                let late = Late {
                    length,
                    resent: true,
                };
                remedied.policy.on_late(late, view);
            }
        });
    }

    /// Handles an expiry of the retransmission timer.
    pub(super) fn remedy_on_timeout(&mut self, scope: &Scope<'_>) {
        self.with_remedy(scope, |remedied, view| remedied.policy.on_timeout(view));
    }

    /// Whether [`Self::remedy_on_sent`] must be called for each new segment.
    #[inline]
    pub(crate) const fn needs_all(&self) -> bool {
        self.needs_all
    }

    /// Handles the first transmission of a segment.
    #[inline(never)]
    pub(crate) fn remedy_on_sent(&mut self, scope: &Scope<'_>) {
        let end = scope.nxt;
        self.with_remedy(scope, |remedied, view| remedied.policy.on_sent(end, view));
    }

    /// Handles the beginning of a recovery by the age of segments.
    pub(super) fn remedy_on_recovery(&mut self) {
        if let Some(remedied) = self.remedied_mut() {
            remedied.overdue = 0;
        }
    }

    /// Handles `segments` more segments that have exceeded their lifetime in this recovery. Returns
    /// whether this is treated as a timeout.
    pub(super) fn remedy_on_overdue(&mut self, scope: &Scope<'_>, segments: u32) -> bool {
        let collapses = self.with_remedy(scope, |remedied, view| {
            remedied.overdue += segments;
            remedied.policy.on_overdue(remedied.overdue, view)
        });
        collapses.unwrap_or(false)
    }

    /// Handles a loss shown by duplicates. Returns the flight size from which the reduction starts.
    pub(super) fn remedy_on_loss(&mut self) -> Base {
        let window = self
            .remedied_mut()
            .and_then(|remedied| remedied.policy.on_loss());
        window.map_or(Base::Flight, Base::Window)
    }

    /// Octets of new data that the remedy allows while duplicates arrive.
    pub(super) fn remedy_room(&self, scope: &Scope<'_>) -> Option<u64> {
        let remedied = self.remedied()?;
        Some(remedied.policy.room(&self.view(scope)))
    }

    /// Whether this allowance also applies without duplicates.
    pub(super) fn remedy_extends(&self) -> bool {
        self.remedied()
            .is_some_and(|remedied| remedied.policy.extends())
    }

    /// Whether the remedy, not cwnd, is the limit if it keeps less than cwnd in flight.
    pub(super) fn remedy_holds(&self) -> bool {
        self.remedied()
            .is_some_and(|remedied| remedied.policy.holds())
    }

    /// The remedy's bound on the octets in flight.
    pub(super) fn remedy_ramp(&self) -> Option<u64> {
        self.remedied()?.policy.ramp()
    }

    /// The window that a loss of the segment at `start` reduces, if it is not the current one.
    pub(super) fn remedy_window_of(&self, start: Seq) -> Option<u64> {
        self.remedied()?.policy.window_of(start)
    }

    /// Age at which a segment is lost.
    pub(super) fn lifetime(&self) -> Option<Duration> {
        self.remedied()?.policy.lifetime()
    }
}
