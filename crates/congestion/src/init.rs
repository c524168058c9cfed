//! Inputs for creating a control.

use std::{
    any::Any,
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use anabranch_core::units::{Bytes, Duration};

use super::{hystart, params};

/// Defaults of the stack, for controls whose parameters do not override them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StackHabits {
    /// Early end of slow start.
    pub hystart: hystart::Kind,
    /// Largest growth by one acknowledgment in slow start, in segments: `L` of RFC 3465 §2.3.
    pub slow_start_limit: f64,
    /// The base of a reduction.
    pub reduce_from: params::ReductionBase,
    /// Transmission is paced.
    pub paced: bool,
    /// The unit in which windows are counted.
    pub window_count: params::WindowCount,
    /// Minimum growth per round trip until the first loss, as a share of the window.
    pub first_epoch_growth: params::Share,
    /// Growth in CUBIC's Reno-friendly region.
    pub reno_friendly: params::RenoFriendly,
    /// Interval at which segment-counted CUBIC evaluates its function while the window is
    /// unchanged.
    pub cubic_interval: Duration,
    /// Segment-counted CUBIC keeps its count of acknowledged segments after a reduction.
    pub cubic_count_outlives: bool,
    /// Clock tick of segment-counted CUBIC; zero for a clock without ticks.
    pub clock_tick: Duration,
    /// The undo of a spurious reduction also restores CUBIC's `W_max`.
    pub undo_restores_w_max: bool,
    /// Form of the controls that Linux modified.
    pub form: params::Form,
}

impl Default for StackHabits {
    /// The defaults of RFC 5681.
    fn default() -> Self {
        Self {
            hystart: hystart::Kind::Off,
            slow_start_limit: 1.0,
            reduce_from: params::ReductionBase::FlightSize,
            paced: false,
            window_count: params::WindowCount::Bytes,
            first_epoch_growth: params::Share::new(0.0),
            reno_friendly: params::RenoFriendly::Rfc9438,
            cubic_interval: Duration::ZERO,
            cubic_count_outlives: true,
            clock_tick: Duration::ZERO,
            undo_restores_w_max: true,
            form: params::Form::Published,
        }
    }
}

/// Inputs for creating a control, in addition to its own parameters.
#[derive(Debug, Clone)]
pub struct Init {
    /// Payload bytes of a full segment.
    pub smss: Bytes,
    /// Initial window.
    pub initial_cwnd: Bytes,
    /// Defaults of the stack.
    pub stack: StackHabits,
    /// State shared by coupled flows (LIA and similar controls).
    pub shared: Shared,
}

impl Init {
    /// For an uncoupled flow.
    #[must_use]
    pub fn new(smss: Bytes, initial_cwnd: Bytes) -> Self {
        Self {
            smss,
            initial_cwnd,
            stack: StackHabits::default(),
            shared: Shared::default(),
        }
    }
}

/// State shared by several controls of a run, by name.
#[derive(Debug, Clone, Default)]
pub struct Shared(Arc<Mutex<BTreeMap<String, Arc<dyn Any + Send + Sync>>>>);

impl Shared {
    /// Returns the value named `key`; the first call creates it with `make`.
    ///
    /// # Panics
    /// If `key` already names a value of another type.
    pub fn get<T: Any + Send + Sync>(&self, key: &str, make: impl FnOnce() -> T) -> Arc<T> {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = map
            .entry(key.to_owned())
            .or_insert_with(|| Arc::new(make()));
        Arc::clone(entry).downcast().expect("one key, one type")
    }
}
