//! How long a host takes to answer what passes the capture point, the way there and back included.

use std::collections::VecDeque;

use super::rtt::LONGEST;
use crate::{retransmission::need::is_before, time::Nanos};

/// `TSval`s that wait for an echo, at most; beyond it the newest alone is kept up to date.
const MOST_ASKED: usize = 64;
/// Answers of which the least counts as the time that an answer takes now.
const RECENT: usize = 16;
/// Reactions of which three quarters are no longer than the host takes: some acknowledgments release nothing.
const REACTIONS: usize = 8;

/// Times from a packet to the host to the host's answer.
#[derive(Debug, Default, Clone)]
pub(crate) struct Turnaround {
    min: Option<Nanos>,
    /// The last ones.
    recent: [Nanos; RECENT],
    sampled: usize,
    least_recent: Option<Nanos>,
    /// When the last of them was taken.
    counted: Option<Nanos>,
    /// How far answers usually lie above the least one: those that were prompt.
    jitter: Nanos,
    /// The last times from an acknowledgment to the data after it.
    reactions: [Nanos; REACTIONS],
    reacted: usize,
    /// The `TSval`s sent to it that nothing has echoed, and when each passed first.
    asked: VecDeque<(u32, Nanos)>,
}

impl Turnaround {
    pub(crate) fn min(&self) -> Option<Nanos> {
        self.min
    }

    /// The least of the last answers that did not wait for the application: a route changes, and a queue comes and goes.
    pub(crate) fn recent(&self) -> Option<Nanos> {
        self.least_recent.or(self.min)
    }

    /// An answer while more was to be sent; whether it counts. One does for each time that an answer takes, so that the last
    /// ones are of several round trips, and a queue is not taken for a longer way.
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

    /// Data followed an acknowledgment that came alone after this time. Without timestamps few answers are timed, and a host
    /// takes longer for its first one than later to send.
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
            // An acknowledgment that is thought to arrive sooner than it does is still the one that releases data.
            self.least_recent = Some(sorted[REACTIONS / 4]);
        }
    }

    pub(crate) fn jitter(&self) -> Nanos {
        self.jitter
    }

    pub(crate) fn sample(&mut self, time: Nanos) {
        let time = time.min(LONGEST);
        let min = self.min.map_or(time, |min| min.min(time)).max(0);
        self.min = Some(min);
        // What takes longer waited for something else.
        if time <= min + min / 2 {
            self.jitter += (time - min - self.jitter) / 16;
        }
    }

    /// A packet to the host with this `TSval`, which was not sent before.
    pub(crate) fn ask(&mut self, stamp: u32, time: Nanos) {
        if self.asked.len() == MOST_ASKED {
            self.asked.pop_back();
        }
        self.asked.push_back((stamp, time));
    }

    /// A packet from the host with this `TSecr`: it left after the host received the stamp. How long that took.
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
        assert_eq!(host.answer(103, 13 * MILLISECOND), Some(10 * MILLISECOND));
        assert_eq!(host.answer(103, 20 * MILLISECOND), None);
        assert_eq!(host.answer(104, 15 * MILLISECOND), Some(11 * MILLISECOND));
    }

    #[test]
    fn answers_of_one_round_trip_count_once() {
        let mut host = Turnaround::default();
        host.sample(10 * MILLISECOND);
        assert!(host.busy(0, 10 * MILLISECOND));
        assert!(!host.busy(5 * MILLISECOND, 40 * MILLISECOND));
        assert!(host.busy(12 * MILLISECOND, 30 * MILLISECOND));
        assert_eq!(host.recent(), Some(10 * MILLISECOND));
    }
}
