//! The sender's view: acknowledgments reach it later than they pass the capture point.

use std::collections::VecDeque;

use crate::{
    retransmission::need::is_before,
    time::{MICROSECOND, Nanos},
};

/// Maximum number of acknowledgments between the capture point and the sender.
const MOST: usize = 4096;

/// An acknowledgment further ahead than this is damaged: no window is as large.
pub(crate) const FURTHEST: i64 = 1 << 30;

/// Acknowledgments within this time are handled together: a host reads them from its queue before
/// it sends.
pub(crate) const TOGETHER: Nanos = 200 * MICROSECOND;

/// Maximum lateness of an acknowledgment without a queue on its way.
const LATE: Nanos = 300 * MICROSECOND;

/// An acknowledgment as the sender receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// The earliest time at which data that it releases passes the capture point.
    pub(crate) time: Nanos,
    pub(crate) una: i64,
    /// Octets that were SACKed.
    pub(crate) sacked: i64,
    pub(crate) window: i64,
    /// `TSval`, which later data echoes.
    pub(crate) stamp: Option<u32>,
    pub(crate) is_duplicate: bool,
    /// One past the last sequence number of the peer's data in its segment.
    pub(crate) data_end: Option<u32>,
    /// The receiver took longer to respond than the path explains.
    pub(crate) is_delayed: bool,
}

/// Decides which acknowledgments have reached the sender when it sends a segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    pub(crate) now: Nanos,
    /// Acknowledgments due by this time have arrived.
    pub(crate) latest: Nanos,
    /// The timestamp that the segment echoes.
    pub(crate) echo: Option<u32>,
    /// Longest further delay of an acknowledgment whose timestamp is not echoed.
    pub(crate) patience: Nanos,
}

/// The sender's state as far as acknowledgments determine it.
#[derive(Debug)]
pub(crate) struct View {
    coming: VecDeque<Arrival>,
    /// The number of acknowledgments; the ones with data that the sender has not acknowledged; and
    /// the last one whose data it has.
    pushed: u64,
    messages: VecDeque<(u64, u32)>,
    proved: u64,
    /// The cumulative acknowledgment; [`UNKNOWN`] until one has arrived.
    pub(crate) una: i64,
    /// Its value before the last acknowledgment of new data, or before the first of a group that
    /// arrived together.
    pub(crate) before: i64,
    /// When that group began.
    together: Nanos,
    pub(crate) sacked: i64,
    /// `None` until an acknowledgment has arrived.
    pub(crate) window: Option<i64>,
    pub(crate) duplicates: u32,
    pub(crate) last: Option<Arrival>,
    /// The last one that acknowledged or SACKed new data, or opened the window.
    pub(crate) room: Option<Nanos>,
    /// The last one that acknowledged new data cumulatively.
    pub(crate) advanced: Option<Nanos>,
    /// The last one that carried data.
    pub(crate) asked: Option<Nanos>,
    /// An acknowledgment takes longer than the minimum time to the sender.
    pub(crate) is_late: bool,
    /// All data had been acknowledged when the last segment was sent.
    pub(crate) was_drained: bool,
}

/// Duplicate acknowledgments after which a gap is a loss (RFC 5681 §3.2).
pub(crate) const DUP_THRESH: u32 = 3;

/// Below every octet: no acknowledgment is known.
pub(crate) const UNKNOWN: i64 = i64::MIN / 4;

impl Default for View {
    fn default() -> Self {
        Self {
            coming: VecDeque::new(),
            pushed: 0,
            messages: VecDeque::new(),
            proved: 0,
            una: UNKNOWN,
            before: UNKNOWN,
            together: Nanos::MIN / 2,
            sacked: 0,
            window: None,
            duplicates: 0,
            last: None,
            room: None,
            advanced: None,
            asked: None,
            is_late: false,
            was_drained: false,
        }
    }
}

impl View {
    pub(crate) fn push(&mut self, arrival: Arrival) {
        if self.coming.len() >= MOST {
            let any = Nanos::MAX;
            self.next(&Due {
                now: any,
                latest: any,
                echo: None,
                patience: 0,
            });
        }
        self.pushed += 1;
        if let Some(end) = arrival.data_end {
            if self.messages.len() >= MOST {
                self.messages.pop_front();
            }
            self.messages.push_back((self.pushed, end));
        }
        self.coming.push_back(arrival);
    }

    /// Records that the sender acknowledges the peer's data up to `ack`: all earlier packets have
    /// arrived.
    pub(crate) fn prove(&mut self, ack: u32) {
        while let Some(&(number, end)) = self.messages.front()
            && !is_before(ack, end)
        {
            self.messages.pop_front();
            self.proved = number;
        }
    }

    /// Delivers the next acknowledgment if it has arrived. The sender echoes the `TSval` of the
    /// last one that it received (RFC 7323 §4.3). Without timestamps, or if they are equal, time
    /// decides.
    pub(crate) fn next(&mut self, due: &Due) -> Option<Arrival> {
        let (now, echo) = (due.latest, due.echo);
        let next = self.coming.front()?;
        let stamps = echo.zip(next.stamp);
        let has_later = stamps.is_some_and(|(echo, stamp)| is_before(stamp, echo));
        // If its own data is missing, the sender echoes an old timestamp.
        let number = self.pushed - self.coming.len() as u64 + 1;
        let is_proved = number <= self.proved;
        let is_due = next.time <= now;
        let lacks = stamps.is_some_and(|(echo, stamp)| is_before(echo, stamp));
        self.is_late = lacks && now - next.time > LATE;
        let is_echoed = stamps.is_some_and(|(echo, stamp)| echo == stamp)
            && self.last.and_then(|last| last.stamp) != next.stamp;
        let is_known = is_proved || has_later || is_echoed;
        if !is_known && (!is_due || (lacks && now - next.time <= due.patience)) {
            return None;
        }
        let mut arrival = self.coming.pop_front()?;
        arrival.time = arrival.time.min(due.now);
        let advances = arrival.una > self.una;
        let edge = self.una + self.window.unwrap_or(0);
        if advances || arrival.sacked > self.sacked || arrival.una + arrival.window > edge {
            self.room = Some(arrival.time);
        }
        if advances {
            if arrival.time - self.together > TOGETHER {
                self.before = self.una;
                self.together = arrival.time;
            }
            self.advanced = Some(arrival.time);
            self.duplicates = 0;
        } else if arrival.is_duplicate {
            self.duplicates += 1;
        }
        if arrival.data_end.is_some() {
            self.asked = Some(arrival.time);
        }
        self.una = self.una.max(arrival.una);
        self.sacked = arrival.sacked;
        self.window = Some(arrival.window);
        self.last = Some(arrival);
        Some(arrival)
    }

    /// Octets between `next` and the right edge of the window.
    pub(crate) fn room_from(&self, next: i64) -> Option<i64> {
        self.window.map(|window| self.una + window - next)
    }
}
