//! An exponentially weighted mean of the rate, and two thresholds.
//!
//! The mean r moves by `weight` of the way to what the last interval measured. Above `high` times the
//! capacity of the members that are on, as many are taken in as bring it down to that; below `low` times
//! the capacity of one member less, one is taken out. Between the two nothing changes, so a rate at an edge
//! does not switch members to and fro.
//!
//! Sources: S. Nedevschi et al., "Reducing Network Energy Consumption via Sleeping and Rate-Adaptation",
//! NSDI 2008 (rate adaptation by what has arrived); C. Gunaratne et al., "Reducing the Energy Consumption
//! of Ethernet with Adaptive Link Rate (ALR)", IEEE Transactions on Computers 57(4), 2008 (two thresholds;
//! theirs are of the queue's length). The rule that takes members in and out is ours.

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
    summary: "An exponentially weighted mean of the rate takes members in above one threshold, and one at a time out below \
              another.",
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
    /// From one decision to the next.
    pub interval: Span,
    /// The weight of the last interval in the mean, 0.001 to 1.
    pub weight: Weight,
    /// The share of the capacity above which members are taken in, 0.01 to 1.
    pub high: Utilization,
    /// The share of what would be left below which one is taken out, below `high`.
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

/// The controller at work.
#[derive(Debug)]
pub struct EwmaHysteresis {
    counter: Counter,
    weight: f64,
    /// What one member may carry in an interval before others are taken in, in bytes.
    high: f64,
    /// The same, before one is taken out.
    low: f64,
    members: u32,
    on: u32,
    /// `None` before the first interval has ended.
    mean: Option<f64>,
}

impl EwmaHysteresis {
    /// With nothing counted.
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
