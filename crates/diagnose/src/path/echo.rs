//! Times from an acknowledgment to the data that echoes its timestamp (RFC 7323 §3).

use std::collections::VecDeque;

use crate::{retransmission::need::is_before, time::Nanos};

/// Maximum number of timestamps that wait for an echo.
const MOST: usize = 256;

/// A timestamp that was sent to a host.
#[derive(Debug, Clone, Copy)]
struct Asked {
    stamp: u32,
    /// When the first packet with it passed.
    time: Nanos,
    /// Several packets carry it: a later one may have released the data that echoes it.
    is_shared: bool,
}

/// Timestamps sent to a host, with the time at which each passed first.
#[derive(Debug, Default)]
pub(super) struct Echo {
    asked: VecDeque<Asked>,
    /// The latest timestamp, stored or not: only the first packet with a timestamp is used.
    latest: Option<u32>,
    answered: Option<Asked>,
    /// The minimum time between two stored timestamps, so that the timestamps of one round trip
    /// fit.
    apart: Nanos,
}

/// The time from an acknowledgment to data that echoes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) time: Nanos,
    /// Earlier data has echoed it as well.
    pub(super) is_further: bool,
}

impl Echo {
    /// Records a packet to the host with this `TSval`.
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

    /// Records a packet from the host with this `TSecr`. Returns the time since the packet with
    /// that timestamp.
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
    const fn answer(time: Nanos, is_further: bool) -> Answer {
        Answer { time, is_further }
    }

    #[test]
    fn an_echo_is_timed_from_the_first_packet_with_its_stamp() {
        let mut echo = Echo::default();
        echo.ask(7, 100);
        echo.ask(7, 150);
        assert_eq!(echo.answer(7, 1_000), Some(answer(900, false)));
        // It is unknown which of the two released it.
        assert_eq!(echo.answer(7, 1_200), None);
    }

    #[test]
    fn data_of_one_burst_is_timed_from_the_same_packet() {
        let mut echo = Echo::default();
        echo.ask(7, 100);
        assert_eq!(echo.answer(7, 1_000), Some(answer(900, false)));
        assert_eq!(echo.answer(7, 1_200), Some(answer(1_100, true)));
        assert_eq!(echo.answer(6, 1_300), None);
    }
}
