//! Moving average of the rate: the number of members is chosen so that the mean rate of the last
//! intervals would load each at a set utilization.
//!
//! Source: monitoring of utilization, after C. Gunaratne et al., "Reducing the Energy Consumption
//! of Ethernet with Adaptive Link Rate (ALR)", IEEE Transactions on Computers 57(4), 2008. The
//! window and the headroom are specific to this project.

use std::collections::VecDeque;

use anabranch_core::{
    parameters::Count,
    registry::{Meta, Source},
    units::{Duration, Instant, Rate},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ControlParams, Controller, Counter, Init, Span, Utilization};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "moving-average",
    title: "Moving average",
    summary: "The mean rate of the last few intervals, with headroom, decides how many members the next one has.",
    sources: &[Source {
        id: "Gunaratne et al. 2008 (IEEE Transactions on Computers 57(4))",
        items: &["utilization monitoring"],
    }],
};

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Time between decisions.
    pub interval: Span,
    /// Number of intervals in the mean; fewer at the start of a run.
    pub window: Count<100_000>,
    /// Share of the members' capacity that the mean rate should use, 0.01 to 1.
    pub utilization: Utilization,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            interval: Span::from_micros(1_000_000),
            window: Count::new(10),
            utilization: Utilization::new(0.7),
        }
    }
}

impl ControlParams for Params {
    fn interval(&self) -> Option<Duration> {
        Some(self.interval.get())
    }
}

/// State of the controller.
#[derive(Debug)]
pub struct MovingAverage {
    counter: Counter,
    window: usize,
    /// Bytes that one member should carry in an interval.
    share: f64,
    members: u32,
    last: VecDeque<u64>,
    sum: u64,
}

/// Bytes that `rate` carries in `time`.
pub(super) fn bytes_in(rate: Rate, time: Duration) -> f64 {
    rate.bits_per_s() as f64 / 8.0 * time.as_secs_f64()
}

/// ⌈x⌉ between 1 and `members`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped before"
)]
pub(super) fn whole(x: f64, members: u32) -> u32 {
    x.ceil().clamp(1.0, f64::from(members)) as u32
}

impl MovingAverage {
    /// Creates the controller without measurements.
    #[must_use]
    pub fn new(params: &Params, init: &Init<'_>) -> Self {
        let interval = params.interval.get();
        Self {
            counter: Counter::new(interval),
            window: params.window.get() as usize,
            share: bytes_in(init.rate, interval) * params.utilization.get(),
            members: init.members,
            last: VecDeque::new(),
            sum: 0,
        }
    }
}

impl Controller for MovingAverage {
    #[inline]
    fn on_arrival(&mut self, _now: Instant, bytes: u32) {
        self.counter.bytes += u64::from(bytes);
    }
    fn next_decision(&self) -> Instant {
        self.counter.end
    }
    fn decide(&mut self, _now: Instant) -> u32 {
        let bytes = self.counter.close();
        self.last.push_back(bytes);
        self.sum += bytes;
        if self.last.len() > self.window {
            self.sum -= self.last.pop_front().unwrap_or(0);
        }
        let mean = self.sum as f64 / self.last.len() as f64;
        whole(mean / self.share, self.members)
    }
}
