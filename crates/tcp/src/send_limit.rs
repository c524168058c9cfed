//! The limit of a sender, and the time that each limit has held.
//!
//! A sender is limited by the constraint that leaves the least room at that moment: the congestion
//! window (RFC 5681 §3.1), the receive window (RFC 9293 §3.8.6), the send buffer, or the
//! application, which has nothing more to send. Congestion-window validation (RFC 7661 §4.3, RFC
//! 9438 §5.8), delivery-rate samples (draft-ietf-ccwg-bbr §4.1.2.4) and the report of a flow use
//! the same decision, which `sender/limit.rs` makes.
//!
//! # Differs from Linux
//! - Linux (`tcpi_busy_time`, `tcpi_rwnd_limited`, `tcpi_sndbuf_limited`,
//!   `include/uapi/linux/tcp.h`) distinguishes the receive window and the send buffer only, and
//!   detects the send buffer late: see `docs/concepts/tcp.md`.

use anabranch_core::units::{Duration, Instant};

/// A constraint on how much may be outstanding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constraint {
    /// The congestion window.
    Cwnd,
    /// The receive window.
    Rwnd,
    /// The send buffer.
    SendBuffer,
    /// The application has nothing more to send.
    Application,
}

/// Limit of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendLimit {
    /// The congestion window.
    Cwnd,
    /// The receive window.
    Rwnd,
    /// The send buffer is full.
    SendBuffer,
    /// The application has nothing more to send.
    Application,
    /// Pacing delays the next segment.
    Pacing,
    /// A small burst is deferred until it is longer
    /// ([`Segmentation`](super::policy::Segmentation)), because this constraint leaves room for no
    /// more.
    Deferred(Constraint),
    /// A recovery permits less than the congestion window does, or retransmits first.
    Recovery,
}

/// Octets that each constraint permits to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// By the congestion window.
    pub cwnd: u64,
    /// By the receive window.
    pub rwnd: u64,
    /// By the send buffer.
    pub send_buffer: u64,
    /// By the application: data written.
    pub application: u64,
}

impl Room {
    /// The constraint that leaves the least room. With equal room it is the constraint that would
    /// remain if the congestion window grew; the application first, because without data no window
    /// limits the sender.
    #[must_use]
    #[inline]
    pub const fn tightest(&self) -> Constraint {
        let Self {
            cwnd,
            rwnd,
            send_buffer,
            application,
        } = *self;
        if application <= rwnd && application <= send_buffer && application <= cwnd {
            Constraint::Application
        } else if send_buffer <= rwnd && send_buffer <= cwnd {
            Constraint::SendBuffer
        } else if rwnd <= cwnd {
            Constraint::Rwnd
        } else {
            Constraint::Cwnd
        }
    }
}

impl From<Constraint> for SendLimit {
    #[inline]
    fn from(constraint: Constraint) -> Self {
        match constraint {
            Constraint::Cwnd => Self::Cwnd,
            Constraint::Rwnd => Self::Rwnd,
            Constraint::SendBuffer => Self::SendBuffer,
            Constraint::Application => Self::Application,
        }
    }
}

/// Time for which each limit has held. Deferral counts for its constraint, as in Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LimitTimes {
    /// The congestion window.
    pub cwnd: Duration,
    /// The receive window.
    pub rwnd: Duration,
    /// The send buffer.
    pub send_buffer: Duration,
    /// The application.
    pub application: Duration,
    /// Pacing.
    pub pacing: Duration,
    /// Recoveries.
    pub recovery: Duration,
}

impl LimitTimes {
    /// Adds `time` to the sum of `limit`.
    pub fn add(&mut self, limit: SendLimit, time: Duration) {
        let sum = match limit {
            SendLimit::Cwnd | SendLimit::Deferred(Constraint::Cwnd) => &mut self.cwnd,
            SendLimit::Rwnd | SendLimit::Deferred(Constraint::Rwnd) => &mut self.rwnd,
            SendLimit::SendBuffer | SendLimit::Deferred(Constraint::SendBuffer) => {
                &mut self.send_buffer
            }
            SendLimit::Application | SendLimit::Deferred(Constraint::Application) => {
                &mut self.application
            }
            SendLimit::Pacing => &mut self.pacing,
            SendLimit::Recovery => &mut self.recovery,
        };
        *sum += time;
    }

    /// Every time less `earlier`'s.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            cwnd: self.cwnd - earlier.cwnd,
            rwnd: self.rwnd - earlier.rwnd,
            send_buffer: self.send_buffer - earlier.send_buffer,
            application: self.application - earlier.application,
            pacing: self.pacing - earlier.pacing,
            recovery: self.recovery - earlier.recovery,
        }
    }

    /// Every time with `other`'s added.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            cwnd: self.cwnd + other.cwnd,
            rwnd: self.rwnd + other.rwnd,
            send_buffer: self.send_buffer + other.send_buffer,
            application: self.application + other.application,
            pacing: self.pacing + other.pacing,
            recovery: self.recovery + other.recovery,
        }
    }

    /// Sum of all times: the age of the open connection.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.cwnd + self.rwnd + self.send_buffer + self.application + self.pacing + self.recovery
    }
}

/// The limit of a sender, and the time that each limit has held; updated only when the limit
/// changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitAccount {
    limit: SendLimit,
    times: LimitTimes,
    /// Time since when the limit holds; [`Instant::NEVER`] before the connection is open and after
    /// its end.
    since: Instant,
}

impl Default for LimitAccount {
    fn default() -> Self {
        Self {
            limit: SendLimit::Application,
            times: LimitTimes::default(),
            since: Instant::NEVER,
        }
    }
}

impl LimitAccount {
    /// The current limit.
    #[must_use]
    #[inline]
    pub const fn limit(&self) -> SendLimit {
        self.limit
    }

    /// Starts the account when the connection is open.
    pub const fn open(&mut self, now: Instant) {
        self.since = now;
    }

    /// Sets the limit from now on.
    #[inline]
    pub fn set(&mut self, now: Instant, limit: SendLimit) {
        if self.limit != limit {
            self.change(now, limit);
        }
    }

    #[cold]
    #[inline(never)]
    fn change(&mut self, now: Instant, limit: SendLimit) {
        self.settle(now);
        self.limit = limit;
    }

    /// Adds the time of the current limit up to now.
    fn settle(&mut self, now: Instant) {
        if self.since != Instant::NEVER {
            self.times.add(self.limit, now.saturating_since(self.since));
            self.since = now;
        }
    }

    /// Ends the account with the connection.
    pub fn close(&mut self, now: Instant) {
        self.settle(now);
        self.since = Instant::NEVER;
    }

    /// Returns the times up to `now`.
    #[must_use]
    pub fn times(mut self, now: Instant) -> LimitTimes {
        self.settle(now);
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn room(cwnd: u64, rwnd: u64, send_buffer: u64, application: u64) -> Room {
        Room {
            cwnd,
            rwnd,
            send_buffer,
            application,
        }
    }

    #[test]
    fn the_constraint_with_the_least_room_limits() {
        for (room, expected) in [
            (room(0, 1, 1, 1), Constraint::Cwnd),
            (room(1, 0, 1, 1), Constraint::Rwnd),
            (room(1, 1, 0, 1), Constraint::SendBuffer),
            (room(1, 1, 1, 0), Constraint::Application),
            // Growth of cwnd would help none of these.
            (room(0, 0, 9, 9), Constraint::Rwnd),
            (room(0, 9, 0, 9), Constraint::SendBuffer),
            (room(0, 0, 0, 0), Constraint::Application),
            (room(9, 0, 0, 9), Constraint::SendBuffer),
        ] {
            assert_eq!(room.tightest(), expected, "{room:?}");
        }
    }

    #[test]
    fn times_count_while_the_connection_is_open() {
        let at = Instant::from_millis;
        let mut account = LimitAccount::default();
        account.set(at(5), SendLimit::Cwnd);
        account.open(at(10));
        account.set(at(30), SendLimit::Deferred(Constraint::Rwnd));
        let half = account.times(at(70));
        account.close(at(70));
        account.set(at(80), SendLimit::Application);
        let whole = account.times(at(900));
        assert_eq!(half, whole);
        assert_eq!(
            (whole.cwnd, whole.rwnd),
            (Duration::from_millis(20), Duration::from_millis(40))
        );
        assert_eq!(whole.total(), Duration::from_millis(60));
        assert_eq!(whole.since(&half), LimitTimes::default());
    }
}
