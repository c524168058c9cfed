//! The response time of a host at the capture point, including the path there and back.

use std::collections::VecDeque;

use super::rtt::LONGEST;
use crate::{
    retransmission::need::is_before,
    time::{MICROSECOND, Nanos},
};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MILLISECOND;

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
