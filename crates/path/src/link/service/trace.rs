//! Capacity traces: the instants at which a link can deliver, as mahimahi records and replays them.
//!
//! Each line of the file is a time in whole milliseconds from the start, and an opportunity to
//! deliver 1,500 bytes. Accounting is by the byte. A packet larger than the remainder of an
//! opportunity continues in the next one. The remainder after a packet goes to packets that wait at
//! that instant. Unused capacity is lost. After its last line the trace begins again, counted from
//! the time on that line, or ends.
//!
//! # Differs from mahimahi
//! - An opportunity at the very instant of a packet's arrival serves that packet; in mahimahi this
//!   depends on when the process sees the arrival.
//! - `#` begins a comment.
//! - After the end of a trace that is not repeated (`mm-link --once`) nothing is sent and the run
//!   continues; mahimahi exits.

use std::sync::Arc;

use anabranch_core::{
    side_file::{Misread, lines},
    units::{Duration, Instant, Rate},
};

use super::{super::steps::Repeat, Service};

/// Bits of one opportunity.
const OPPORTUNITY: u64 = 1_500 * 8;
/// Picoseconds per unit of a trace's times.
const MS: u64 = 1_000_000_000;
/// Expected content of a line.
const A_TIME: &str = "a time in whole milliseconds from the start of the trace, for example 15";
/// Latest time in a trace: about 49 days.
const LATEST_MS: u64 = u32::MAX as u64;

/// Times of a trace: in order, at least one, and the last above 0.
#[derive(Debug, PartialEq, Eq)]
pub struct Trace {
    times_ms: Box<[u32]>,
    repeat: Repeat,
}

impl Trace {
    /// Reads a file's text.
    ///
    /// # Errors
    /// Names the first line that is not a time or is earlier than the line before it, or an empty
    /// trace.
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

    /// Returns the trace with another number of repetitions.
    #[must_use]
    pub fn repeated(mut self, repeat: Repeat) -> Self {
        self.repeat = repeat;
        self
    }

    /// Time until the trace begins again.
    #[must_use]
    pub fn period(&self) -> Duration {
        Duration::from_picos(u64::from(self.last_ms()) * MS)
    }

    /// Mean rate in whole bits per second, at least 1.
    ///
    /// # Panics
    /// Never: the largest trace in the shortest time is within the range of a [`Rate`].
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

    /// Time of opportunity `number`, counted through all repetitions.
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

    /// Number of opportunities before `now`, or up to and including `now` with `too`.
    fn count(&self, now: Instant, too: bool) -> u64 {
        let period = self.period().as_picos();
        let now = (now - Instant::START).as_picos();
        // A round's last opportunities coincide with the start of the next round, so the round
        // before `now` counts in full only if its end counts.
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
            // The next round also counts if it begins with opportunities at 0.
            count += self.times_ms.partition_point(|ms| *ms == 0) as u64;
        }
        match self.repeat {
            Repeat::Always => count,
            Repeat::Times(times) => count.min(u64::from(times) * self.len()),
        }
    }
}

/// Position in a trace during a run.
#[derive(Debug, Clone)]
pub struct Traced {
    trace: Arc<Trace>,
    /// Opportunity used last, and its remaining bits.
    current: Use,
    /// Position before the current transmission.
    before: Use,
}

#[derive(Debug, Clone, Copy)]
struct Use {
    number: u64,
    left: u64,
}

impl Traced {
    /// Starts at the beginning of a trace.
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
        // Past opportunities are lost; the remainder of an opportunity at this very instant is not.
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
        // An opportunity belongs to the interval that it ends; an opportunity at the start of the
        // run belongs to the first interval.
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
