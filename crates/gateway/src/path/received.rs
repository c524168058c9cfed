//! What arrived on a path, and the report of it: state, repeated until it is acknowledged or superseded.

use anabranch_core::units::{Duration, Instant};

use crate::wire::Report;

/// A report waits this long for more to report.
const DELAY: Duration = Duration::from_millis(10);
/// Arrivals that do not wait any longer: half of what a report shows.
const AT_ONCE: u32 = 32;
/// Arrivals after which a report must not wait for the host either, or it would not show all of them.
const OVERDUE: u32 = 48;
/// A report is repeated after this time, then after twice as long, up to [`REPEAT_MAX`].
const REPEAT: Duration = Duration::from_millis(50);
const REPEAT_MAX: Duration = Duration::from_millis(400);

/// What arrived.
#[derive(Debug, Clone, Default)]
pub struct Received {
    highest: Option<u64>,
    before: u64,
    arrived: Instant,
    loss: f64,
    version: u16,
    is_changed: bool,
    is_acknowledged: bool,
    since_report: u32,
    due: Option<Instant>,
    repeat: Duration,
}

impl Received {
    /// The highest number that arrived.
    #[must_use]
    pub const fn highest(&self) -> Option<u64> {
        self.highest
    }

    /// The share of lost packets, smoothed.
    #[must_use]
    pub const fn loss(&self) -> f64 {
        self.loss
    }

    /// A number arrived that is to be reported.
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

    /// A number arrived. By itself it causes no report: a control message must not be answered by another.
    pub fn note(&mut self, number: u64, arrived: Instant) {
        match self.highest {
            Some(highest) if number <= highest => {
                if let Some(behind @ 1..=64) = highest.checked_sub(number) {
                    self.before |= 1 << (behind - 1);
                }
            }
            Some(highest) => {
                let step = number - highest;
                self.leave(step);
                // The old highest moves into the field.
                let shifted = u32::try_from(step)
                    .ok()
                    .and_then(|step| self.before.checked_shl(step));
                self.before = shifted.unwrap_or(0);
                if step <= 64 {
                    self.before |= 1 << (step - 1);
                }
                (self.highest, self.arrived) = (Some(number), arrived);
            }
            None => {
                // Nothing before the first number is asked for.
                (self.highest, self.arrived, self.before) = (Some(number), arrived, u64::MAX);
            }
        }
    }

    /// Counts a number that drops out of the field as lost.
    fn leave(&mut self, step: u64) {
        for place in 0..step.min(64) {
            let is_lost = self.before >> (63 - place) & 1 == 0;
            self.loss += (f64::from(u8::from(is_lost)) - self.loss) / 64.0;
        }
    }

    /// Whether a report would soon not show all that arrived since the last one.
    #[must_use]
    pub const fn is_overdue(&self) -> bool {
        self.since_report >= OVERDUE
    }

    /// When a control message should carry the report.
    #[must_use]
    pub const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// A control message is being sent on every live path.
    pub fn on_control(&mut self, now: Instant) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        self.repeat = if self.is_changed {
            self.version = self.version.wrapping_add(1);
            self.is_changed = false;
            self.since_report = 0;
            REPEAT
        } else {
            (self.repeat * 2).min(REPEAT_MAX)
        };
        self.due = Some(now + self.repeat);
    }

    /// The report, unless it was acknowledged.
    #[must_use]
    pub fn report(&self, now: Instant) -> Option<Report> {
        let highest = self.highest.filter(|_| !self.is_acknowledged)?;
        Some(Report {
            version: self.version,
            loss: in_65536ths(self.loss),
            highest,
            arrived: micros(self.arrived.saturating_since(Instant::START)),
            held: micros(now.saturating_since(self.arrived)),
            received: self.before,
        })
    }

    /// The other end acknowledged a version.
    pub fn on_acknowledged(&mut self, version: u16) {
        if version == self.version && !self.is_changed {
            self.is_acknowledged = true;
            self.due = None;
        }
    }
}

fn micros(time: Duration) -> u32 {
    // Wraps: only differences count.
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
