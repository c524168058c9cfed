//! The account of a direction's time: the limit of each interval, and its corrections by later verdicts
//! and windows.

use std::collections::VecDeque;

use super::{
    limit_intervals::Clock,
    path_delays::Peer,
    sender::{Interval, Sender},
    sender_view::{Arrival, FURTHEST},
};
use crate::{
    limit::{Limit, Wait},
    retransmission::ledger::Decided,
    time::{Nanos, SECOND},
};

/// The account of the sender's time.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) clock: Clock,
    pub(crate) episodes: Episodes,
    pub(crate) unread: Unread,
    /// Time of the application after the FIN, or after the last data of both ends.
    pub(crate) closing: Nanos,
    /// Waits for a request that cost most of a round trip.
    pub(crate) turns: u64,
    /// The time that these round trips took.
    pub(crate) latency: Nanos,
    /// Application time between a request and the first segment of its answer.
    pub(crate) answering: Nanos,
    /// Total time for which the peer had held its messages back when the last segment was sent.
    peer: Nanos,
    /// The capture has lost packets since the last segment.
    pub(crate) has_gap: bool,
}

impl Account {
    pub(crate) fn new(start: Nanos) -> Self {
        Self {
            clock: Clock::new(start),
            ..Self::default()
        }
    }

    /// The handshake is over.
    pub(crate) fn opened(&mut self, time: Nanos) {
        let wait = Wait {
            is_opening: true,
            ..Wait::default()
        };
        self.clock.spend(time, &wait);
    }

    /// An acknowledgment reaches the sender. `is_closed`: the window is closed, and nothing is in flight.
    pub(crate) fn learn(
        &mut self,
        now: Nanos,
        arrival: &Arrival,
        sender: &Sender,
        is_closed: bool,
    ) {
        let time = arrival.time.min(now);
        if arrival.window < FURTHEST {
            self.unread.see_window(arrival.window);
        }
        self.clock.may_recover(time, sender.may_recover());
        if !sender.is_in_fast_recovery() {
            self.episodes.end(now);
        }
        self.clock.window(time, is_closed);
        self.see_full_window(time);
    }

    /// Ends an interval at a segment. `peer` is the total time for which the peer has held its
    /// messages back. Returns the time attributed to fast recovery.
    pub(crate) fn close(&mut self, interval: &Interval, peer: Nanos) -> Nanos {
        let time = interval.until;
        let wait = Wait {
            has_gap: std::mem::take(&mut self.has_gap),
            ..interval.wait
        };
        let thought = peer - std::mem::replace(&mut self.peer, peer);
        self.spend_first(interval, &wait, thought);
        let before = self.clock.own();
        let spent = self.clock.segment(interval, &wait);
        if interval.asked.is_some() {
            self.answering += self.clock.own() - before;
        }
        self.see_full_window(time);
        spent
    }

    /// Attributes the part of a wait that has a separate reason. Only the rest may be the
    /// application's.
    fn spend_first(&mut self, interval: &Interval, wait: &Wait, thought: Nanos) {
        if let Some(asked) = interval.asked {
            self.spend_drain(asked, interval);
            let travel = self.spend_turn(asked, interval.back, wait, thought);
            // A message that the peer sends at its own pace costs no round trip.
            // The first request may arrive at the server with the end of the handshake.
            let is_turn = interval.since.is_none() || 2 * travel > interval.least.unwrap_or(0);
            if is_turn {
                self.turns += 1;
                // A long request takes longer than its first segment.
                let most = interval.whole.max(interval.least);
                self.latency += most.map_or(travel, |most| travel.min(most));
            }
        } else if let Some(opened) = interval.opened {
            let wait = Wait {
                is_idle: false,
                ..*wait
            };
            self.clock.spend(opened, &wait);
        }
    }

    /// Attributes the time in which the sender's data drains from the queue of the path before the
    /// peer receives it.
    fn spend_drain(&mut self, asked: Nanos, interval: &Interval) {
        let full = Wait {
            is_blocked: true,
            is_queued: true,
            ..Wait::default()
        };
        if interval.drain > interval.least.unwrap_or(Nanos::MAX) / 4 {
            let end = self.clock.at + interval.drain;
            self.clock.spend(end.min(asked), &full);
        }
    }

    /// Attributes the wait for a request: the data that it answers travels, the peer's application
    /// responds, the request travels. Returns the time attributed to round trips.
    fn spend_turn(&mut self, asked: Nanos, back: Nanos, wait: &Wait, thought: Nanos) -> Nanos {
        let start = self.clock.at;
        let before = self.clock.shares.of(Limit::RoundTrips);
        let whole = (asked - start).max(0);
        let thought = thought.clamp(0, whole);
        let travel = whole - thought;
        let there = travel - back.min(travel);
        let turn = Wait {
            is_turn: true,
            ..*wait
        };
        let peers = Wait {
            is_peers: true,
            ..*wait
        };
        self.clock.spend(start + there, &turn);
        self.clock.spend(start + there + thought, &peers);
        self.clock.spend(asked, &turn);
        self.clock.shares.of(Limit::RoundTrips) - before
    }

    /// Discards the account: the capture does not show why the sender waited.
    pub(crate) fn undecide(&mut self, has_receiver: bool) {
        self.clock.undecide(has_receiver);
        self.unread = Unread::default();
        (self.closing, self.answering) = (0, 0);
        (self.turns, self.latency) = (0, 0);
    }

    /// Moves the time after the last data, except for the last `rest` of it, to the program that did not
    /// answer: the peer's, if this end asked.
    pub(crate) fn await_answer(&mut self, rest: Nanos, has_asked: bool) {
        let waited = (self.closing - rest).max(0);
        self.closing -= waited;
        self.clock.peers += if has_asked { waited } else { 0 };
    }

    fn see_full_window(&mut self, time: Nanos) {
        let full = self.clock.shares.of(Limit::ReceiveWindow);
        self.unread.wait(time, full);
    }

    /// Adds time of fast recovery to the current one, and perhaps a retransmission.
    pub(crate) fn go_on(&mut self, spent: Nanos, is_retransmission: bool) {
        self.episodes.go_on(self.clock.at, spent, is_retransmission);
    }

    /// Records verdicts. The time of a recovery whose retransmissions were all spurious is moved to
    /// reordering.
    pub(crate) fn decide(&mut self, decided: impl Iterator<Item = Decided>) {
        for one in decided {
            self.episodes.decide(one.time, one.needed == Some(false));
        }
        while let Some(oldest) = self.episodes.take_closed() {
            if oldest.was_spurious() {
                self.clock
                    .settle_recovery(oldest.since, oldest.end, oldest.spent);
            }
        }
    }

    /// Ends the account with the connection or the capture. If the peer's message was the last
    /// data, it was to arrive at `asked`.
    pub(crate) fn finish(
        &mut self,
        end: Nanos,
        wait: &Wait,
        has_fin: bool,
        asked: Option<(Nanos, Peer)>,
    ) {
        let before = self.clock.own();
        if let Some((asked, peer)) = asked {
            self.spend_turn(asked.min(end), 0, wait, peer.held - self.peer);
        }
        self.clock.spend(end, wait);
        self.closing = self.clock.quiet;
        if has_fin {
            let after = self.clock.own() - before;
            self.closing = self.closing.max(after);
        }
    }
}

/// Maximum number of stored recoveries.
const MOST_EPISODES: usize = 64;

/// A fast recovery.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Episode {
    start: Nanos,
    pub(crate) end: Option<Nanos>,
    /// Time attributed to fast recovery, and its beginning: the wait before the first retransmission
    /// is part of it.
    pub(crate) spent: Nanos,
    pub(crate) since: Nanos,
    /// Its retransmissions, and the number with a verdict.
    sent: u32,
    decided: u32,
    is_spurious: bool,
}

impl Episode {
    fn covers(&self, time: Nanos) -> bool {
        self.start <= time && self.end.is_none_or(|end| time <= end)
    }

    fn is_decided(&self) -> bool {
        self.decided >= self.sent
    }

    /// Every retransmission was spurious.
    pub(crate) fn was_spurious(&self) -> bool {
        self.is_spurious && self.is_decided()
    }
}

/// The recoveries in order of their start.
#[derive(Debug, Default)]
pub(crate) struct Episodes {
    open: VecDeque<Episode>,
}

impl Episodes {
    pub(crate) fn begin(&mut self, start: Nanos) {
        self.open.push_back(Episode {
            start,
            since: start,
            is_spurious: true,
            ..Episode::default()
        });
    }

    /// Adds time of fast recovery up to `until`, and perhaps a retransmission.
    pub(crate) fn go_on(&mut self, until: Nanos, spent: Nanos, is_retransmission: bool) {
        if let Some(episode) = self.open.back_mut().filter(|one| one.end.is_none()) {
            episode.spent += spent;
            episode.since = episode.since.min(until - spent);
            episode.sent += u32::from(is_retransmission);
        }
    }

    pub(crate) fn end(&mut self, now: Nanos) {
        if let Some(episode) = self.open.back_mut() {
            episode.end.get_or_insert(now);
        }
    }

    /// Records the verdict on a retransmission sent at `sent`.
    pub(crate) fn decide(&mut self, sent: Nanos, is_spurious: bool) {
        let mut latest = self.open.iter_mut().rev();
        if let Some(episode) = latest.find(|episode| episode.covers(sent)) {
            episode.is_spurious &= is_spurious;
            episode.decided += 1;
        }
    }

    /// Removes the oldest recovery if its verdicts are complete, or if there are too many.
    pub(crate) fn take_closed(&mut self) -> Option<Episode> {
        let oldest = self.open.front()?;
        let is_closed = oldest.is_decided() && oldest.end.is_some();
        if is_closed || self.open.len() > MOST_EPISODES {
            self.open.pop_front()
        } else {
            None
        }
    }
}

/// Longest time from a full window to a shrunk one.
const PATIENCE: Nanos = 4 * SECOND;

/// At least one in this number of windows must have shrunk.
const RARE: u32 = 32;

/// Time in which the window was full. A receiver whose application reads slowly differs from one with
/// a small buffer: its window shrinks while data waits.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    largest: i64,
    /// The number of windows, and of windows that had shrunk to less than half.
    seen: u32,
    shrunk: u32,
    /// Total time of a full window.
    sum: Nanos,
    /// Time with a full window since the window last shrank, and its start.
    pending: Nanos,
    since: Nanos,
    /// The part after which the window shrank to less than half.
    time: Nanos,
}

impl Unread {
    /// Records a window that reaches the sender.
    pub(crate) fn see_window(&mut self, window: i64) {
        self.largest = self.largest.max(window);
        self.seen = self.seen.saturating_add(1);
        if 2 * window < self.largest {
            self.shrunk = self.shrunk.saturating_add(1);
            self.time += std::mem::take(&mut self.pending);
        }
    }

    /// Time in which the application had not read. If few windows shrank, the host was busy for a
    /// moment.
    pub(crate) fn time(&self) -> Nanos {
        if self.seen > RARE.saturating_mul(self.shrunk) {
            0
        } else {
            self.time
        }
    }

    /// Records the total time for which the window was full.
    pub(crate) fn wait(&mut self, now: Nanos, sum: Nanos) {
        let time = sum - std::mem::replace(&mut self.sum, sum);
        if self.pending == 0 || now - self.since > PATIENCE {
            self.pending = 0;
            self.since = now;
        }
        self.pending += time;
    }
}

#[cfg(test)]
mod tests {
    use crate::time::MILLISECOND;

    use super::*;

    #[test]
    fn windows_that_shrink_repeatedly_show_a_slow_reader() {
        // One window in five had shrunk; of one in sixty, the host was busy for a moment.
        for (every, is_slow) in [(5, true), (60, false)] {
            let mut unread = Unread::default();
            for turn in 0..100 {
                let now = turn * 10 * MILLISECOND;
                let is_small = turn % every == every - 1;
                unread.see_window(if is_small { 4_000 } else { 10_000 });
                unread.wait(now, now);
            }
            assert_eq!(unread.time() > 500 * MILLISECOND, is_slow);
        }
    }
}
