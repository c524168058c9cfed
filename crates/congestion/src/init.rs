//! What a control is made from.

use std::{
    any::Any,
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use anabranch_core::units::{Bytes, Duration};

use super::{hystart, params};

/// What the stack asks of controls that do not say otherwise themselves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StackHabits {
    /// Early end of slow start.
    pub hystart: hystart::Kind,
    /// What one acknowledgment adds in slow start at most, in segments: `L` of RFC 3465 §2.3.
    pub slow_start_limit: f64,
    /// What a reduction is taken from.
    pub reduce_from: params::ReductionBase,
    /// Data leaves paced.
    pub paced: bool,
    /// In what windows are counted.
    pub window_count: params::WindowCount,
    /// Growth per round trip until the first loss at least, as a share of the window.
    pub first_epoch_growth: params::Share,
    /// Growth in CUBIC's Reno-friendly region.
    pub reno_friendly: params::RenoFriendly,
    /// How often CUBIC counted in segments looks its function up while the window stands.
    pub cubic_interval: Duration,
    /// CUBIC counted in segments goes on counting after a reduction.
    pub cubic_count_outlives: bool,
    /// What CUBIC counted in segments counts time in; zero if in nothing.
    pub clock_tick: Duration,
    /// CUBIC forgets a reduction that proves spurious altogether.
    pub undo_restores_w_max: bool,
    /// Form of the controls that Linux has changed.
    pub form: params::Form,
}

impl Default for StackHabits {
    /// Those of RFC 5681.
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

/// What a control is made from, besides its own parameters.
#[derive(Debug, Clone)]
pub struct Init {
    /// Payload bytes of a full segment.
    pub smss: Bytes,
    /// Initial window.
    pub initial_cwnd: Bytes,
    /// What the stack asks for.
    pub stack: StackHabits,
    /// State shared by flows that are coupled (LIA and its like).
    pub shared: Shared,
}

impl Init {
    /// For a lone flow.
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

/// State that several controls of one run hold together, by name.
#[derive(Debug, Clone, Default)]
pub struct Shared(Arc<Mutex<BTreeMap<String, Arc<dyn Any + Send + Sync>>>>);

impl Shared {
    /// The value called `key`, made by `make` at the first call.
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
