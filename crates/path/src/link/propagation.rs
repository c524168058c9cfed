//! Propagation delays: constant, or from a table over time.
//!
//! A packet's delay is fixed when its transmission ends; a later change of delay does not affect
//! it. If the delay falls, a packet could arrive before an earlier one. By default it waits for the
//! earlier packet, as on a path whose hops are queues; with
//! [`Properties::overtake`](super::served::Properties::overtake) it overtakes.

use std::sync::Arc;

use anabranch_core::{
    side_file::Misread,
    units::{Duration, Instant},
};

use super::steps::{Column, Repeat, Steps, Table};

/// Delays of a table.
#[derive(Debug, PartialEq, Eq)]
pub struct Delays {
    steps: Steps,
    delays: Box<[Duration]>,
}

impl Delays {
    /// Creates a table with one delay for each step.
    pub(super) fn new(steps: Steps, delays: Box<[Duration]>) -> Self {
        Self { steps, delays }
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// Names the first invalid field.
    pub fn parse(text: &str, repeat: Repeat) -> Result<Self, Misread> {
        let table = Table::parse(text, repeat, Column::Delay)?;
        Ok(Self::new(table.steps, table.delays.unwrap_or_default()))
    }

    /// Minimum of all delays.
    #[must_use]
    pub fn least(&self) -> Duration {
        self.delays.iter().copied().min().unwrap_or(Duration::ZERO)
    }

    /// Mean over a round, weighted by time, to the picosecond.
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

    /// Delay of a packet that leaves at `now`, and the time until which this delay holds.
    fn at(&self, now: Instant) -> (Duration, Instant) {
        let place = self.steps.at(now);
        (self.delays[place.step], now.saturating_add(place.left))
    }
}

/// Propagation delay of a link.
#[derive(Debug, Clone)]
pub enum Propagation {
    /// Constant.
    Fixed(Duration),
    /// From a table.
    Traced(Traced),
}

/// Current position in a table.
#[derive(Debug, Clone)]
pub struct Traced {
    table: Arc<Delays>,
    /// Delay of packets that leave from `since` until `until`.
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
    /// Creates a delay that follows `table` from the start of the run.
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

    /// Delay of a packet that leaves at `now`.
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

    /// Delay at the latest call of [`Propagation::at`].
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
