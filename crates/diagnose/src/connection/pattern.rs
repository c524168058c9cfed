//! How a sender's segments follow each other: on acknowledgments, at a pace of their own, or up to a fixed amount.

use std::collections::VecDeque;

use crate::time::{MICROSECOND, MILLISECOND, Nanos};

/// How closely segments follow the acknowledgments that release them.
const TIGHT: Nanos = 70 * MICROSECOND;
/// The longest that a full segment takes on the links before the capture point: 10 Mbit/s.
const LONGEST: Nanos = 1_300 * MICROSECOND;
/// The longest on the slowest link that shows in how segments follow each other: 1 Mbit/s.
const SLOWEST: Nanos = 12 * MILLISECOND;
/// Ticks after which the rate of a clock is known.
const TICKS: u32 = 100;
/// Observations that count: a pace drifts through the acknowledgments' in about so many segments.
const WEIGHT: i32 = 128;
const ONE: i32 = 1 << 16;
/// Rounds after which an amount in flight that has stayed the same is level.
const LEVEL_ROUNDS: usize = 12;
/// So many full segments in a row are no write of an application that pauses.
const WHOLE: u32 = 256;
/// Refills of a send buffer after which it is no chance.
const REFILLS: i32 = 4;
/// A window that opens with each acknowledgment is beyond the largest initial window (RFC 6928) after so many rounds.
const OPENING_ROUNDS: u32 = 4;
const INITIAL_SEGMENTS: i64 = 10;

/// A share of observations, the recent ones weighing more.
#[derive(Debug, Clone, Copy)]
struct Habit {
    share: i32,
    seen: i32,
}

impl Habit {
    /// As if so many observations had been made that all hold.
    const fn holding(seen: i32) -> Self {
        Self { share: ONE, seen }
    }

    /// As if none had been made, and so that it does not hold.
    const fn unseen() -> Self {
        Self { share: 0, seen: 0 }
    }

    fn see(&mut self, holds: bool) {
        self.seen = (self.seen + 1).min(WEIGHT);
        let target = if holds { ONE } else { 0 };
        self.share += (target - self.share) / self.seen;
    }

    /// More than so many of 16 hold.
    const fn holds(self, sixteenths: i32) -> bool {
        self.share > ONE / 16 * sixteenths
    }
}

/// What has been seen of a sender.
#[derive(Debug)]
pub(crate) struct Pattern {
    clocked: Habit,
    /// Full segments since the last smaller one.
    whole: u32,
    /// What is sent after a long wait refills a send buffer.
    refills: Habit,
    /// The sender waits where a write ends.
    ends: Habit,
    /// Where the last write ended, and how long it was.
    end: i64,
    write: i64,
    pushed: Habit,
    /// How long after an acknowledgment the segments come that it releases.
    lag: Nanos,
    /// The least time between full segments.
    apart: Nanos,
    /// Data echoes an older timestamp than the last acknowledgment's: there is a queue before the capture point.
    stale: Habit,
    /// Segments with one timestamp come over more than a tick of the sender's clock: they were sent together.
    spread: Habit,
    stamps: Option<Stamps>,
    /// A round ends when this is acknowledged.
    round: i64,
    rounds: u32,
    /// The most in flight in this round, and ever.
    peak: i64,
    highest: i64,
    level: Level,
    has_lost: bool,
}

/// What was in flight at most in each of the last rounds.
#[derive(Debug, Default)]
struct Level {
    peaks: VecDeque<i64>,
    /// Rounds that it has stayed about the same, and the most in the first of them.
    rounds: usize,
    first: i64,
}

impl Level {
    /// Whether a round goes on with it.
    fn see(&mut self, peak: i64, mss: i64) -> bool {
        if self.peaks.len() == LEVEL_ROUNDS {
            self.peaks.pop_front();
        }
        self.peaks.push_back(peak);
        while !self.is_narrow(mss) {
            self.peaks.pop_front();
        }
        let goes_on = self.peaks.len() > 1;
        self.rounds = if goes_on { self.rounds + 1 } else { 1 };
        if self.rounds <= LEVEL_ROUNDS {
            self.first = self.high();
        }
        goes_on
    }

    fn high(&self) -> i64 {
        self.peaks.iter().copied().max().unwrap_or(0)
    }

    fn low(&self) -> i64 {
        self.peaks.iter().copied().min().unwrap_or(0)
    }

    /// A socket buffer is written into in steps of a third (Linux), which the amount in flight shows.
    fn is_narrow(&self, mss: i64) -> bool {
        self.high() - self.low() <= mss + self.high() / 5
    }

    /// Rounds with less in flight than the one before: without a loss a congestion window does not shrink.
    fn falls(&self, mss: i64) -> usize {
        let pairs = self.peaks.iter().zip(self.peaks.iter().skip(1));
        pairs
            .filter(|(before, after)| **after + mss <= **before)
            .count()
    }

    /// By how much the second half reaches above the first.
    fn rise(&self) -> i64 {
        let half = self.peaks.len() / 2;
        let first = self.peaks.iter().take(half).max();
        let second = self.peaks.iter().skip(half).max();
        second
            .zip(first)
            .map_or(0, |(second, first)| second - first)
    }

    /// Over many rounds it has grown by less than half of what a congestion window grows at least.
    fn has_stayed(&self, mss: i64) -> bool {
        let more = self.rounds.saturating_sub(LEVEL_ROUNDS);
        let growth = self.high() - self.first;
        more >= LEVEL_ROUNDS && 4 * growth < i64::try_from(more).unwrap_or(i64::MAX) * mss
    }

    /// It has gone on for long enough to be one.
    fn is_long(&self) -> bool {
        self.peaks.len() >= LEVEL_ROUNDS
    }

    fn clear(&mut self) {
        self.peaks.clear();
        self.rounds = 0;
        self.first = 0;
    }

    /// A congestion window that limits grows by half a segment in a round trip at least (RFC 9438 §4.3, RFC 5681 §3.1),
    /// so that the halves are three segments apart; only behind a loss CUBIC's may stay longer.
    fn is_reached(&self, mss: i64, has_lost: bool) -> bool {
        if has_lost {
            let is_tight = self.high() - self.low() <= mss + self.high() / 20;
            is_tight && 5 * self.falls(mss) >= LEVEL_ROUNDS && self.rise() <= self.high() / 100
        } else {
            2 * self.rise() < 3 * mss || self.has_stayed(mss)
        }
    }
}

/// A sender's timestamps: the first, and the first of those that are the same as the last; with their times.
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
        }
    }
}

impl Pattern {
    /// A segment came so long after the acknowledgment that may have released it, of which `jitter` varies.
    pub(crate) fn see_release(&mut self, lag: Nanos, jitter: Nanos) {
        let off = lag - self.lag;
        // Behind a slow link a segment waits for those before it.
        self.clocked
            .see(off.abs() <= TIGHT + jitter / 2 + self.line());
        let lag = self.lag + off / 64 + off.signum() * 2 * MICROSECOND;
        self.lag = lag.min(self.apart.saturating_add(TIGHT)).min(LONGEST);
    }

    /// A full segment left after most of what was in flight had been acknowledged; it refills a buffer, or not.
    pub(crate) fn see_refill(&mut self, holds: bool) {
        self.refills.see(holds);
    }

    /// Nearly all such segments refill a buffer.
    pub(crate) fn refills(&self) -> bool {
        self.refills.seen >= REFILLS && self.refills.holds(12)
    }

    /// A wait, before or behind which a segment ends a write, or not.
    pub(crate) fn see_end(&mut self, ends: bool) {
        self.ends.see(ends);
    }

    /// A segment that is not full ends a write there.
    pub(crate) fn see_write(&mut self, end: i64) {
        if end > self.end {
            self.write = end - self.end;
            self.end = end;
        }
    }

    /// Octets between the ends of the last two writes.
    pub(crate) fn write(&self) -> i64 {
        self.write
    }

    /// A quarter of the waits and more are where writes end. A sender with more to write waits in the middle of its data,
    /// whose segments are full; its small ones are seldom at a wait.
    pub(crate) fn ends_writes(&self) -> bool {
        self.ends.holds(4)
    }

    /// Some look so and some do not: a writer on a busy host is late, or an application writes when an acknowledgment comes.
    pub(crate) fn may_refill(&self) -> bool {
        self.refills.seen >= REFILLS && self.refills.holds(4)
    }

    /// Full segments follow each other: a link before the capture point takes that long for one.
    pub(crate) fn see_apart(&mut self, time: Nanos) {
        self.apart = self.apart.min(time);
    }

    /// Segments that follow each other within this time were sent together: a link before the capture point spreads them.
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

    /// The sender has more than it may send: the writes of an application that pauses end with smaller segments.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole >= WHOLE
    }

    pub(crate) fn see_push(&mut self, pushed: bool) {
        self.pushed.see(pushed);
    }

    pub(crate) fn see_echo(&mut self, stale: bool) {
        self.stale.see(stale);
    }

    /// A segment's timestamp, and when it passed the capture point behind a pause.
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

    /// The sender's clock has not ticked since the last segment that came behind a pause.
    pub(crate) fn is_same_tick(&self, stamp: u32) -> bool {
        self.stamps.is_some_and(|stamps| stamps.run.0 == stamp)
    }

    /// Segments pass the capture point as soon as they are sent.
    pub(crate) fn is_fresh(&self) -> bool {
        !self.stale.holds(1) && !self.spread.holds(1)
    }

    /// Most segments follow acknowledgments.
    pub(crate) fn is_clocked(&self) -> bool {
        self.clocked.holds(8)
    }

    /// Nearly every segment ends a write.
    pub(crate) fn is_pushed(&self) -> bool {
        self.pushed.holds(12)
    }

    /// A loss was found.
    pub(crate) fn lose(&mut self) {
        self.has_lost = true;
        self.level.clear();
        self.peak = 0;
    }

    /// After a segment: what is in flight, and what is acknowledged. Whether another level begins.
    pub(crate) fn see_flight(&mut self, next: i64, una: i64, mss: i64) -> bool {
        self.peak = self.peak.max(next - una);
        self.highest = self.highest.max(self.peak);
        if una < self.round {
            return false;
        }
        self.round = next;
        self.rounds += 1;
        let peak = std::mem::take(&mut self.peak);
        !self.level.see(peak, mss)
    }

    /// The amount in flight has stayed about the same, as much as there ever was.
    pub(crate) fn is_level(&self, mss: i64) -> bool {
        let is_most = || self.highest - self.level.high() <= self.highest / 20;
        self.level.is_long()
            && (!self.has_lost || is_most())
            && self.level.is_reached(mss, self.has_lost)
    }

    /// The most in flight in the rounds that are level.
    pub(crate) fn level(&self) -> i64 {
        self.level.high()
    }

    /// Acknowledgments name a gap.
    pub(crate) fn disturb(&mut self) {
        self.level.clear();
    }

    /// The most in flight.
    pub(crate) fn highest(&self) -> i64 {
        self.highest
    }

    /// No more is in flight than any congestion window holds that has not seen a loss.
    pub(crate) fn is_below_any_window(&self, mss: i64) -> bool {
        self.fits_any_window(self.highest, mss)
    }

    /// Any congestion window that has not seen a loss holds so much.
    pub(crate) fn fits_any_window(&self, flight: i64, mss: i64) -> bool {
        !self.has_lost && self.rounds > OPENING_ROUNDS && flight < INITIAL_SEGMENTS * mss
    }
}
