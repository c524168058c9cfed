//! The limit of the sender, decided in one place: see [`send_limit`](crate::send_limit).
//!
//! The decision is made when nothing more can be sent. It marks the flight as limited by cwnd (RFC
//! 9438 §5.8) or notes the amount outstanding under another limit, reports pauses of the
//! application to the delivery-rate estimator (draft-ietf-ccwg-bbr §4.1.2.4), and accounts for the
//! time of each limit.

use anabranch_core::{body::Body, units::Instant};

use super::Sender;
use crate::send_limit::{Constraint, Room, SendLimit};
use anabranch_wire::seq::Seq;

impl<B: Body> Sender<B> {
    /// The number up to which the peer's window and the send buffer permit transmission.
    #[inline]
    pub(crate) fn edge(&self) -> Seq {
        self.peer.edge().min(self.queue.write_edge())
    }

    /// The constraint that leaves the least room, if the congestion window permits `window` octets
    /// and `in_flight` are in flight. Less than a full segment counts as none, because it lets no
    /// segment be sent.
    fn tightest(&self, window: u64, in_flight: u64) -> Constraint {
        let nxt = self.nxt;
        let smss = u64::from(self.smss);
        let room = |octets: u64| if octets < smss { 0 } else { octets };
        let constraint = Room {
            cwnd: room(window.saturating_sub(in_flight)),
            rwnd: room(self.peer.edge().since(nxt)),
            send_buffer: room(self.queue.write_edge().since(nxt)),
            application: room(self.queue.unsent(nxt)),
        }
        .tightest();
        if constraint == Constraint::Application && self.queue.was_cut() {
            // The application has more data, for which the buffer has no room.
            return Constraint::SendBuffer;
        }
        constraint
    }

    /// Finds the limit when nothing more can be sent for lack of room.
    #[inline(never)]
    pub(super) fn note_tightest(&mut self, now: Instant, window: u64, in_flight: u64) {
        match self.tightest(window, in_flight) {
            Constraint::Cwnd => self.note_cwnd_limit(now),
            Constraint::Application => self.note_application_limit(now),
            other => self.note_window_limit(now, other, other.into()),
        }
    }

    /// Notes that a burst is deferred until it is longer. The flight is limited by cwnd only if
    /// cwnd leaves the least room.
    #[inline(never)]
    pub(crate) fn note_deferral(&mut self, now: Instant, window: u64, in_flight: u64) {
        let constraint = self.tightest(window, in_flight);
        let limit = SendLimit::Deferred(constraint);
        if constraint == Constraint::Cwnd {
            self.window.on_limit(self.nxt);
            self.limits.set(now, limit);
        } else {
            self.note_window_limit(now, constraint, limit);
        }
    }

    #[inline]
    pub(crate) fn note_cwnd_limit(&mut self, now: Instant) {
        self.window.on_limit(self.nxt);
        self.limits.set(now, SendLimit::Cwnd);
    }

    /// The application has nothing more to send now.
    #[inline]
    pub(crate) fn note_application_limit(&mut self, now: Instant) {
        self.limits.set(now, SendLimit::Application);
        self.window.on_unfilled(self.peer.una(), self.nxt);
        if self.window.is_rated() {
            self.window.on_app_limited(self.recovery.board());
        }
    }

    /// The peer's window or the send buffer holds data back.
    fn note_window_limit(&mut self, now: Instant, constraint: Constraint, limit: SendLimit) {
        if self.window.is_rated() && constraint == Constraint::SendBuffer {
            self.queue.on_blocked(self.peer.una());
        }
        self.limits.set(now, limit);
        self.window.on_unfilled(self.peer.una(), self.nxt);
    }

    /// Pacing delays data. After a pause of the application, the application is still the limit.
    #[inline]
    pub(super) fn note_pacing_limit(&mut self, now: Instant, in_flight: u64) {
        if in_flight > 0 || self.limits.limit() != SendLimit::Application {
            self.limits.set(now, SendLimit::Pacing);
        }
    }

    /// The application writes after it has waited for room: until then it was the limit, which a
    /// delivery-rate sample takes into account (draft-ietf-ccwg-bbr §4.1.2.4; Linux checks at each
    /// write).
    pub(super) fn on_write(&mut self) {
        if self.window.is_rated() && self.queue.end_block() {
            self.window.on_app_limited(self.recovery.board());
        }
    }
}
