//! From an acknowledgment to the data that echoes its timestamp (RFC 7323 §3).

use std::collections::VecDeque;

use crate::{retransmission::need::is_before, time::Nanos};

/// Timestamps that wait for their echo, at most.
const MOST: usize = 256;

/// A timestamp that was sent to a host.
#[derive(Debug, Clone, Copy)]
struct Asked {
    stamp: u32,
    /// When it passed first.
    time: Nanos,
    /// Several packets have it: what echoes it may have been released by a later one.
    is_shared: bool,
}

/// Timestamps that were sent to a host, and when each passed first.
#[derive(Debug, Default)]
pub(super) struct Echo {
    asked: VecDeque<Asked>,
    /// The latest, kept or not: only its first packet can be told.
    latest: Option<u32>,
    answered: Option<Asked>,
    /// The least time between two that are kept, so that those of a round trip fit.
    apart: Nanos,
}

/// A time from an acknowledgment to data that echoes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) time: Nanos,
    /// Earlier data has echoed it, too.
    pub(super) is_further: bool,
}

impl Echo {
    /// A packet to the host has this `TSval`.
    pub(super) fn ask(&mut self, stamp: u32, time: Nanos) {
        if self.latest.is_some_and(|latest| !is_before(latest, stamp)) {
            let kept = self.asked.back_mut().filter(|last| last.stamp == stamp);
            if let Some(last) = kept {
                last.is_shared = true;
            }
            return;
        }
        self.latest = Some(stamp);
        let last = self.asked.back();
        if last.is_some_and(|last| time - last.time < self.apart) {
            return;
        }
        if self.asked.len() >= MOST {
            self.asked.pop_front();
        }
        self.asked.push_back(Asked {
            stamp,
            time,
            is_shared: false,
        });
    }

    /// A packet from the host has this `TSecr`: the time since that one passed.
    pub(super) fn answer(&mut self, echo: u32, time: Nanos) -> Option<Answer> {
        if let Some(answered) = self.answered
            && answered.stamp == echo
        {
            return (!answered.is_shared).then_some(Answer {
                time: time - answered.time,
                is_further: true,
            });
        }
        let mut found = None;
        while let Some(asked) = self.asked.front().copied() {
            if is_before(echo, asked.stamp) {
                break;
            }
            found = (asked.stamp == echo).then_some(asked);
            self.asked.pop_front();
        }
        self.answered = found.or(self.answered);
        let time = time - found?.time;
        self.apart = time / 128;
        Some(Answer {
            time,
            is_further: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_is_timed_from_the_first_packet_with_its_stamp() {
        let mut echo = Echo::default();
        echo.ask(7, 100);
        echo.ask(7, 150);
        let first = Answer {
            time: 900,
            is_further: false,
        };
        assert_eq!(echo.answer(7, 1_000), Some(first));
        // Which of both released it is not known.
        assert_eq!(echo.answer(7, 1_200), None);
    }

    #[test]
    fn data_of_one_burst_is_timed_from_the_same_packet() {
        let mut echo = Echo::default();
        echo.ask(7, 100);
        assert!(echo.answer(7, 1_000).is_some_and(|one| !one.is_further));
        let further = Answer {
            time: 1_100,
            is_further: true,
        };
        assert_eq!(echo.answer(7, 1_200), Some(further));
        assert_eq!(echo.answer(6, 1_300), None);
    }
}
