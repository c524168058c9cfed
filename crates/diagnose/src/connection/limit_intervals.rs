//! Attributes each interval of a direction to a limit, and records its pauses.

use super::sender::{Follows, Interval};
use crate::{
    entries::{Role, Stall},
    limit::{Limit, Wait},
    time::{Nanos, seconds},
    trace::Span,
};

/// The limits to which time is attributed until the amount in flight proves constant.
const LEVEL_SEEN_AS: [Limit; 2] = [Limit::CongestionWindow, Limit::Bottleneck];

/// Pauses that are stored for each direction. All are counted.
const MOST_STALLS: usize = 1_000;

/// Waits that are stored until later ones confirm that they were for the send buffer.
const MOST_REFILLS: usize = 16;

/// A moment, and the time that had been attributed to [`LEVEL_SEEN_AS`] by then.
#[derive(Debug, Default, Clone, Copy)]
struct Mark {
    at: Nanos,
    spent: [Nanos; 2],
}

/// A wait that may have been for the send buffer, and the limit to which its time was attributed.
#[derive(Debug, Clone, Copy)]
struct Refill {
    limit: Limit,
    start: Nanos,
    end: Nanos,
}

/// The running account of a direction's time.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one observation")]
pub(crate) struct Clock {
    /// The time up to which the account is complete, and the limit of the last interval.
    pub(crate) at: Nanos,
    pub(crate) last: Option<Limit>,
    is_closed: bool,
    /// The beginning of the current amount in flight.
    level: Mark,
    /// Waits that are attributed to the send buffer if the sender's later waits confirm it, and
    /// whether the segments sent now follow the last of them.
    refills: Vec<Refill>,
    goes_on: bool,
    /// When the sender had enough duplicate acknowledgments to begin a recovery.
    missed: Option<(Nanos, Mark)>,
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
    pub(crate) shares: Intervals,
    pub(crate) stalls: Vec<Stall>,
    /// Pauses that were only counted.
    pub(crate) stalls_not_kept: u64,
}

impl Clock {
    pub(crate) fn new(start: Nanos) -> Self {
        Self {
            at: start,
            quiet_since: start,
            level: Mark {
                at: start,
                ..Mark::default()
            },
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
            // The amount proves constant only after some rounds.
            self.settle_since(self.level, Limit::SendBuffer);
            self.refills
                .retain(|wait| !LEVEL_SEEN_AS.contains(&wait.limit));
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

    fn mark(&self) -> Mark {
        Mark {
            at: self.at,
            spent: LEVEL_SEEN_AS.map(|limit| self.shares.of(limit)),
        }
    }

    /// Begins another amount in flight.
    pub(crate) fn start_level(&mut self) {
        self.level = self.mark();
    }

    /// Moves the time attributed to [`LEVEL_SEEN_AS`] since a moment to another limit.
    #[cold]
    fn settle_since(&mut self, mark: Mark, to: Limit) {
        for (limit, before) in LEVEL_SEEN_AS.into_iter().zip(mark.spent) {
            let time = (self.shares.of(limit) - before).max(0);
            self.shares.give(limit, to, time, (mark.at, self.at));
        }
        self.start_level();
    }

    /// Records an interval that may have waited for the send buffer. Once such waits are confirmed,
    /// all of them are attributed to it.
    fn settle_refills(&mut self, wait: &Wait, limit: Limit, start: Nanos) {
        let end = self.at;
        self.goes_on = wait.may_refill && self.refills.len() < MOST_REFILLS;
        if self.goes_on {
            self.refills.push(Refill { limit, start, end });
        }
        if !wait.is_refill {
            return;
        }
        self.goes_on = false;
        for Refill { limit, start, end } in std::mem::take(&mut self.refills) {
            self.shares
                .give(limit, Limit::SendBuffer, end - start, (start, end));
        }
        for (spent, limit) in self.level.spent.iter_mut().zip(LEVEL_SEEN_AS) {
            *spent = (*spent).min(self.shares.of(limit));
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
        if let Some(wait) = self.refills.last_mut().filter(|_| self.goes_on)
            && wait.limit == limit
        {
            wait.end = wait.end.max(time);
        }
        self.give(time, limit);
    }

    fn give(&mut self, until: Nanos, limit: Limit) {
        if until > self.at {
            let time = until - self.at;
            self.shares.add(self.at, until, limit);
            self.note(limit, time);
            if limit == Limit::Application {
                self.quiet += (until - self.at.max(self.quiet_since)).max(0);
            }
            self.at = until;
        }
        self.last = Some(limit);
    }

    /// Records whether the sender has enough duplicate acknowledgments to begin a recovery.
    pub(crate) fn may_recover(&mut self, time: Nanos, may: bool) {
        let now = (time, self.mark());
        self.missed = may.then(|| self.missed.unwrap_or(now));
    }

    /// Corrects the account for a recovery that appears late: its first retransmission must have
    /// been lost before the capture point. Moves the time since the duplicate acknowledgments to
    /// recovery, and returns its start.
    pub(crate) fn settle_missed(&mut self, now: Nanos, patience: Nanos) -> Option<Nanos> {
        let (start, mark) = self.missed.take()?;
        (now - start > patience).then(|| {
            self.settle_since(mark, Limit::FastRecovery);
            start
        })
    }

    /// Moves `time` of a spurious recovery to reordering.
    pub(crate) fn settle_recovery(&mut self, start: Nanos, end: Option<Nanos>, time: Nanos) {
        let bounds = (start, end.unwrap_or(self.at));
        self.shares
            .give(Limit::FastRecovery, Limit::Reordering, time, bounds);
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
            let (time, ever) = (self.shares.of(limit), (Nanos::MIN, Nanos::MAX));
            self.shares.give(limit, Limit::Undecidable, time, ever);
        }
        self.peers = 0;
        for stall in self.stalls.iter_mut().filter(|one| !is_known(one.cause)) {
            (stall.cause, stall.side) = (Limit::Undecidable, None);
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
    pub(crate) fn segment(&mut self, interval: &Interval, wait: &Wait) -> Nanos {
        let (time, before, peers) = (interval.until, self.at, self.peers);
        // Segments of one burst follow each other at the link's rate.
        let limit = match (interval.follows, self.last) {
            (Follows::Yes, Some(last))
            | (Follows::IfWritten, Some(last @ (Limit::Application | Limit::SendBuffer))) => {
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
        let longest = self.longest.take().map_or(limit, |longest| longest.0);
        self.current = None;
        if let Some((since, round_trip)) = interval.since.zip(interval.round_trip)
            && time - since > round_trip + round_trip / 16
        {
            // Most of the pause may have passed before the last event.
            let is_peers = 2 * (before - since) > time - since && peers > 0;
            self.pause(interval, since, longest, is_peers);
        }
        if limit == Limit::FastRecovery {
            time - before
        } else {
            0
        }
    }

    /// Records a pause of more than a round trip.
    #[cold]
    fn pause(&mut self, interval: &Interval, since: Nanos, cause: Limit, is_peers: bool) {
        if self.stalls.len() >= MOST_STALLS {
            self.stalls_not_kept += 1;
            return;
        }
        let side = if is_peers {
            Role::Receiver
        } else {
            Role::Sender
        };
        self.stalls.push(Stall {
            start_s: seconds(since),
            duration_s: seconds(interval.until - since),
            cause,
            side: (cause == Limit::Application).then_some(side),
            packets: interval.packets.into_iter().flatten().collect(),
        });
    }
}

/// Maximum number of intervals. Beyond it, neighbours are joined under the longer one's limit.
const MOST_INTERVALS: usize = 20_000;

#[derive(Debug, Clone, Copy)]
struct Stretch {
    start: Nanos,
    end: Nanos,
    limit: Limit,
}

/// The time of each limit and, of a connection that is traced, the intervals in order of time, without
/// gaps. Later events move time from one limit to another, in both alike.
#[derive(Debug, Default)]
pub(crate) struct Intervals {
    spent: [Nanos; Limit::ALL.len()],
    kept: Option<Vec<Stretch>>,
}

impl Intervals {
    /// Keeps the intervals from now on.
    pub(crate) fn trace(&mut self) {
        self.kept = Some(Vec::new());
    }

    pub(crate) fn of(&self, limit: Limit) -> Nanos {
        self.spent[limit as usize]
    }

    pub(crate) fn all(&self) -> Nanos {
        self.spent.iter().sum()
    }

    pub(crate) fn add(&mut self, start: Nanos, end: Nanos, limit: Limit) {
        self.spent[limit as usize] += end - start;
        if let Some(kept) = &mut self.kept {
            push(kept, Stretch { start, end, limit });
            if kept.len() > MOST_INTERVALS {
                let joined = kept.chunks(2).map(|pair| Stretch {
                    start: pair[0].start,
                    end: pair[pair.len() - 1].end,
                    // The first one of the longest.
                    limit: pair
                        .iter()
                        .rev()
                        .max_by_key(|one| one.end - one.start)
                        .map_or(limit, |one| one.limit),
                });
                *kept = joined.collect();
            }
        }
    }

    /// Moves `time` from one limit to another, within these bounds.
    pub(crate) fn give(
        &mut self,
        from: Limit,
        to: Limit,
        time: Nanos,
        (start, end): (Nanos, Nanos),
    ) {
        let time = time.min(self.of(from));
        self.spent[from as usize] -= time;
        self.spent[to as usize] += time;
        let Some(kept) = &mut self.kept else {
            return;
        };
        let first = kept.partition_point(|one| one.end <= start);
        for one in kept.split_off(first) {
            if one.limit != from || one.start >= end {
                push(kept, one);
                continue;
            }
            let (start, end) = (start.max(one.start), end.min(one.end));
            push(kept, Stretch { end: start, ..one });
            push(
                kept,
                Stretch {
                    start,
                    end,
                    limit: to,
                },
            );
            push(kept, Stretch { start: end, ..one });
        }
    }

    /// The intervals in seconds.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let span = |one: &Stretch| (seconds(one.start), seconds(one.end), one.limit);
        self.kept.iter().flatten().map(span).collect()
    }
}

/// Appends an interval, or extends the last one.
fn push(kept: &mut Vec<Stretch>, next: Stretch) {
    match kept.last_mut() {
        Some(last) if last.limit == next.limit => last.end = next.end,
        _ if next.end > next.start => kept.push(next),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: [Limit; 3] = [Limit::Application, Limit::Pacing, Limit::SendBuffer];

    proptest! {
        #[test]
        fn intervals_are_the_times_of_their_moments(steps in prop::collection::vec((0_usize..3, 1_i64..9), 1..30), (start, length) in (-9_i64..200, 0_i64..99)) {
            let mut intervals = Intervals::default();
            intervals.trace();
            let mut moments = Vec::new();
            for (limit, time) in steps {
                let at = i64::try_from(moments.len()).expect("few");
                intervals.add(at, at + time, LIMITS[limit]);
                moments.extend((0..time).map(|_| LIMITS[limit]));
            }
            let (from, to) = (LIMITS[0], LIMITS[1]);
            let mut moved = 0;
            for (at, limit) in (0..).zip(&mut moments) {
                if *limit == from && (start..start + length).contains(&at) {
                    *limit = to;
                    moved += 1;
                }
            }
            intervals.give(from, to, moved, (start, start + length));
            let kept = intervals.kept.as_ref().expect("traced");
            prop_assert!(kept.windows(2).all(|pair| pair[0].end == pair[1].start && pair[0].limit != pair[1].limit));
            let found: Vec<_> = kept.iter().flat_map(|one| (one.start..one.end).map(|_| one.limit)).collect();
            prop_assert_eq!(&found, &moments);
            for limit in LIMITS {
                let time = moments.iter().filter(|one| **one == limit).count();
                prop_assert_eq!(usize::try_from(intervals.of(limit)), Ok(time));
            }
        }
    }

    #[test]
    fn many_intervals_are_joined_without_gaps() {
        let mut intervals = Intervals::default();
        intervals.trace();
        for step in 0..100_000 {
            intervals.add(step, step + 1, LIMITS[usize::from(step % 2 == 0)]);
        }
        let kept = intervals.kept.expect("traced");
        assert!(kept.len() <= MOST_INTERVALS);
        assert!(kept.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!((kept[0].start, kept[kept.len() - 1].end), (0, 100_000));
    }
}
