//! What the sender knows: acknowledgments reach it later than they pass the capture point.

use std::collections::VecDeque;

use crate::{
    retransmission::need::is_before,
    time::{MICROSECOND, Nanos},
};

/// Acknowledgments that are between the capture point and the sender, at most.
const MOST: usize = 4096;

/// An acknowledgment further ahead than any window is a damaged one.
pub(crate) const FURTHEST: i64 = 1 << 30;

/// Acknowledgments within this time are handled together: a host takes them from its queue before it sends.
pub(crate) const TOGETHER: Nanos = 200 * MICROSECOND;

/// By how much an acknowledgment may be late without a queue on its way.
const LATE: Nanos = 300 * MICROSECOND;

/// An acknowledgment, as the sender is going to see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// When data that it releases passes the capture point at the earliest.
    pub(crate) time: Nanos,
    pub(crate) una: i64,
    /// Octets that were SACKed.
    pub(crate) sacked: i64,
    pub(crate) window: i64,
    /// `TSval`, which data that is sent later echoes.
    pub(crate) stamp: Option<u32>,
    pub(crate) is_duplicate: bool,
    /// The number after the data of the peer's application that it came with.
    pub(crate) data_end: Option<u32>,
    /// When the data passed that it acknowledges first, and the receiver took longer than the path to answer.
    pub(crate) is_delayed: bool,
}

/// Which acknowledgments have reached the sender when it sends a segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    pub(crate) now: Nanos,
    /// Those that were to arrive until then.
    pub(crate) latest: Nanos,
    /// The timestamp that the segment echoes.
    pub(crate) echo: Option<u32>,
    /// How much later than that an acknowledgment may be whose timestamp is not echoed.
    pub(crate) patience: Nanos,
}

/// The sender's state, as far as acknowledgments make it.
#[derive(Debug)]
pub(crate) struct View {
    coming: VecDeque<Arrival>,
    /// Arrivals so far, those that have come with data and are not acknowledged, and the last one that is.
    pushed: u64,
    messages: VecDeque<(u64, u32)>,
    proved: u64,
    /// [`UNKNOWN`] until an acknowledgment has come.
    pub(crate) una: i64,
    /// The same before the last acknowledgment of new data, or the first of several that came together.
    pub(crate) before: i64,
    /// When that came.
    together: Nanos,
    pub(crate) sacked: i64,
    /// `None` until an acknowledgment has come.
    pub(crate) window: Option<i64>,
    pub(crate) duplicates: u32,
    pub(crate) last: Option<Arrival>,
    /// The last that acknowledged new data, SACKed or not, or opened the window.
    pub(crate) room: Option<Nanos>,
    /// The last that acknowledged new data cumulatively.
    pub(crate) advanced: Option<Nanos>,
    /// The last that carried data.
    pub(crate) asked: Option<Nanos>,
    /// An acknowledgment takes longer than the least time to the sender.
    pub(crate) is_late: bool,
    /// All had been acknowledged when the last segment was sent.
    pub(crate) was_drained: bool,
}

/// Below every octet: nothing is known to be acknowledged.
pub(crate) const UNKNOWN: i64 = i64::MIN / 4;

impl View {
    pub(crate) fn new() -> Self {
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

    /// The sender acknowledges the peer's data up to `ack`: whatever came before that has arrived.
    pub(crate) fn prove(&mut self, ack: u32) {
        while let Some(&(number, end)) = self.messages.front()
            && !is_before(ack, end)
        {
            self.messages.pop_front();
            self.proved = number;
        }
    }

    /// Lets the next acknowledgment arrive. The sender echoes the `TSval` of the last that it has (RFC 7323 §4.3);
    /// without one, or where that is the same, time decides.
    pub(crate) fn next(&mut self, due: &Due) -> Option<Arrival> {
        let (now, echo) = (due.latest, due.echo);
        let next = self.coming.front()?;
        let stamps = echo.zip(next.stamp);
        let has_later = stamps.is_some_and(|(echo, stamp)| is_before(stamp, echo));
        // With data of its own missing, the sender echoes an old one.
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
