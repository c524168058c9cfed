//! Exponentially weighted mean of the rate, and two thresholds.
//!
//! The mean r moves by `weight` towards the rate of the last interval. Above `high` times the
//! capacity of the members that are on, members are added until it is at or below that threshold.
//! Below `low` times the capacity of one member less, one member is removed. Between the thresholds
//! nothing changes, so a rate near a threshold does not switch members repeatedly.
//!
//! Sources: S. Nedevschi et al., "Reducing Network Energy Consumption via Sleeping and
//! Rate-Adaptation", NSDI 2008 (rate adaptation by measured arrivals); C. Gunaratne et al.,
//! "Reducing the Energy Consumption of Ethernet with Adaptive Link Rate (ALR)", IEEE Transactions
//! on Computers 57(4), 2008 (two thresholds, there of the queue length). The rule that adds and
//! removes members is specific to this project.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Duration, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Contradiction, ControlParams, Controller, Counter, Init, Span, Utilization, Weight,
    moving_average::{bytes_in, whole},
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "ewma-hysteresis",
    title: "EWMA with hysteresis",
    summary: "An exponentially weighted mean of the rate adds members above one threshold, and removes them one at a \
              time below another.",
    sources: &[
        Source {
            id: "Nedevschi et al. 2008 (NSDI)",
            items: &["rate adaptation"],
        },
        Source {
            id: "Gunaratne et al. 2008 (IEEE Transactions on Computers 57(4))",
            items: &["two thresholds"],
        },
    ],
};

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Time between decisions.
    pub interval: Span,
    /// Weight of the last interval in the mean, 0.001 to 1.
    pub weight: Weight,
    /// Share of the capacity above which members are added, 0.01 to 1.
    pub high: Utilization,
    /// Share of the capacity without one member below which one is removed, below `high`.
    pub low: Utilization,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            interval: Span::from_micros(100_000),
            weight: Weight::new(0.3),
            high: Utilization::new(0.8),
            low: Utilization::new(0.6),
        }
    }
}

impl ControlParams for Params {
    fn interval(&self) -> Option<Duration> {
        Some(self.interval.get())
    }
    fn check(&self) -> Result<(), Contradiction> {
        if self.low < self.high {
            return Ok(());
        }
        Err(Contradiction {
            key: &["low"],
            message: format!(
                "`low` is {}, not below `high`, {}",
                self.low.get(),
                self.high.get()
            ),
            expected: "a lower threshold for taking members out than for taking them in".to_owned(),
        })
    }
}

/// State of the controller.
#[derive(Debug)]
pub struct EwmaHysteresis {
    counter: Counter,
    weight: f64,
    /// Bytes that one member may carry in an interval before members are added.
    high: f64,
    /// Bytes per member in an interval below which one is removed.
    low: f64,
    members: u32,
    on: u32,
    /// `None` before the first interval has ended.
    mean: Option<f64>,
}

impl EwmaHysteresis {
    /// Creates the controller without measurements.
    #[must_use]
    pub fn new(params: &Params, init: &Init<'_>) -> Self {
        let interval = params.interval.get();
        let one = bytes_in(init.rate, interval);
        Self {
            counter: Counter::new(interval),
            weight: params.weight.get(),
            high: one * params.high.get(),
            low: one * params.low.get(),
            members: init.members,
            on: init.members,
            mean: None,
        }
    }
}

impl Controller for EwmaHysteresis {
    #[inline]
    fn on_arrival(&mut self, _now: Instant, bytes: u32) {
        self.counter.bytes += u64::from(bytes);
    }
    fn next_decision(&self) -> Instant {
        self.counter.end
    }
    fn decide(&mut self, _now: Instant) -> u32 {
        let last = self.counter.close() as f64;
        let mean = self
            .mean
            .map_or(last, |mean| mean + self.weight * (last - mean));
        self.mean = Some(mean);
        if mean > self.high * f64::from(self.on) {
            self.on = whole(mean / self.high, self.members);
        } else if self.on > 1 && mean < self.low * f64::from(self.on - 1) {
            self.on -= 1;
        }
        self.on
    }
}
