//! How long packets travel once they are sent: always alike, or as a table of time and delay says.
//!
//! A packet's delay is fixed when its transmission ends: a change of delay does not touch those under way. Where the
//! delay falls, a packet could come in before an earlier one. By default it waits for that one, as on a path whose
//! hops are queues; a link that says so lets it overtake ([`Parts::overtake`](super::served::Parts::overtake)).

use std::sync::Arc;

use anabranch_core::{
    side_file::Misread,
    units::{Duration, Instant},
};

use super::steps::{Column, Repeat, Steps, Table};

/// The delays of a table.
#[derive(Debug, PartialEq, Eq)]
pub struct Delays {
    steps: Steps,
    delays: Box<[Duration]>,
}

impl Delays {
    /// With one delay for each step.
    pub(super) fn new(steps: Steps, delays: Box<[Duration]>) -> Self {
        Self { steps, delays }
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// With the first field that does not fit.
    pub fn parse(text: &str, repeat: Repeat) -> Result<Self, Misread> {
        let table = Table::parse(text, repeat, Column::Delay)?;
        Ok(Self::new(table.steps, table.delays.unwrap_or_default()))
    }

    /// The least of all.
    #[must_use]
    pub fn least(&self) -> Duration {
        self.delays.iter().copied().min().unwrap_or(Duration::ZERO)
    }

    /// The mean over a round, weighted by time, to the picosecond.
    #[must_use]
    pub fn mean(&self) -> Duration {
        let sum: u128 = (0..self.steps.len())
            .map(|step| {
                let length = self.steps.length(step);
                u128::from(self.delays[step].as_picos()) * u128::from(length.as_picos())
            })
            .sum();
        let mean = sum / u128::from(self.steps.round().as_picos());
        Duration::from_picos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The delay of a packet that leaves at `now`, and until when others have the same.
    fn at(&self, now: Instant) -> (Duration, Instant) {
        let place = self.steps.at(now);
        (self.delays[place.step], now.saturating_add(place.left))
    }
}

/// A link's delay at work.
#[derive(Debug, Clone)]
pub enum Propagation {
    /// Always the same.
    Fixed(Duration),
    /// As a table says.
    Traced(Traced),
}

/// A table at work.
#[derive(Debug, Clone)]
pub struct Traced {
    table: Arc<Delays>,
    /// The delay of packets that leave from `since` until `until`.
    current: Duration,
    since: Instant,
    until: Instant,
}

impl Traced {
    #[cold]
    fn look_up(&mut self, now: Instant) {
        (self.current, self.until) = self.table.at(now);
        self.since = now;
    }
}

impl Propagation {
    /// As this table says, from the start of the run on.
    #[must_use]
    pub fn traced(table: Arc<Delays>) -> Self {
        let (current, until) = table.at(Instant::START);
        Self::Traced(Traced {
            table,
            current,
            since: Instant::START,
            until,
        })
    }

    /// The delay of a packet that leaves at `now`.
    #[inline]
    pub fn at(&mut self, now: Instant) -> Duration {
        match self {
            Self::Fixed(delay) => *delay,
            Self::Traced(traced) => {
                if now >= traced.until || now < traced.since {
                    traced.look_up(now);
                }
                traced.current
            }
        }
    }

    /// The delay at the last question.
    #[must_use]
    pub fn latest(&self) -> Duration {
        match self {
            Self::Fixed(delay) => *delay,
            Self::Traced(traced) => traced.current,
        }
    }
}

impl From<Duration> for Propagation {
    fn from(delay: Duration) -> Self {
        Self::Fixed(delay)
    }
}
