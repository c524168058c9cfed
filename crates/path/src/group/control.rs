//! Controllers: the number of members of a group that should be on.
//!
//! A controller is located at the first end of a group. It sees bytes as they arrive before the
//! queue in the forward direction, and the time; it never sees the queue, the network or future
//! traffic (except [`oracle`]). Spans are counted from the start of the run: span k is the
//! half-open interval from k to k + 1 times its length.
//!
//! A new controller is a file in `control/` and a line in the registry below. A controller from
//! outside the workspace implements [`Controller`] and is stored as [`AnyController::Boxed`].

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
    /// Counts bytes that arrive before the queue. Calls come in order of time.
    fn on_arrival(&mut self, now: Instant, bytes: u32);
    /// When to call [`Self::decide`]; [`Instant::NEVER`] if all members always stay on.
    fn next_decision(&self) -> Instant;
    /// Returns the number of members that should be on from `now`. Arrivals at `now` have not been
    /// counted yet.
    fn decide(&mut self, now: Instant) -> u32;
    /// Times of low-power idle, if members rest whenever they have nothing to send.
    fn low_power_idle(&self) -> Option<LowPowerIdle> {
        None
    }
    /// Recording for [`Init::arrivals`], if the controller makes one.
    fn recorded(&self) -> Option<Vec<u64>> {
        None
    }
}

/// Inputs for the construction of a controller, in addition to its parameters.
#[derive(Debug, Clone, Copy)]
pub struct Init<'a> {
    /// Rate of one member.
    pub rate: Rate,
    /// Number of members.
    pub members: u32,
    /// Usual time from the decision to the first packet on a member that slept: waking up, and the
    /// exchange of LACPDUs.
    pub lead: Duration,
    /// Bytes that will arrive in each bin, if they have been recorded.
    pub arrivals: Option<&'a [u64]>,
}

impl Init<'_> {
    /// Calls [`members_for`] with this group's rate and number of members.
    #[must_use]
    pub fn members_for(&self, bits: u128, time: Duration) -> u32 {
        members_for((self.rate, self.members), bits, time)
    }
}

/// Returns clamp(⌈capacity ÷ member rate⌉, 1, members), for a capacity of `bits` per `time`.
#[must_use]
pub fn members_for((rate, members): (Rate, u32), bits: u128, time: Duration) -> u32 {
    let one = u128::from(rate.bits_per_s()) * u128::from(time.as_picos());
    let wanted = (bits * PS_PER_S).div_ceil(one.max(1));
    u32::try_from(wanted).unwrap_or(u32::MAX).clamp(1, members)
}

const PS_PER_S: u128 = 1_000_000_000_000;

/// Constructor of a controller from outside the workspace.
pub type Factory = Arc<dyn Fn(&Init<'_>) -> Box<dyn Controller> + Send + Sync>;

/// A controller from outside the workspace, as stored in a scenario.
pub type Custom = component::Custom<Factory>;

/// Properties of the parameters of every built-in controller.
pub trait ControlParams: Default {
    /// Time between decisions, if it is fixed.
    fn interval(&self) -> Option<Duration> {
        None
    }
    /// Checks that the parameters are consistent.
    ///
    /// # Errors
    /// Names the first contradiction.
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
    /// Time between decisions, if the controller declares it.
    #[must_use]
    pub fn interval(&self) -> Option<Duration> {
        each!(self, params => params.interval(), custom => None)
    }
    /// Checks that the parameters are consistent.
    ///
    /// # Errors
    /// Names the first contradiction.
    pub fn check(&self) -> Result<(), Contradiction> {
        each!(self, params => params.check(), custom => Ok(()))
    }
    /// Whether it needs the arrivals of the whole run, which must then not depend on it.
    #[must_use]
    pub const fn needs_arrivals(&self) -> bool {
        matches!(self, Self::Oracle(_))
    }
    /// Whether members are ever removed, so that the ends exchange LACPDUs.
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

/// Counter of bytes per interval, shared by two controllers.
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
    /// Ends the interval and returns its bytes.
    fn close(&mut self) -> u64 {
        self.end = self.end + self.interval;
        std::mem::take(&mut self.bytes)
    }
}
