//! Packets that arrived on a path, and the report about them: a state that is repeated until it is
//! acknowledged or superseded.

use anabranch_core::units::Duration;

use crate::time::Instant;
use core::ops::Range;
use std::collections::VecDeque;

use crate::wire::{Arrivals, Report, WORDS};

/// A report waits this long for further arrivals.
const DELAY: Duration = Duration::from_millis(10);
/// A report with this many arrivals does not wait longer.
const AT_ONCE: u32 = 32;
/// After this many arrivals a report must not wait for the host either, or it would not show all of
/// them.
const OVERDUE: u32 = 48;
/// A report is repeated after this time, then after twice the interval each, up to [`REPEAT_MAX`].
const REPEAT: Duration = Duration::from_millis(50);
const REPEAT_MAX: Duration = Duration::from_millis(400);
/// The largest number of versions whose acknowledgment may still arrive.
const VERSIONS: usize = 64;
/// Words of 64 numbers that are remembered.
const REMEMBERED: usize = WORDS + 1;
/// Missing numbers of a word count as lost this many words later.
const SETTLED: u64 = 2;
/// A silence that ends with this number of missing numbers in a row is an outage. Shorter runs of losses
/// are chance.
const SILENCES: [(Duration, u64); 2] = [
    (Duration::from_millis(250), 8),
    (Duration::from_millis(1_000), 3),
];
/// EWMA weight of a 64-packet word: 1 − (63/64)^64.
const LOSS_STEP: f64 = 0.635;

/// A version of the report that was sent.
#[derive(Debug, Clone, Copy)]
struct Version {
    version: u16,
    /// The lowest number that arrived after the previous version.
    lowest: u64,
}

/// The numbers that arrived on one path.
#[derive(Debug, Clone, Default)]
pub struct Received {
    highest: Option<u64>,
    /// Bit `n % 64` of word `n / 64 % REMEMBERED` is number `n`.
    words: [u64; REMEMBERED],
    arrived: Instant,
    loss: f64,
    /// The numbers that an outage lost, in the words of `words`: they do not count for the loss.
    excused: [u64; REMEMBERED],
    version: u16,
    is_changed: bool,
    is_acknowledged: bool,
    since_report: u32,
    due: Option<Instant>,
    repeat: Duration,
    /// The oldest first. The lowest number whose arrival was not acknowledged is the least of
    /// theirs.
    versions: VecDeque<Version>,
    /// The time since which reports were sent and none was acknowledged.
    unanswered_since: Option<Instant>,
}

impl Received {
    /// The highest number that arrived.
    #[must_use]
    pub const fn highest(&self) -> Option<u64> {
        self.highest
    }

    /// The smoothed share of lost packets, without the losses of outages.
    #[must_use]
    pub const fn loss(&self) -> f64 {
        self.loss
    }

    /// Records the arrival of a number, and schedules a report.
    pub fn on_arrival(&mut self, number: u64, arrived: Instant, now: Instant) {
        self.note(number, arrived);
        self.is_changed = true;
        self.is_acknowledged = false;
        self.since_report += 1;
        let due = if self.since_report >= AT_ONCE {
            now
        } else {
            now + DELAY
        };
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
    }

    /// Records the arrival of a number without scheduling a report: a control message must not be
    /// answered by another.
    pub fn note(&mut self, number: u64, arrived: Instant) {
        let word = number / 64;
        match self.highest {
            Some(highest) if number <= highest => {
                if highest / 64 - word >= REMEMBERED as u64 {
                    return;
                }
            }
            highest => {
                if let Some(highest) = highest {
                    let silence = arrived.saturating_since(self.arrived);
                    let missing = number - highest - 1;
                    let is_outage = |&(least, run)| silence >= least && missing >= run;
                    let is_outage = SILENCES.iter().any(is_outage);
                    let excused = if is_outage { highest + 1..number } else { 0..0 };
                    self.advance(highest / 64, word, &excused);
                }
                (self.highest, self.arrived) = (Some(number), arrived);
            }
        }
        self.words[place(word)] |= 1 << (number % 64);
        if self.versions.is_empty() {
            self.versions.push_back(Version {
                version: self.version,
                lowest: number,
            });
        }
        if let Some(newest) = self.versions.back_mut() {
            newest.lowest = newest.lowest.min(number);
        }
    }

    /// Moves on to a new word: counts the losses of settled words, and clears the new ones.
    /// `excused` are numbers that an outage lost.
    fn advance(&mut self, from: u64, to: u64, excused: &Range<u64>) {
        self.excused[place(from)] |= bits(from, excused);
        for word in (from + 1..=to).take(REMEMBERED) {
            if let Some(settled) = word.checked_sub(SETTLED) {
                self.settle(place(settled));
            }
            self.words[place(word)] = 0;
            self.excused[place(word)] = bits(word, excused);
        }
        if to > from {
            self.excused[place(to)] = bits(to, excused);
        }
    }

    /// Counts the losses of a word.
    fn settle(&mut self, place: usize) {
        let excused = self.excused[place];
        let lost = (self.words[place] | excused).count_zeros();
        let step = match excused.count_zeros() {
            0 => return,
            64 => LOSS_STEP,
            few => LOSS_STEP * f64::from(few) / 64.0,
        };
        let share = f64::from(lost) / f64::from(excused.count_zeros());
        self.loss += (share - self.loss) * step;
    }

    /// Whether a report would soon not show all arrivals since the last one.
    #[must_use]
    pub const fn is_overdue(&self) -> bool {
        self.since_report >= OVERDUE
    }

    /// The time at which a control message should carry the report.
    #[must_use]
    pub const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Records that a control message is sent on every live path.
    pub fn on_control(&mut self, now: Instant) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        self.repeat = if self.is_changed {
            self.version = self.version.wrapping_add(1);
            self.is_changed = false;
            self.since_report = 0;
            self.add_version();
            REPEAT
        } else {
            (self.repeat * 2).min(REPEAT_MAX)
        };
        self.due = Some(now + self.repeat);
        self.unanswered_since = self.unanswered_since.or(Some(now));
    }

    /// The time since which reports were sent and none was acknowledged. If it is long ago, the paths
    /// that carry them do not deliver.
    #[must_use]
    pub const fn unanswered_since(&self) -> Option<Instant> {
        self.unanswered_since
    }

    fn add_version(&mut self) {
        if self.versions.len() >= VERSIONS
            && let Some(oldest) = self.versions.pop_front()
            && let Some(next) = self.versions.front_mut()
        {
            next.lowest = next.lowest.min(oldest.lowest);
        }
        self.versions.push_back(Version {
            version: self.version,
            lowest: u64::MAX,
        });
    }

    /// The report, unless it was acknowledged.
    #[must_use]
    pub fn report(&self, now: Instant) -> Option<Report> {
        let highest = self.highest.filter(|_| !self.is_acknowledged)?;
        let lowest = self.versions.iter().map(|version| version.lowest).min();
        let newest = highest / 64;
        let oldest = lowest.unwrap_or(highest).min(highest) / 64;
        let words = (0..WORDS as u64)
            .map_while(|back| newest.checked_sub(back))
            .take_while(|&word| word >= oldest);
        Some(Report {
            version: self.version,
            loss: in_65536ths(self.loss),
            highest,
            arrived: self.arrived.as_wrapped_micros(),
            held: micros(now.saturating_since(self.arrived)),
            arrivals: Arrivals::new(words.map(|word| self.words[place(word)])),
        })
    }

    /// Handles the acknowledgment of a version.
    pub fn on_acknowledged(&mut self, version: u16, now: Instant) {
        let known = self
            .versions
            .iter()
            .position(|sent| sent.version == version);
        if let Some(place) = known {
            // Acknowledgments are repeated.
            let is_newer = self.versions.drain(..place).count() > 0;
            self.unanswered_since = self
                .unanswered_since
                .map(|since| if is_newer { now } else { since });
        }
        if version == self.version && !self.is_changed {
            self.is_acknowledged = true;
            self.due = None;
            self.unanswered_since = None;
        }
    }
}

/// The bits of a word whose numbers are in a range.
fn bits(word: u64, numbers: &Range<u64>) -> u64 {
    let below = |number: u64| match number.saturating_sub(word * 64) {
        count @ 0..64 => (1 << count) - 1,
        _ => u64::MAX,
    };
    below(numbers.end) & !below(numbers.start)
}

/// The index of a word.
fn place(word: u64) -> usize {
    usize::try_from(word % REMEMBERED as u64).unwrap_or(0)
}

fn micros(time: Duration) -> u32 {
    // Wraps; only differences matter.
    u32::try_from((time.as_nanos() / 1_000) & u64::from(u32::MAX)).unwrap_or(0)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share is from 0 to 1"
)]
fn in_65536ths(share: f64) -> u16 {
    (share * 65_535.0) as u16
}
