//! The pattern of a sender's segments: released by acknowledgments, paced, or limited to a constant
//! amount.

use std::collections::VecDeque;

use super::path_delays::Delays;
use crate::time::{MICROSECOND, MILLISECOND, Nanos};

/// Maximum variation of the time from an acknowledgment to the segments that it releases.
const TIGHT: Nanos = 70 * MICROSECOND;
/// Time in which a host beside the capture point sends data that an acknowledgment releases.
const PROMPT: Nanos = 100 * MICROSECOND;
/// The longest transmission time of a full segment on the links before the capture point: 10
/// Mbit/s.
const LONGEST: Nanos = 1_300 * MICROSECOND;
/// The same on the slowest link that the spacing of segments reveals: 1 Mbit/s.
const SLOWEST: Nanos = 12 * MILLISECOND;
/// Ticks after which the rate of a clock is known.
const TICKS: u32 = 100;
/// Effective number of observations: paced segments drift past the acknowledgments in about this
/// many.
const WEIGHT: i32 = 128;
const ONE: i32 = 1 << 16;
/// Rounds after which an unchanged amount in flight counts as constant.
const LEVEL_ROUNDS: usize = 12;
/// This many full segments in a row are not a write of an application that pauses.
const WHOLE: u32 = 256;
/// Refills of a send buffer that exclude chance.
const REFILLS: i32 = 4;
/// Trains of a round whose spacing shows a pace.
const TRAINS: Nanos = 8;
/// Rounds with an even spacing that exclude chance.
const EVEN_ROUNDS: i32 = 8;
/// After this many rounds, a window that grows with each acknowledgment exceeds the largest initial
/// window (RFC 6928).
const OPENING_ROUNDS: u32 = 4;
const INITIAL_SEGMENTS: i64 = 10;

/// A moving average of a yes-or-no observation; recent ones weigh more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Habit {
    share: i32,
    seen: i32,
}

impl Habit {
    /// Starts as if `seen` observations had all held.
    const fn holding(seen: i32) -> Self {
        Self { share: ONE, seen }
    }

    /// Starts without observations, as not holding.
    const fn unseen() -> Self {
        Self { share: 0, seen: 0 }
    }

    pub(crate) fn see(&mut self, holds: bool) {
        self.seen = (self.seen + 1).min(WEIGHT);
        let target = if holds { ONE } else { 0 };
        self.share += (target - self.share) / self.seen;
    }

    /// Whether more than `sixteenths` of 16 observations hold.
    const fn holds(self, sixteenths: i32) -> bool {
        self.share > ONE / 16 * sixteenths
    }
}

/// Observations of a sender.
#[derive(Debug)]
pub(crate) struct Pattern {
    clocked: Habit,
    /// Full segments since the last smaller one.
    whole: u32,
    /// A full segment sent after most of the data in flight had been acknowledged refills a send
    /// buffer.
    pub(crate) refills: Habit,
    /// The segment before or after a wait ends a write.
    pub(crate) ends: Habit,
    /// The end of the last write, and its length.
    end: i64,
    pub(crate) write: i64,
    pub(crate) pushed: Habit,
    /// The time from an acknowledgment to the segments that it releases.
    lag: Nanos,
    /// Segments follow acknowledgments at once.
    prompt: Habit,
    /// The minimum time between full segments.
    apart: Nanos,
    /// Data echoes an older timestamp than the last acknowledgment's: there is a queue before the
    /// capture point.
    pub(crate) stale: Habit,
    /// Segments with one timestamp pass over more than a tick of the sender's clock: they were sent
    /// together.
    spread: Habit,
    stamps: Option<Stamps>,
    /// The current round ends when this octet is acknowledged.
    round: i64,
    rounds: u32,
    /// The largest amount in flight in this round, and ever.
    peak: i64,
    pub(crate) highest: i64,
    level: Level,
    has_lost: bool,
    /// The times between trains of this round, and whether they are even in most rounds.
    pub(crate) spacing: Spacing,
    even: Habit,
}

/// The times between the trains of segments of a round.
#[derive(Debug, Default)]
pub(crate) struct Spacing {
    count: Nanos,
    sum: Nanos,
    widest: Nanos,
}

impl Spacing {
    /// Records the time between two trains of segments.
    pub(crate) fn see(&mut self, time: Nanos) {
        self.count += 1;
        self.sum += time;
        self.widest = self.widest.max(time);
    }

    /// Whether the trains are spread over the round; `None` if they are few. A sender that only
    /// acknowledgments release keeps the trains of its first rounds and pauses between them, unless
    /// it fills the path.
    fn is_even(&self) -> Option<bool> {
        (self.count >= TRAINS).then(|| self.widest * self.count <= 2 * self.sum)
    }
}

/// The largest amounts in flight in the last rounds.
#[derive(Debug, Default)]
struct Level {
    peaks: VecDeque<i64>,
    /// Rounds for which the amount has been about constant, and the largest one in the first of
    /// them.
    rounds: usize,
    first: i64,
    /// The largest of the amounts.
    high: i64,
}

impl Level {
    /// Records a round. Returns whether it continues the level.
    fn see(&mut self, peak: i64, mss: i64) -> bool {
        if self.peaks.len() == LEVEL_ROUNDS {
            self.peaks.pop_front();
        }
        self.peaks.push_back(peak);
        self.high = self.most();
        while !self.is_narrow(mss) {
            self.peaks.pop_front();
            self.high = self.most();
        }
        let goes_on = self.peaks.len() > 1;
        self.rounds = if goes_on { self.rounds + 1 } else { 1 };
        if self.rounds <= LEVEL_ROUNDS {
            self.first = self.high;
        }
        goes_on
    }

    fn most(&self) -> i64 {
        self.peaks.iter().copied().max().unwrap_or(0)
    }

    fn low(&self) -> i64 {
        self.peaks.iter().copied().min().unwrap_or(0)
    }

    /// Whether the amounts are close. A writer fills a socket buffer in steps of a third (Linux),
    /// which the amount in flight follows.
    fn is_narrow(&self, mss: i64) -> bool {
        self.high - self.low() <= mss + self.high / 5
    }

    /// Rounds with less in flight than the previous one: without a loss, a congestion window does
    /// not shrink.
    fn falls(&self, mss: i64) -> usize {
        let pairs = self.peaks.iter().zip(self.peaks.iter().skip(1));
        pairs
            .filter(|(before, after)| **after + mss <= **before)
            .count()
    }

    /// The excess of the second half over the first.
    fn rise(&self) -> i64 {
        let half = self.peaks.len() / 2;
        let first = self.peaks.iter().take(half).max();
        let second = self.peaks.iter().skip(half).max();
        second
            .zip(first)
            .map_or(0, |(second, first)| second - first)
    }

    /// Whether the amount has grown, over many rounds, by less than half of a congestion window's
    /// minimum growth.
    fn has_stayed(&self, mss: i64) -> bool {
        let more = self.rounds.saturating_sub(LEVEL_ROUNDS);
        let growth = self.high - self.first;
        more >= LEVEL_ROUNDS && 4 * growth < i64::try_from(more).unwrap_or(i64::MAX) * mss
    }

    /// Whether it has lasted long enough.
    fn is_long(&self) -> bool {
        self.peaks.len() >= LEVEL_ROUNDS
    }

    fn clear(&mut self) {
        self.peaks.clear();
        (self.rounds, self.first, self.high) = (0, 0, 0);
    }

    /// Whether the amount is constant. A limiting congestion window grows by at least half a
    /// segment per round trip (RFC 9438 §4.3, RFC 5681 §3.1), so that the halves differ by three
    /// segments; only after a loss may CUBIC's stay constant for longer.
    fn is_reached(&self, mss: i64, has_lost: bool) -> bool {
        if has_lost {
            let is_tight = self.high - self.low() <= mss + self.high / 20;
            is_tight && 5 * self.falls(mss) >= LEVEL_ROUNDS && self.rise() <= self.high / 100
        } else {
            2 * self.rise() < 3 * mss || self.has_stayed(mss)
        }
    }
}

/// A sender's timestamps with their times: the first one, and the first of the run equal to the
/// last.
#[derive(Debug, Clone, Copy)]
struct Stamps {
    first: (u32, Nanos),
    run: (u32, Nanos),
}

impl Default for Pattern {
    fn default() -> Self {
        Self {
            clocked: Habit::holding(16),
            whole: WHOLE,
            refills: Habit::holding(0),
            ends: Habit::unseen(),
            end: 0,
            write: i64::MAX,
            pushed: Habit::holding(0),
            lag: 0,
            prompt: Habit::unseen(),
            apart: Nanos::MAX,
            stale: Habit::holding(4),
            spread: Habit::holding(4),
            stamps: None,
            round: i64::MIN,
            rounds: 0,
            peak: 0,
            highest: 0,
            level: Level::default(),
            has_lost: false,
            spacing: Spacing::default(),
            even: Habit::unseen(),
        }
    }
}

impl Pattern {
    /// Records a segment that an acknowledgment may have released, `lag` after it reached the sender.
    pub(crate) fn see_release(&mut self, lag: Nanos, delays: Delays) {
        let (back, jitter) = (delays.back(), delays.jitter);
        let off = lag - self.lag;
        // After a slow link, a segment waits for the segments before it.
        self.clocked
            .see(off.abs() <= TIGHT + jitter / 2 + self.line());
        self.prompt.see(lag + back <= PROMPT + self.line());
        let lag = self.lag + off / 64 + off.signum() * 2 * MICROSECOND;
        self.lag = lag.min(self.apart.saturating_add(TIGHT)).min(LONGEST);
    }

    /// Whether nearly all such segments refill a buffer.
    pub(crate) fn refills(&self) -> bool {
        self.refills.seen >= REFILLS && self.refills.holds(12)
    }

    /// Records a segment that is not full, which ends a write at `end`.
    pub(crate) fn see_write(&mut self, end: i64) {
        if end > self.end {
            self.write = end - self.end;
            self.end = end;
        }
    }

    /// Whether at least a quarter of the waits are where writes end. A sender with more to write
    /// waits in the middle of its data, whose segments are full; its small segments are rarely at a
    /// wait.
    pub(crate) fn ends_writes(&self) -> bool {
        self.ends.holds(4)
    }

    /// Whether some waits look like refills and others do not: a writer on a busy host is late, or
    /// an application writes when an acknowledgment comes.
    pub(crate) fn may_refill(&self) -> bool {
        self.refills.seen >= REFILLS && self.refills.holds(4)
    }

    /// Records the time between full segments: the transmission time of a link before the capture
    /// point.
    pub(crate) fn see_apart(&mut self, time: Nanos) {
        self.apart = self.apart.min(time);
    }

    /// The largest spacing of segments that were sent together and spread by a link before the
    /// capture point.
    pub(crate) fn line(&self) -> Nanos {
        if self.apart <= SLOWEST {
            self.apart + self.apart / 8
        } else {
            0
        }
    }

    pub(crate) fn see_size(&mut self, is_full: bool) {
        self.whole = if is_full {
            self.whole.saturating_add(1)
        } else {
            0
        };
    }

    /// Whether the sender has more data than it may send: writes of an application that pauses end
    /// with smaller segments.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole >= WHOLE
    }

    /// Records the timestamp of a segment after a pause, and when it passed the capture point.
    pub(crate) fn see_stamp(&mut self, stamp: u32, time: Nanos) {
        let stamps = self.stamps.get_or_insert(Stamps {
            first: (stamp, time),
            run: (stamp, time),
        });
        if stamps.run.0 != stamp {
            stamps.run = (stamp, time);
        }
        let ticks = stamp.wrapping_sub(stamps.first.0);
        if (TICKS..1 << 31).contains(&ticks) {
            let tick = (time - stamps.first.1) / i64::from(ticks);
            self.spread.see(time - stamps.run.1 > tick + tick / 2);
        }
    }

    /// Whether the sender's clock has not ticked since the last segment that followed a pause.
    pub(crate) fn is_same_tick(&self, stamp: u32) -> bool {
        self.stamps.is_some_and(|stamps| stamps.run.0 == stamp)
    }

    /// Whether segments pass the capture point as soon as they are sent.
    pub(crate) fn is_fresh(&self) -> bool {
        !self.stale.holds(1) && !self.spread.holds(1)
    }

    /// Whether most segments follow acknowledgments.
    pub(crate) fn is_clocked(&self) -> bool {
        self.clocked.holds(8)
    }

    /// Whether the sender spreads its segments over each round trip, and no acknowledgment releases
    /// them.
    pub(crate) fn is_even(&self) -> bool {
        self.even.seen >= EVEN_ROUNDS && self.even.holds(12) && !self.prompt.holds(8)
    }

    /// Whether nearly every segment ends a write.
    pub(crate) fn is_pushed(&self) -> bool {
        self.pushed.holds(12)
    }

    /// Records a loss.
    pub(crate) fn lose(&mut self) {
        self.has_lost = true;
        self.level.clear();
        self.peak = 0;
    }

    /// Records the amount in flight after a segment. Returns whether another level begins.
    pub(crate) fn see_flight(&mut self, next: i64, una: i64, mss: i64) -> bool {
        self.peak = self.peak.max(next - una);
        self.highest = self.highest.max(self.peak);
        if una < self.round {
            return false;
        }
        self.round = next;
        self.rounds += 1;
        if let Some(is_even) = std::mem::take(&mut self.spacing).is_even() {
            self.even.see(is_even);
        }
        let peak = std::mem::take(&mut self.peak);
        !self.level.see(peak, mss)
    }

    /// Whether the amount in flight is constant and, after a loss, near the largest ever.
    pub(crate) fn is_level(&self, mss: i64) -> bool {
        let is_most = || self.highest - self.level.high <= self.highest / 20;
        self.level.is_long()
            && (!self.has_lost || is_most())
            && self.level.is_reached(mss, self.has_lost)
    }

    /// The largest amount in flight in the rounds of the level.
    pub(crate) fn level(&self) -> i64 {
        self.level.high
    }

    /// Records that acknowledgments report a gap.
    pub(crate) fn disturb(&mut self) {
        self.level.clear();
    }

    /// Whether less is in flight than any congestion window without a loss permits.
    pub(crate) fn is_below_any_window(&self, mss: i64) -> bool {
        self.fits_any_window(self.highest, mss)
    }

    /// Whether any congestion window without a loss permits this amount.
    pub(crate) fn fits_any_window(&self, flight: i64, mss: i64) -> bool {
        !self.has_lost && self.rounds > OPENING_ROUNDS && flight < INITIAL_SEGMENTS * mss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_spacing_has_no_long_gap() {
        for (gaps, expected) in [
            (vec![2; 20], Some(true)),
            ([vec![1; 19], vec![21]].concat(), Some(false)),
            (vec![2; 5], None),
        ] {
            let mut spacing = Spacing::default();
            for gap in gaps {
                spacing.see(gap * MILLISECOND);
            }
            assert_eq!(spacing.is_even(), expected);
        }
    }
}
