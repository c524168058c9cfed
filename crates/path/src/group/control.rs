//! Controllers: how many members of a group should be on.
//!
//! A controller stands at the first end of a group. It sees bytes as they arrive before the queue in
//! the forward direction, and the time; it never sees the queue, the network or the traffic to come
//! (except [`oracle`]). Spans are counted from the start of the run: span k is from k times its length,
//! that instant included, to k + 1 times, that excluded.
//!
//! Adding one is a file in `control/` and a line in the registry below; one from outside the workspace
//! implements [`Controller`] and travels as [`AnyController::Boxed`].

use std::{fmt, sync::Arc};

use anabranch_core::{
    component, components,
    units::{Duration, Instant, Rate},
};

use super::members::LowPowerIdle;
pub use anabranch_core::parameters::Contradiction;

pub mod params;

use params::check_spans;
pub use params::{Percentile, Share, Span, Transition, Utilization, Weight};

/// A controller.
pub trait Controller: fmt::Debug + Send {
    /// Bytes arrive before the queue. Calls come in order of time.
    fn on_arrival(&mut self, now: Instant, bytes: u32);
    /// When to call [`Self::decide`]; [`Instant::NEVER`] if all members stay on for ever.
    fn next_decision(&self) -> Instant;
    /// The time has come: how many members should be on from now on. Nothing that arrives at `now` has
    /// been seen yet.
    fn decide(&mut self, now: Instant) -> u32;
    /// Whether members rest whenever they have nothing to send.
    fn low_power_idle(&self) -> Option<LowPowerIdle> {
        None
    }
    /// What was recorded for [`Init::arrivals`], by one that wants it.
    fn recorded(&self) -> Option<Vec<u64>> {
        None
    }
}

/// What a controller is made from besides its own parameters.
#[derive(Debug, Clone, Copy)]
pub struct Init<'a> {
    /// How fast one member sends.
    pub rate: Rate,
    /// How many there are.
    pub members: u32,
    /// From the decision to the first packet on a member that slept, as a rule: waking up, and what both
    /// ends have to tell each other.
    pub lead: Duration,
    /// Bytes that will arrive, bin by bin, where they have been recorded.
    pub arrivals: Option<&'a [u64]>,
}

impl Init<'_> {
    /// As [`members_for`], of this group.
    #[must_use]
    pub fn members_for(&self, bits: u128, time: Duration) -> u32 {
        members_for((self.rate, self.members), bits, time)
    }
}

/// clamp(⌈capacity ÷ member rate⌉, 1, members), for a capacity of so many bits per time.
#[must_use]
pub fn members_for((rate, members): (Rate, u32), bits: u128, time: Duration) -> u32 {
    let one = u128::from(rate.bits_per_s()) * u128::from(time.as_picos());
    let wanted = (bits * PS_PER_S).div_ceil(one.max(1));
    u32::try_from(wanted).unwrap_or(u32::MAX).clamp(1, members)
}

const PS_PER_S: u128 = 1_000_000_000_000;

/// Makes a controller from outside the workspace.
pub type Factory = Arc<dyn Fn(&Init<'_>) -> Box<dyn Controller> + Send + Sync>;

/// A controller from outside the workspace, as a scenario carries it.
pub type Custom = component::Custom<Factory>;

/// What the parameters of every built-in controller can say.
pub trait ControlParams: Default {
    /// The time from one decision to the next, where there is one.
    fn interval(&self) -> Option<Duration> {
        None
    }
    /// Whether the parameters go together.
    ///
    /// # Errors
    /// With the first that do not.
    fn check(&self) -> Result<(), Contradiction> {
        Ok(())
    }
}

components! {
    enum AnyController: Controller(init: &Init<'_>);

    always_on::AlwaysOn,
    peak_percentile::PeakPercentile,
    moving_average::MovingAverage,
    ewma_hysteresis::EwmaHysteresis,
    peak_forecast::PeakForecast,
    oracle::Oracle,
    lpi::Lpi,
}

impl Config {
    /// The time from one decision to the next, as far as the controller says so.
    #[must_use]
    pub fn interval(&self) -> Option<Duration> {
        each!(self, params => params.interval(), custom => None)
    }
    /// Whether the parameters go together.
    ///
    /// # Errors
    /// With the first that do not.
    pub fn check(&self) -> Result<(), Contradiction> {
        each!(self, params => params.check(), custom => Ok(()))
    }
    /// Whether it knows the arrivals of the whole run, so that they must not depend on it.
    #[must_use]
    pub const fn needs_arrivals(&self) -> bool {
        matches!(self, Self::Oracle(_))
    }
    /// Whether members are ever taken out, so that the ends have something to tell each other.
    #[must_use]
    pub const fn switches(&self) -> bool {
        !matches!(self, Self::AlwaysOn(_) | Self::Lpi(_))
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::AlwaysOn(always_on::Params::default())
    }
}

impl Controller for AnyController {
    #[inline]
    fn on_arrival(&mut self, now: Instant, bytes: u32) {
        each!(self, c => c.on_arrival(now, bytes));
    }
    fn next_decision(&self) -> Instant {
        each!(self, c => c.next_decision())
    }
    fn decide(&mut self, now: Instant) -> u32 {
        each!(self, c => c.decide(now))
    }
    fn low_power_idle(&self) -> Option<LowPowerIdle> {
        each!(self, c => c.low_power_idle())
    }
    fn recorded(&self) -> Option<Vec<u64>> {
        each!(self, c => c.recorded())
    }
}

/// What arrives in each interval, as two controllers count it.
#[derive(Debug)]
struct Counter {
    interval: Duration,
    end: Instant,
    bytes: u64,
}

impl Counter {
    fn new(interval: Duration) -> Self {
        Self {
            interval,
            end: Instant::START + interval,
            bytes: 0,
        }
    }
    /// The interval that ends now.
    fn close(&mut self) -> u64 {
        self.end = self.end + self.interval;
        std::mem::take(&mut self.bytes)
    }
}
