//! Early ends of slow start (HyStart) in the frame of the window-based controls.

use std::{fmt::Debug, marker::PhantomData};

use super::{
    Ack,
    hystart::{Exit, Verdict},
};

/// The slow starts that `HyStart` observes.
pub trait Observed: Debug + Send {
    /// Every slow start, SACKed data included.
    const EVERY: bool;
}

/// The first slow start, up to the first reduction (RFC 9406).
#[derive(Debug)]
pub struct FirstOnly;

/// Every slow start, SACKed data included (CUBIC).
#[derive(Debug)]
pub struct Every;

impl Observed for FirstOnly {
    const EVERY: bool = false;
}

impl Observed for Every {
    const EVERY: bool = true;
}

/// Slow start with an early end, if there is one.
#[derive(Debug)]
pub(super) struct SlowStart<O>(Option<Box<Exit>>, PhantomData<O>);

impl<O: Observed> SlowStart<O> {
    pub(super) fn new(exit: Option<Box<Exit>>) -> Self {
        Self(exit, PhantomData)
    }

    /// An acknowledgment of new data in slow start. `cwnd` is in segments.
    #[inline]
    pub(super) fn on_ack(&mut self, ack: &Ack, cwnd: f64) -> Verdict {
        match &mut self.0 {
            Some(exit) => exit.on_ack(ack, cwnd),
            None => Verdict::Grow(1.0),
        }
    }

    /// An acknowledgment in slow start that measures the round-trip time by SACKed data alone.
    #[inline]
    pub(super) fn on_sack(&mut self, ack: &Ack, cwnd: f64) -> Verdict {
        if O::EVERY {
            self.on_ack(ack, cwnd)
        } else {
            Verdict::Grow(1.0)
        }
    }

    /// Loss or a mark reduces the window.
    pub(super) fn on_reduction(&mut self) {
        if !O::EVERY {
            self.reset();
        }
    }

    /// A restart or window validation ends the stage of congestion avoidance.
    pub(super) fn on_restart(&mut self) {
        if O::EVERY
            && let Some(exit) = &mut self.0
        {
            exit.restart();
        }
    }

    /// Slow start begins again after a timeout.
    pub(super) fn on_timeout(&mut self) {
        self.reset();
    }

    fn reset(&mut self) {
        if let Some(exit) = &mut self.0 {
            exit.reset();
        }
    }
}
