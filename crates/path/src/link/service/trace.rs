//! A capacity trace: the instants at which a link can deliver, as mahimahi records and replays them.
//!
//! Each line of the file is a time in whole milliseconds from the start, and an opportunity to deliver 1,500
//! bytes. Accounting is by the byte: a packet that is larger than what is left of an opportunity takes the rest from
//! the next, and what is left of it behind a packet goes to those that wait at that instant. What nobody waits for is
//! wasted. Behind its last line the trace begins again, counted from the time on that line, or ends.
//!
//! # Differs from mahimahi
//! - An opportunity at the very instant of a packet's arrival is the packet's; mahimahi sees arrivals as its process
//!   gets to them.
//! - `#` begins a comment.
//! - Behind the end of a trace that is not repeated (`mm-link --once`) nothing is sent and the run goes on; mahimahi ends.

use std::sync::Arc;

use anabranch_core::{
    side_file::{Misread, lines},
    units::{Duration, Instant, Rate},
};

use super::{super::steps::Repeat, Service};

/// Bits of one opportunity.
const OPPORTUNITY: u64 = 1_500 * 8;
/// The unit of a trace's times.
const MS: u64 = 1_000_000_000;
/// What a line should have been.
const A_TIME: &str = "a time in whole milliseconds from the start of the trace, for example 15";
/// The latest time that a trace can give: about 49 days.
const LATEST_MS: u64 = u32::MAX as u64;

/// The times of a trace: in order, at least one, and the last above 0.
#[derive(Debug, PartialEq, Eq)]
pub struct Trace {
    times_ms: Box<[u32]>,
    repeat: Repeat,
}

impl Trace {
    /// Reads a file's text.
    ///
    /// # Errors
    /// With the first line that is no time, that is earlier than the one before it, or with the lack of any.
    pub fn parse(text: &str) -> Result<Self, Misread> {
        let mut times: Vec<u32> = Vec::new();
        let mut last = 0..0;
        for (at, word) in lines(text) {
            let time = word
                .bytes()
                .all(|byte| byte.is_ascii_digit())
                .then(|| word.parse::<u32>());
            let time = match time {
                Some(Ok(time)) => time,
                Some(Err(_)) => {
                    let message = format!("{word} ms is too late for a trace");
                    return Err(Misread::new(at, message, format!("{LATEST_MS} at most")));
                }
                None => return Err(Misread::new(at, format!("{word:?} is no time"), A_TIME)),
            };
            if let Some(before) = times.last().filter(|before| **before > time) {
                let message = format!("the trace goes back in time: {time} ms after {before} ms");
                return Err(Misread::new(at, message, format!("{before} or more")));
            }
            times.push(time);
            last = at;
        }
        match times.last() {
            None => Err(Misread::new(
                text.len()..text.len(),
                "the trace has no opportunity to send",
                A_TIME,
            )),
            Some(0) => Err(Misread::new(
                last,
                "the trace takes no time: all of it is at 0 ms",
                "a last line above 0, at which it begins again",
            )),
            Some(_) => Ok(Self {
                times_ms: times.into(),
                repeat: Repeat::Always,
            }),
        }
    }

    /// The same, played so often.
    #[must_use]
    pub fn repeated(mut self, repeat: Repeat) -> Self {
        self.repeat = repeat;
        self
    }

    /// How long it takes until it begins again.
    #[must_use]
    pub fn period(&self) -> Duration {
        Duration::from_picos(u64::from(self.last_ms()) * MS)
    }

    /// What it delivers per time in the long run, in whole bits per second and one at least.
    ///
    /// # Panics
    /// Never: the largest trace in the least time is below what a [`Rate`] holds.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        let bits = u128::from(self.len()) * u128::from(OPPORTUNITY) * 1_000;
        let rate = bits / u128::from(self.last_ms());
        let rate = u64::try_from(rate.max(1)).unwrap_or(u64::MAX);
        Rate::new(rate).expect("it is one at least")
    }

    fn len(&self) -> u64 {
        self.times_ms.len() as u64
    }

    fn last_ms(&self) -> u32 {
        *self.times_ms.last().expect("a trace is not empty")
    }

    /// When opportunity `number` comes, counted on through all repetitions.
    fn time(&self, number: u64) -> Instant {
        let (round, place) = (number / self.len(), number % self.len());
        if !self.repeat.plays(round) {
            return Instant::NEVER;
        }
        let place = usize::try_from(place).expect("it is below a length");
        let ms = u128::from(round) * u128::from(self.last_ms()) + u128::from(self.times_ms[place]);
        let ps = u64::try_from(ms * u128::from(MS)).unwrap_or(u64::MAX);
        Instant::START.saturating_add(Duration::from_picos(ps))
    }

    /// How many opportunities come before `now`, or with `too` up to it.
    fn count(&self, now: Instant, too: bool) -> u64 {
        let period = self.period().as_picos();
        let now = (now - Instant::START).as_picos();
        // A round's last opportunities come with the start of the next, so the round before `now`'s counts in full
        // only when its end does.
        let (mut round, mut rest) = (now / period, now % period);
        if rest == 0 && round > 0 {
            (round, rest) = (round - 1, period);
        }
        let before = self.times_ms.partition_point(|ms| {
            let time = u64::from(*ms) * MS;
            if too { time <= rest } else { time < rest }
        });
        let mut count = round * self.len() + before as u64;
        if too && rest == period {
            // The next round's, too, if it begins with one at 0.
            count += self.times_ms.partition_point(|ms| *ms == 0) as u64;
        }
        match self.repeat {
            Repeat::Always => count,
            Repeat::Times(times) => count.min(u64::from(times) * self.len()),
        }
    }
}

/// A trace at work.
#[derive(Debug, Clone)]
pub struct Traced {
    trace: Arc<Trace>,
    /// The opportunity used last, and the bits that are left of it.
    current: Use,
    /// The same before the transmission under way.
    before: Use,
}

#[derive(Debug, Clone, Copy)]
struct Use {
    number: u64,
    left: u64,
}

impl Traced {
    /// At the start of a run.
    #[must_use]
    pub fn new(trace: Arc<Trace>) -> Self {
        let start = Use {
            number: 0,
            left: OPPORTUNITY,
        };
        Self {
            trace,
            current: start,
            before: start,
        }
    }
}

impl Service for Traced {
    fn finish(&mut self, now: Instant, bits: u64) -> Instant {
        // What has gone by is wasted; what is left of an opportunity of this very instant is not.
        let next = self.trace.count(now, false);
        if next > self.current.number {
            self.current = Use {
                number: next,
                left: OPPORTUNITY,
            };
        }
        self.before = self.current;
        let Use { number, left } = self.current;
        let more = bits.saturating_sub(left);
        let further = more.div_ceil(OPPORTUNITY);
        self.current = Use {
            number: number + further,
            left: left + further * OPPORTUNITY - bits,
        };
        self.trace.time(self.current.number)
    }

    fn capacity(&self, from: Instant, to: Instant) -> f64 {
        // An opportunity belongs to the span that it ends; one at the start of the run to the first.
        let before = self.trace.count(from, from > Instant::START);
        let count = self.trace.count(to, true).saturating_sub(before);
        (count * OPPORTUNITY) as f64
    }

    fn interrupt(&mut self, _since: Instant, now: Instant) -> u64 {
        let passed = self.trace.count(now, true);
        let Use { number, left } = self.before;
        let sent = match passed.checked_sub(number + 1) {
            Some(further) => left + further * OPPORTUNITY,
            None => 0,
        };
        self.current = Use {
            number: passed.max(number),
            left: if passed > number { OPPORTUNITY } else { left },
        };
        sent
    }
}
