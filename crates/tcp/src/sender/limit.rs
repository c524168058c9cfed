//! What limits the sender, decided in one place: see [`send_limit`](crate::send_limit).
//!
//! The decision is made when nothing more can leave. It marks the flight as limited by cwnd (RFC 9438 §5.8), notes how much
//! was outstanding where it is not, tells the delivery-rate estimator of pauses of the application
//! (draft-ietf-ccwg-bbr §4.1.2.4), and keeps the account of how long each limit has held.

use anabranch_core::{body::Body, units::Instant};

use super::Sender;
use crate::{
    send_limit::{Constraint, LimitTimes, Room, SendLimit},
    seq::Seq,
};
use anabranch_congestion::CongestionControl;

impl<B: Body> Sender<B> {
    /// What limits the sender now.
    #[must_use]
    pub(crate) const fn send_limit(&self) -> SendLimit {
        self.limit
    }

    /// How long each limit has held since the connection stands.
    #[must_use]
    pub(crate) fn limit_times(&self, now: Instant) -> LimitTimes {
        self.cold.limits.times(now, self.limit)
    }

    /// The number up to which the peer's window and the send buffer let data leave.
    #[inline]
    pub(super) fn edge(&self) -> Seq {
        self.peer.edge().min(self.write_edge)
    }

    /// The constraint that leaves the least room, where the congestion window permits `window` octets and `in_flight` are.
    /// Less than a full segment is none: a window that lacks a part of one limits as much as one that lacks it all.
    fn tightest(&self, window: u64, in_flight: u64) -> Constraint {
        let nxt = self.nxt;
        let smss = u64::from(self.smss);
        let room = |octets: u64| if octets < smss { 0 } else { octets };
        let constraint = Room {
            cwnd: room(window.saturating_sub(in_flight)),
            rwnd: room(self.peer.edge().since(nxt)),
            send_buffer: room(self.write_edge.since(nxt)),
            application: room(self.buffer.end().since(nxt)),
        }
        .tightest();
        if constraint == Constraint::Application && self.cold.write_was_cut {
            // It has more, for which the buffer has no room.
            return Constraint::SendBuffer;
        }
        constraint
    }

    /// Nothing more can leave for want of room: decides what limits the sender.
    #[inline(never)]
    pub(super) fn note_tightest(&mut self, now: Instant, window: u64, in_flight: u64) {
        match self.tightest(window, in_flight) {
            Constraint::Cwnd => self.note_cwnd_limit(now),
            Constraint::Application => self.note_application_limit(now),
            other => self.note_window_limit(now, other, other.into()),
        }
    }

    /// What may leave waits for more to leave with it. The flight is limited by cwnd only if that leaves the least room.
    #[inline(never)]
    pub(super) fn note_deferral(&mut self, now: Instant, window: u64, in_flight: u64) {
        let constraint = self.tightest(window, in_flight);
        let limit = SendLimit::Deferred(constraint);
        if constraint == Constraint::Cwnd {
            self.cwnd_limited_until = self.nxt;
            self.note_limit(now, limit);
        } else {
            self.note_window_limit(now, constraint, limit);
        }
    }

    #[inline]
    pub(super) fn note_cwnd_limit(&mut self, now: Instant) {
        self.cwnd_limited_until = self.nxt;
        self.note_limit(now, SendLimit::Cwnd);
    }

    /// The application has nothing more to send now.
    #[inline]
    pub(crate) fn note_application_limit(&mut self, now: Instant) {
        self.note_limit(now, SendLimit::Application);
        self.note_unfilled();
        if self.rated {
            self.note_application_limit_of_rate();
        }
    }

    /// The peer's window or the send buffer holds data back.
    fn note_window_limit(&mut self, now: Instant, constraint: Constraint, limit: SendLimit) {
        if self.rated && constraint == Constraint::SendBuffer {
            self.cold.extras().blocked_at.get_or_insert(self.peer.una());
        }
        self.note_limit(now, limit);
        self.note_unfilled();
    }

    /// Pacing holds data back. After a pause of the application that is still the pause's doing.
    #[inline]
    pub(super) fn note_pacing_limit(&mut self, now: Instant, in_flight: u64) {
        if in_flight > 0 || self.limit != SendLimit::Application {
            self.note_limit(now, SendLimit::Pacing);
        }
    }

    /// A recovery or a remedy for reordering permits less than cwnd does.
    #[cold]
    pub(super) fn note_recovery_limit(&mut self, now: Instant) {
        self.note_limit(now, SendLimit::Recovery);
    }

    /// The account changes only here, where the limit does.
    #[inline]
    fn note_limit(&mut self, now: Instant, limit: SendLimit) {
        if self.limit != limit {
            self.change_limit(now, limit);
        }
    }

    #[cold]
    #[inline(never)]
    fn change_limit(&mut self, now: Instant, limit: SendLimit) {
        let before = std::mem::replace(&mut self.limit, limit);
        self.cold.limits.settle(now, before);
    }

    /// The connection ends other than by FIN.
    #[cold]
    pub(crate) fn close_limits(&mut self, now: Instant) {
        self.cold.limits.close(now, self.limit);
    }

    /// Something other than cwnd holds data back.
    pub(super) fn note_unfilled(&mut self) {
        if !self.settings.window_rules.grow_half_full() {
            return;
        }
        let (una, nxt) = (self.peer.una(), self.nxt);
        let outstanding = nxt.since(una);
        let unfilled = &mut self.cold.extras().unfilled;
        if outstanding > unfilled.most || unfilled.until.is_none_or(|until| until <= una) {
            unfilled.most = outstanding;
            unfilled.until = Some(nxt);
        }
    }

    /// What could leave before an application writes that has waited for room was the application's to give: what a
    /// delivery-rate sample must know (draft-ietf-ccwg-bbr §4.1.2.4; Linux looks at each write).
    pub(super) fn note_write(&mut self) {
        if self.rated
            && let Some(extras) = &mut self.cold.extras
            && extras.blocked_at.take().is_some()
        {
            self.note_application_limit_of_rate();
        }
    }

    /// The same where what becomes free is filled at once: the samples count the wait until a third is free all the same.
    pub(super) fn note_write_after_block(&mut self) {
        let extras = self.cold.extras.as_ref();
        let blocked_at = extras.and_then(|extras| extras.blocked_at);
        if self.longest_train == 0
            && blocked_at.is_some_and(|una| 3 * self.peer.una().since(una) >= self.capacity)
        {
            self.note_write();
        }
    }

    /// Not while something else holds data back as well (draft-ietf-ccwg-bbr §4.1.2.4).
    fn note_application_limit_of_rate(&mut self) {
        let in_flight = self.board.in_flight();
        if self.board.lost() == 0
            && in_flight < self.control.cwnd().get()
            && let Some(extras) = &mut self.cold.extras
        {
            extras.rate.on_app_limited(in_flight);
        }
    }
}
