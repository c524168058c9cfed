//! The delays of the path of one direction, from the response times of both hosts at the capture point.

use std::collections::VecDeque;

use super::{
    rtt::{LONGEST, Rtt},
    sender_view::TOGETHER,
};
use crate::{
    retransmission::need::is_before,
    time::{MICROSECOND, Nanos},
};

/// Minimum times at the capture point.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Delays {
    /// From data to its acknowledgment.
    pub(crate) to_receiver: Option<Nanos>,
    /// From an acknowledgment to the data that it releases.
    pub(crate) to_sender: Option<Nanos>,
    /// The variation of `to_sender`.
    pub(crate) jitter: Nanos,
}

impl Delays {
    pub(crate) fn round_trip(self) -> Option<Nanos> {
        Some(self.to_receiver? + self.to_sender.unwrap_or(0))
    }

    pub(crate) fn back(self) -> Nanos {
        self.to_sender.unwrap_or(0)
    }

    /// Whether the capture point is near the sender, compared with the smoothed round-trip time.
    pub(crate) fn is_near(self, round_trip: Option<Nanos>) -> bool {
        round_trip.is_some_and(|round_trip| 10 * self.back() < round_trip)
    }

    /// The precision with which an acknowledgment and the data that it releases are timed.
    pub(crate) fn tolerance(self) -> Nanos {
        let back = self.back();
        200 * MICROSECOND + (2 * self.jitter).clamp(back / 50, back / 2)
    }
}

/// The other end's part in a wait for its message.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Peer {
    /// Total time for which it has held its messages back.
    pub(crate) held: Nanos,
    /// The time of its last data.
    pub(crate) last_data: Option<Nanos>,
    /// Delay of its last data in a queue.
    pub(crate) queue: Nanos,
}

/// The state of the path when a segment is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conditions {
    pub(crate) delays: Delays,
    /// The sender's smoothed round-trip time and its variation.
    pub(crate) rtt: Option<(Nanos, Nanos)>,
    /// The round-trip time is longer than the minimum.
    pub(crate) is_queued: bool,
    /// Queueing delay of the peer's last data before it reached the sender.
    pub(crate) queue: Nanos,
    /// Queueing delay of the sender's last data on the way to the peer.
    pub(crate) drain: Nanos,
}

impl Conditions {
    pub(crate) fn of(rtt: &Rtt, delays: Delays, queue: Nanos) -> Self {
        let back = delays.back();
        Self {
            delays,
            rtt: rtt.smoothed().map(|(srtt, var)| (srtt + back, var)),
            is_queued: rtt.is_queued(back),
            queue,
            drain: 0,
        }
    }

    pub(crate) fn round_trip(&self) -> Option<Nanos> {
        self.rtt.map(|(srtt, _)| srtt)
    }
}

/// Maximum number of `TSval`s that wait for an echo. Beyond it only the newest is updated.
const MOST_ASKED: usize = 64;
/// Recent responses, whose minimum is the current response time.
const RECENT: usize = 16;
/// Reactions considered: the response time is reduced if three quarters of them are faster, because
/// some acknowledgments release no data.
const REACTIONS: usize = 8;
/// A host that has responded within the first time is the one that captures, or its neighbour: no
/// route leads to it that could become longer. The second time bounds its usual delay.
const NEIGHBOUR: Nanos = 100 * MICROSECOND;
const NEIGHBOUR_MOST: Nanos = 500 * MICROSECOND;

/// Times from a packet to the host to the host's response.
#[derive(Debug, Default, Clone)]
pub(crate) struct Turnaround {
    pub(crate) min: Option<Nanos>,
    /// The last response times.
    recent: [Nanos; RECENT],
    sampled: usize,
    least_recent: Option<Nanos>,
    /// When the last of them was taken.
    counted: Option<Nanos>,
    /// The usual excess of prompt responses over the minimum.
    pub(crate) jitter: Nanos,
    /// The last times from an acknowledgment to the next data.
    reactions: [Nanos; REACTIONS],
    reacted: usize,
    /// `TSval`s sent to the host and not echoed yet, and when each passed first.
    asked: VecDeque<(u32, Nanos)>,
}

impl Turnaround {
    /// The minimum of recent responses that did not wait for the application: routes change, and
    /// queues grow and drain.
    pub(crate) fn recent(&self) -> Option<Nanos> {
        let recent = self.least_recent.or(self.min);
        if self.min.is_some_and(|min| min <= NEIGHBOUR) {
            // Data that follows acknowledgments by more is not released by them.
            return recent.map(|recent| recent.min(NEIGHBOUR_MOST));
        }
        recent
    }

    /// Records a response while more data was to be sent. Returns whether it counts. One counts per
    /// response time, so that the recent ones cover several round trips and a queue is not mistaken
    /// for a longer route.
    pub(crate) fn busy(&mut self, now: Nanos, took: Nanos) -> bool {
        let least = self.min.unwrap_or(0);
        if self.counted.is_some_and(|counted| now - counted < least) {
            return false;
        }
        self.counted = Some(now);
        self.recent[self.sampled % RECENT] = took.clamp(0, LONGEST);
        self.sampled += 1;
        let known = &self.recent[..self.sampled.min(RECENT)];
        self.least_recent = known.iter().min().copied();
        true
    }

    /// Records the time from an isolated acknowledgment to the next data. Without timestamps, few
    /// responses are timed, and a host takes longer for its first response than for later data.
    pub(crate) fn react(&mut self, took: Nanos) {
        self.reactions[self.reacted % REACTIONS] = took;
        self.reacted += 1;
        if self.reacted < REACTIONS {
            return;
        }
        let mut sorted = self.reactions;
        sorted.sort_unstable();
        let most = sorted[REACTIONS - REACTIONS / 4 - 1];
        if self
            .recent()
            .is_some_and(|recent| most < recent - recent / 4)
        {
            // An acknowledgment assumed to arrive too early is still matched with the data that it
            // releases.
            self.least_recent = Some(sorted[REACTIONS / 4]);
        }
    }

    pub(crate) fn sample(&mut self, time: Nanos) {
        let time = time.min(LONGEST);
        let min = self.min.map_or(time, |min| min.min(time)).max(0);
        self.min = Some(min);
        // Longer responses waited for something else.
        if time <= min + min / 2 {
            self.jitter += (time - min - self.jitter) / 16;
        }
    }

    /// Records a packet to the host with this `TSval`, which is new.
    pub(crate) fn ask(&mut self, stamp: u32, time: Nanos) {
        if self.asked.len() == MOST_ASKED {
            self.asked.pop_back();
        }
        self.asked.push_back((stamp, time));
    }

    /// Processes a packet from the host with this `TSecr`: it was sent after the host received that
    /// timestamp. Returns the time in between.
    pub(crate) fn answer(&mut self, echo: u32, time: Nanos) -> Option<Nanos> {
        let mut took = None;
        while let Some(&(stamp, asked)) = self.asked.front()
            && !is_before(echo, stamp)
        {
            self.asked.pop_front();
            took = (stamp == echo).then_some(time - asked);
        }
        if let Some(took) = took {
            self.sample(took);
        }
        took
    }
}

/// The times of acknowledgments of new data.
#[derive(Debug)]
pub(crate) struct Acks {
    last: Nanos,
    /// The first acknowledgment of the latest group, and the last one before the group.
    first: Nanos,
    before: Nanos,
}

impl Default for Acks {
    fn default() -> Self {
        let never = Nanos::MIN / 2;
        Self {
            last: never,
            first: never,
            before: never,
        }
    }
}

impl Acks {
    /// Records an acknowledgment of new data.
    pub(crate) fn see(&mut self, time: Nanos) {
        if time - self.first > TOGETHER {
            (self.first, self.before) = (time, self.last);
        }
        self.last = time;
    }

    /// The time from the last acknowledgment to a segment, if no other one can have released it.
    /// `sent` is when the previous segment was sent.
    pub(crate) fn reaction(
        &self,
        time: Nanos,
        sent: Option<Nanos>,
        delays: Delays,
        round_trip: Option<Nanos>,
    ) -> Option<Nanos> {
        let is_first = sent.is_some_and(|sent| sent < self.last);
        // No response takes longer than the shortest known one.
        let is_alone = time - self.before > delays.back() + delays.tolerance();
        (is_first && is_alone && delays.is_near(round_trip)).then_some(time - self.last)
    }
}

#[cfg(test)]
mod tests {
    use crate::time::MILLISECOND;

    use super::*;

    #[test]
    fn an_answer_is_timed_from_the_stamp_that_it_echoes() {
        let mut host = Turnaround::default();
        for stamp in 0..5 {
            host.ask(100 + stamp, i64::from(stamp) * MILLISECOND);
        }
        for (echo, ms, took) in [(103, 13, Some(10)), (103, 20, None), (104, 15, Some(11))] {
            let took = took.map(|took| took * MILLISECOND);
            assert_eq!(host.answer(echo, ms * MILLISECOND), took);
        }
    }

    #[test]
    fn answers_of_one_round_trip_count_once() {
        let mut host = Turnaround::default();
        host.sample(10 * MILLISECOND);
        for (at, took, counts) in [(0, 10, true), (5, 40, false), (12, 30, true)] {
            assert_eq!(host.busy(at * MILLISECOND, took * MILLISECOND), counts);
        }
        assert_eq!(host.recent(), Some(10 * MILLISECOND));
    }

    #[test]
    fn a_neighbour_does_not_move_away() {
        for (first, later, known) in [(2, 1_500, 500), (2, 300, 300), (5_000, 20_000, 20_000)] {
            let mut host = Turnaround::default();
            host.sample(first * MICROSECOND);
            for at in 0..64 {
                host.busy(at * 50 * MILLISECOND, later * MICROSECOND);
            }
            assert_eq!(host.recent(), Some(known * MICROSECOND));
        }
    }
}
