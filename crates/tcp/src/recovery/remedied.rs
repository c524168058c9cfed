//! Events of the sender as a remedy for reordering receives them, and its decisions ([`remedy`](crate::remedy)).

use anabranch_core::units::Duration;

use super::{AckSummary, Detection, Phase, Recovery, Scope, detection::Base, extensions::Remedied};
use crate::{
    cause::RetransmitCause,
    remedy::{Late, Policy, Progress, View},
    scoreboard::Record,
};
use anabranch_wire::seq::Seq;

impl Recovery {
    /// The handshake decides which events the remedy receives.
    pub(super) fn begin_remedy(&mut self) {
        let Some(Remedied { policy, .. }) = self.remedied().filter(|r| r.policy.attends()) else {
            return;
        };
        let goes_by_age = policy.dupthresh() == u32::MAX;
        if self.sack {
            self.needs_all = true;
            self.detection = if goes_by_age {
                Detection::Age
            } else {
                Detection::Duplicates
            };
        } else if let Some(extensions) = &mut self.extensions {
            // A peer without SACK: the fallback's duplicates count as ever.
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

    /// A duplicate, outside of any recovery.
    pub(super) fn remedy_on_duplicate(&mut self, scope: &Scope<'_>) {
        self.with_remedy(scope, |remedied, view| remedied.policy.on_duplicate(view));
    }

    /// New data is acknowledged.
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

    /// Data was delivered. `fack` was one past the highest octet delivered before, and the lowest segment sent once was `behind` octets
    /// late.
    pub(super) fn remedy_on_delivered(
        &mut self,
        scope: &Scope<'_>,
        summary: &AckSummary,
        fack: Seq,
        behind: Option<u64>,
    ) {
        if !self.sack {
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

    /// The segment of a record, as it was before, is retransmitted.
    pub(super) fn remedy_on_retransmission(&mut self, record: &Record, cause: RetransmitCause) {
        let Some(remedied) = self.remedied_mut() else {
            return;
        };
        let by_duplicates = matches!(
            cause,
            RetransmitCause::DupThresh | RetransmitCause::PartialAck
        );
        if by_duplicates && !record.is_retransmitted() {
            remedied.arrivals.expect(record.end());
        } else {
            remedied.arrivals.forget(record.end());
        }
    }

    /// The peer reports that the segment before `end` came twice.
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

    /// The retransmission timer has expired.
    pub(super) fn remedy_on_timeout(&mut self, scope: &Scope<'_>) {
        self.with_remedy(scope, |remedied, view| remedied.policy.on_timeout(view));
    }

    /// Whether [`Self::remedy_on_sent`] is to be called for each new segment.
    #[inline]
    pub(crate) const fn needs_all(&self) -> bool {
        self.needs_all
    }

    /// A segment has left for the first time.
    #[inline(never)]
    pub(crate) fn remedy_on_sent(&mut self, scope: &Scope<'_>) {
        let end = scope.nxt;
        self.with_remedy(scope, |remedied, view| remedied.policy.on_sent(end, view));
    }

    /// A recovery begins by the age of segments.
    pub(super) fn remedy_on_recovery(&mut self) {
        if let Some(remedied) = self.remedied_mut() {
            remedied.overdue = 0;
        }
    }

    /// `segments` more have outlived their age in this recovery. Returns whether that is to be treated as a timeout.
    pub(super) fn remedy_on_overdue(&mut self, scope: &Scope<'_>, segments: u32) -> bool {
        let collapses = self.with_remedy(scope, |remedied, view| {
            remedied.overdue += segments;
            remedied.policy.on_overdue(remedied.overdue, view)
        });
        collapses.unwrap_or(false)
    }

    /// Duplicates have shown a loss: the flight that the reduction starts from.
    pub(super) fn remedy_on_loss(&mut self) -> Base {
        let window = self
            .remedied_mut()
            .and_then(|remedied| remedied.policy.on_loss());
        window.map_or(Base::Flight, Base::Window)
    }

    /// Octets of new data that the remedy lets leave while duplicates come.
    pub(super) fn remedy_room(&self, scope: &Scope<'_>) -> Option<u64> {
        let remedied = self.remedied()?;
        Some(remedied.policy.room(&self.view(scope)))
    }

    /// Whether that holds without duplicates, too.
    pub(super) fn remedy_extends(&self) -> bool {
        self.remedied()
            .is_some_and(|remedied| remedied.policy.extends())
    }

    /// Whether the remedy, not cwnd, is the limit where it keeps less than cwnd in flight.
    pub(super) fn remedy_holds(&self) -> bool {
        self.remedied()
            .is_some_and(|remedied| remedied.policy.holds())
    }

    /// The remedy's bound on the octets in flight.
    pub(super) fn remedy_ramp(&self) -> Option<u64> {
        self.remedied()?.policy.ramp()
    }

    /// The window that a loss of the segment at `start` reduces, if it is not the present one.
    pub(super) fn remedy_window_of(&self, start: Seq) -> Option<u64> {
        self.remedied()?.policy.window_of(start)
    }

    /// Age at which a segment is lost.
    pub(super) fn lifetime(&self) -> Option<Duration> {
        self.remedied()?.policy.lifetime()
    }
}
