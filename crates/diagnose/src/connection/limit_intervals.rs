//! Attributes each interval of a direction to a limit, and records its pauses.

use super::buffer_refills::{Refill, Refills};
use crate::{
    entries::{Role, Stall},
    limit::{Limit, Shares, Wait},
    time::{Nanos, seconds},
    trace::timeline::Timeline,
};

/// The limits to which time is attributed until the amount in flight proves constant.
const LEVEL_SEEN_AS: [Limit; 2] = [Limit::CongestionWindow, Limit::Bottleneck];

/// Pauses that are stored for each direction. All are counted.
const MOST: usize = 1_000;

/// The running account of a direction's time.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// The time up to which the account is complete, and the limit of the last interval.
    pub(crate) at: Nanos,
    pub(crate) last: Option<Limit>,
    is_closed: bool,
    /// Time at the current amount in flight attributed to the congestion window and to the
    /// bottleneck.
    level: [Nanos; 2],
    /// Time that is attributed to the send buffer if the sender's later waits confirm it.
    refills: Refills,
    /// When the sender had enough duplicate acknowledgments to begin a recovery, and the time
    /// attributed to [`LEVEL_SEEN_AS`] at that moment.
    missed: Option<(Nanos, [Nanos; 2])>,
    /// Since the last segment: the current limit with its time, and the limit with the longest
    /// time.
    current: Option<(Limit, Nanos)>,
    longest: Option<(Limit, Nanos)>,
    /// Application time in which the peer's application had not sent its message.
    pub(crate) peers: Nanos,
    /// Application time since the last data of either end, and the time of that data.
    pub(crate) quiet: Nanos,
    quiet_since: Nanos,
    /// Whether the peer has sent a message since the last segment, and whether the segments sent
    /// now answer it.
    has_asked: bool,
    is_answer: bool,
    pub(crate) shares: Shares,
    pub(crate) stalls: Vec<Stall>,
    /// Pauses that were only counted.
    pub(crate) stalls_not_kept: u64,
    /// The intervals of a connection that is traced.
    pub(crate) timeline: Option<Box<Timeline>>,
}

impl Clock {
    pub(crate) fn new(start: Nanos) -> Self {
        Self {
            at: start,
            quiet_since: start,
            ..Self::default()
        }
    }

    /// Attributes the time up to `until` by the rule that holds for `wait`.
    pub(crate) fn spend(&mut self, until: Nanos, wait: &Wait) -> Limit {
        let limit = if self.is_closed {
            Limit::ZeroWindow
        } else {
            Limit::of(wait)
        };
        if wait.is_peers && limit == Limit::Application {
            self.peers += (until - self.at).max(0);
        }
        self.has_asked |= wait.is_peers || wait.is_turn;
        if limit == Limit::SendBuffer && !wait.is_refill {
            self.settle_level();
        }
        let quiet = self.quiet;
        self.give(until, limit);
        if wait.is_peers {
            // The time is the peer's, wherever in the wait it is.
            self.quiet = quiet;
        }
        limit
    }

    /// Application time without the peer's part.
    pub(crate) fn own(&self) -> Nanos {
        self.shares.of(Limit::Application) - self.peers
    }

    /// Time for which this end held its messages back: its application, or Nagle's algorithm.
    pub(crate) fn held(&self) -> Nanos {
        self.own() + self.shares.of(Limit::DelayedAckNagle)
    }

    /// Records that either end sends data.
    pub(crate) fn see_data(&mut self, time: Nanos) {
        self.quiet = 0;
        self.quiet_since = time;
    }

    /// Begins another amount in flight.
    pub(crate) fn start_level(&mut self) {
        if let Some(timeline) = &mut self.timeline {
            timeline.start_level();
        }
        self.level = [0; 2];
    }

    /// Moves the time at the current amount in flight to the send buffer: it proves constant only
    /// after some rounds.
    fn settle_level(&mut self) {
        for (from, time) in LEVEL_SEEN_AS
            .into_iter()
            .zip(std::mem::take(&mut self.level))
        {
            self.shares.give(from, Limit::SendBuffer, time);
        }
        self.refills.forget(&LEVEL_SEEN_AS);
        if let Some(timeline) = &mut self.timeline {
            timeline.settle_level();
        }
    }

    /// Records an interval that may have waited for the send buffer. Once such waits are confirmed,
    /// all of them are attributed to it.
    fn settle_refills(&mut self, wait: &Wait, limit: Limit, start: Nanos) {
        let end = self.at;
        self.refills
            .see(Refill { limit, start, end }, wait.may_refill);
        if !wait.is_refill {
            return;
        }
        for Refill { limit, start, end } in self.refills.take() {
            self.shares.give(limit, Limit::SendBuffer, end - start);
            for (level, of) in self.level.iter_mut().zip(LEVEL_SEEN_AS) {
                *level -= if of == limit { end - start } else { 0 }.min(*level);
            }
            if let Some(timeline) = &mut self.timeline {
                timeline.settle_refill(start, end);
            }
        }
    }

    /// Attributes the time before a segment that leaves with the previous one.
    fn follow(&mut self, time: Nanos, limit: Limit) {
        // An answer takes time on the links before the capture point.
        let limit = if limit == Limit::Application && self.is_answer {
            Limit::RoundTrips
        } else {
            limit
        };
        self.refills.follow(time, limit);
        self.give(time, limit);
    }

    fn give(&mut self, until: Nanos, limit: Limit) {
        if until > self.at {
            let time = until - self.at;
            self.shares.add(limit, time);
            self.note(limit, time);
            if let Some(timeline) = &mut self.timeline {
                timeline.add(self.at, until, limit);
            }
            match limit {
                Limit::CongestionWindow => self.level[0] += time,
                Limit::Bottleneck => self.level[1] += time,
                Limit::Application => {
                    self.quiet += (until - self.at.max(self.quiet_since)).max(0);
                }
                _ => {}
            }
            self.at = until;
        }
        self.last = Some(limit);
    }

    /// Records whether the sender has enough duplicate acknowledgments to begin a recovery.
    pub(crate) fn may_recover(&mut self, time: Nanos, may: bool) {
        self.missed = if may {
            let shares = || LEVEL_SEEN_AS.map(|limit| self.shares.of(limit));
            Some(self.missed.unwrap_or_else(|| (time, shares())))
        } else {
            None
        };
    }

    /// Corrects the account for a recovery that appears late: its first retransmission must have
    /// been lost before the capture point. Moves the time since the duplicate acknowledgments to
    /// recovery, and returns its start.
    pub(crate) fn settle_missed(&mut self, now: Nanos, patience: Nanos) -> Option<Nanos> {
        let (start, shares) = self.missed.take()?;
        if now - start <= patience {
            return None;
        }
        for (limit, before) in LEVEL_SEEN_AS.into_iter().zip(shares) {
            let time = self.shares.of(limit) - before;
            self.shares.give(limit, Limit::FastRecovery, time.max(0));
        }
        self.level = [0; 2];
        if let Some(timeline) = &mut self.timeline {
            timeline.settle_missed(start);
        }
        Some(start)
    }

    /// Moves `time` of a spurious recovery to reordering.
    pub(crate) fn settle_recovery(&mut self, start: Nanos, end: Option<Nanos>, time: Nanos) {
        self.shares
            .give(Limit::FastRecovery, Limit::Reordering, time);
        if let Some(timeline) = &mut self.timeline {
            timeline.settle_recovery(start, end.unwrap_or(self.at));
        }
    }

    /// Makes the account undecidable because one end's packets were not captured. `has_receiver`
    /// says whether the receiver's were.
    pub(crate) fn undecide(&mut self, has_receiver: bool) {
        let is_known = |limit: Limit| match limit {
            Limit::Handshake => true,
            Limit::ZeroWindow => has_receiver,
            _ => false,
        };
        for limit in Limit::ALL.into_iter().filter(|limit| !is_known(*limit)) {
            self.shares
                .give(limit, Limit::Undecidable, self.shares.of(limit));
        }
        self.peers = 0;
        for stall in self.stalls.iter_mut().filter(|one| !is_known(one.cause)) {
            (stall.cause, stall.side) = (Limit::Undecidable, None);
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.undecide(is_known);
        }
    }

    fn note(&mut self, limit: Limit, time: Nanos) {
        self.current = match self.current {
            Some((same, before)) if same == limit => Some((same, before + time)),
            _ => Some((limit, time)),
        };
        let is_longer = |longest: (Limit, Nanos)| self.current.is_some_and(|now| now.1 > longest.1);
        if self.longest.is_none_or(is_longer) {
            self.longest = self.current;
        }
    }

    /// Records that the receiver's window opens, or closes while nothing is in flight.
    pub(crate) fn window(&mut self, time: Nanos, is_closed: bool) {
        if is_closed == self.is_closed {
            return;
        }
        let limit = if self.is_closed {
            Limit::ZeroWindow
        } else {
            Limit::ReceiveWindow
        };
        self.give(time, limit);
        self.is_closed = is_closed;
    }

    /// Ends an interval at a segment. Returns the time attributed to fast recovery.
    pub(crate) fn segment(
        &mut self,
        time: Nanos,
        since: Option<Nanos>,
        wait: &Wait,
        round_trip: Option<Nanos>,
        packets: [Option<u64>; 2],
        is_burst: bool,
    ) -> Nanos {
        let (before, peers) = (self.at, self.peers);
        // Segments of one burst follow each other at the link's rate.
        let limit = match self.last {
            Some(last) if is_burst => {
                self.follow(time, last);
                last
            }
            _ => {
                self.is_answer = std::mem::take(&mut self.has_asked);
                let limit = self.spend(time, wait);
                self.settle_refills(wait, limit, before);
                limit
            }
        };
        let spent = if limit == Limit::FastRecovery {
            time - before
        } else {
            0
        };
        let longest = self.longest.take().map_or(limit, |longest| longest.0);
        self.current = None;
        let Some((since, round_trip)) = since.zip(round_trip) else {
            return spent;
        };
        let duration = time - since;
        if duration <= round_trip + round_trip / 16 {
            return spent;
        }
        // Most of the pause may have passed before the last event.
        let is_peers =
            longest == Limit::Application && 2 * (before - since) > duration && peers > 0;
        if self.stalls.len() < MOST {
            let side = if is_peers {
                Role::Receiver
            } else {
                Role::Sender
            };
            self.stalls.push(Stall {
                start_s: seconds(since),
                duration_s: seconds(duration),
                cause: longest,
                side: (longest == Limit::Application).then_some(side),
                packets: packets.into_iter().flatten().collect(),
            });
        } else {
            self.stalls_not_kept += 1;
        }
        spent
    }
}
