//! A remedy for reordering at work: what it is told, and what it decides
//! ([`remedy`](crate::remedy)).

use anabranch_core::{
    body::Body,
    units::{Duration, Instant},
};

use super::{Finder, Retransmit, Sender, fast_recovery::Base};
use crate::{
    cause::RetransmitCause,
    recovery::{AckSummary, Phase, watch::Remedied},
    remedy::{Late, Policy, Progress, View},
    scoreboard::Record,
    seq::Seq,
};

impl<B: Body> Sender<B> {
    /// What the connection has agreed on decides what the remedy must hear.
    pub(crate) fn begin_remedy(&mut self) {
        if self.settings.timers.count_ticks() {
            self.agreed.finder = match self.agreed.finder {
                Finder::Rack => Finder::RackAttended,
                _ => Finder::DuplicatesAttended,
            };
        }
        let Some(policy) = self.remedied().map(|remedied| &remedied.policy) else {
            return;
        };
        let (attends, ages) = (policy.attends(), policy.dupthresh() == u32::MAX);
        // A peer without SACK: the fallback's duplicates count as ever.
        if attends && self.agreed.guided {
            self.agreed.finder = if ages {
                Finder::Age
            } else {
                Finder::DuplicatesAttended
            };
        }
        if attends
            && !self.agreed.guided
            && let Some(watch) = &mut self.cold.watch
        {
            watch.remedy = None;
        }
    }

    fn remedied(&self) -> Option<&Remedied> {
        self.cold.watch.as_ref()?.remedy.as_deref()
    }

    fn view(&self, now: Instant) -> View {
        View {
            now,
            smss: u64::from(self.smss),
            cwnd: self.window.cwnd().get(),
            flight_size: self.nxt.since(self.peer.una()),
            pipe: self.board.in_flight(),
            srtt: self.rtt.srtt(),
            rto: self.rtt.rto(),
        }
    }

    fn tell_remedy(&mut self, now: Instant, tell: impl FnOnce(&mut Remedied, &View)) {
        let view = self.view(now);
        if let Some(watch) = &mut self.cold.watch
            && let Some(remedied) = &mut watch.remedy
        {
            tell(remedied, &view);
        }
    }

    /// A duplicate, outside of any recovery.
    pub(super) fn tell_remedy_of_duplicate(&mut self, now: Instant) {
        self.tell_remedy(now, |remedied, view| remedied.policy.on_duplicate(view));
    }

    /// New data is acknowledged.
    pub(super) fn tell_remedy_of_progress(&mut self, now: Instant, summary: &AckSummary) {
        let delivered = &summary.delivered;
        let once = delivered.once.filter(|_| delivered.again.is_none());
        let progress = Progress {
            acked: summary.acked,
            open: summary.prior.phase == Phase::Open,
            reports: self.board.sacked() > 0,
            rtt: once.map(|once| now.saturating_since(once.first_sent_at)),
        };
        self.tell_remedy(now, |remedied, view| {
            remedied.policy.on_progress(&progress, view);
        });
    }

    /// Something was delivered. Before, `fack` was the number behind the highest delivered, and
    /// what had been sent once lay `behind` it by so many octets.
    pub(super) fn tell_remedy_of_lateness(
        &mut self,
        now: Instant,
        summary: &AckSummary,
        (fack, behind): (Seq, Option<u64>),
    ) {
        if !self.agreed.guided {
            return;
        }
        let smss = u64::from(self.smss);
        let count = |octets: u64| u32::try_from(octets.div_ceil(smss)).unwrap_or(u32::MAX);
        let resent = summary.delivered.again.map(|again| again.end);
        let resent = resent.filter(|end| *end < fack);
        self.tell_remedy(now, |remedied, view| {
            if let Some(octets) = behind {
                let late = Late {
                    length: count(octets).saturating_sub(1),
                    resent: false,
                };
                remedied.policy.on_late(late, view);
            }
            if let Some(end) = resent {
                remedied.arrivals.note(end, count(fack.since(end)));
            }
        });
    }

    /// The segment of a record, as it stood before, is retransmitted.
    #[cold]
    pub(super) fn tell_remedy_of_retransmission(
        &mut self,
        record: &Record,
        cause: RetransmitCause,
    ) {
        let Some(watch) = &mut self.cold.watch else {
            return;
        };
        let Some(remedied) = &mut watch.remedy else {
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
    pub(super) fn tell_remedy_of_spurious(&mut self, now: Instant, end: Seq) {
        self.tell_remedy(now, |remedied, view| {
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
    pub(super) fn tell_remedy_of_timeout(&mut self, now: Instant) {
        self.tell_remedy(now, |remedied, view| remedied.policy.on_timeout(view));
    }

    /// A segment has left for the first time.
    #[inline(never)]
    pub(super) fn tell_remedy_of_sending(&mut self, now: Instant) {
        let end = self.nxt;
        self.tell_remedy(now, |remedied, view| remedied.policy.on_sent(end, view));
    }

    /// Octets of new data that the remedy lets leave while duplicates come.
    pub(super) fn remedy_room(&self, now: Instant) -> Option<u64> {
        let remedied = self.remedied()?;
        Some(remedied.policy.room(&self.view(now)))
    }

    /// Whether that holds without duplicates, too.
    pub(super) fn remedy_extends(&self) -> bool {
        self.remedied()
            .is_some_and(|remedied| remedied.policy.extends())
    }

    /// Whether what it keeps below cwnd is not cwnd's doing.
    pub(super) fn remedy_holds(&self) -> bool {
        self.remedied()
            .is_some_and(|remedied| remedied.policy.holds())
    }

    /// Duplicates have shown a loss: what the reduction is taken from.
    pub(super) fn tell_remedy_of_loss(&mut self) -> Base {
        let watch = self.cold.watch.as_mut();
        let remedied = watch.and_then(|watch| watch.remedy.as_mut());
        match remedied.and_then(|remedied| remedied.policy.on_loss()) {
            Some(window) => Base::Window(window),
            None => Base::Flight,
        }
    }

    /// The remedy's bound on what is in flight.
    pub(super) fn remedy_ramp(&self) -> Option<u64> {
        self.remedied()?.policy.ramp()
    }

    fn lifetime(&self) -> Option<Duration> {
        self.remedied()?.policy.lifetime()
    }

    /// The retransmission timer only stands behind the segments' own.
    pub(super) fn postpone_retransmission_timer(&mut self) {
        if let Some(lifetime) = self.lifetime() {
            let least = lifetime.saturating_mul(2);
            let rto = self.rtt.rto();
            if least > rto {
                self.timer_at = self.timer_at.saturating_add(least - rto);
            }
        }
    }

    /// Takes for lost what has outlived its age, and returns how much that is. `fresh` is what the
    /// acknowledgment delivered.
    pub(super) fn detect_by_age(&mut self, now: Instant, fresh: u64) -> u64 {
        let Some(lifetime) = self.lifetime() else {
            return 0;
        };
        // Sent before this: a segment is given its whole lifetime.
        let age = lifetime.as_picos().saturating_sub(1);
        let before = Instant::from_picos(now.as_picos().saturating_sub(age));
        let expired = self.board.expire(before, before);
        let next = expired.next.map(|sent| sent.saturating_add(lifetime));
        if expired.lost == 0 {
            self.start_reordering_timer(next.map(|at| at.max(now)));
            return 0;
        }
        let memorized = expired
            .latest
            .is_none_or(|start| start < self.recovery.recover);
        let mut collapse = false;
        if self.recovery.phase == Phase::Open || !memorized {
            if self.recovery.phase != Phase::Loss {
                let window = expired
                    .latest
                    .and_then(|start| self.remedied()?.policy.window_of(start));
                let base = window.map_or(Base::Flight, Base::AtMost);
                self.enter_recovery_from(now, RetransmitCause::TimerRule, (fresh, base));
            }
            self.tell_remedy(now, |remedied, _| remedied.overdue = 0);
        } else {
            self.tell_remedy(now, |remedied, view| {
                remedied.overdue += expired.segments;
                collapse = remedied.policy.on_overdue(remedied.overdue, view);
            });
        }
        if collapse && self.recovery.phase == Phase::Recovery {
            self.on_retransmission_timeout(now);
            return expired.lost;
        }
        self.retransmit = Retransmit::FirstLost;
        self.start_reordering_timer(next.map(|at| at.max(now)));
        expired.lost
    }
}
