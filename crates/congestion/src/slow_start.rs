//! Early ends of slow start (HyStart) in the frame of the window-based controls.

use std::fmt;

use super::{
    Ack,
    hystart::{Exit, Verdict},
};

/// The slow starts of a connection that `HyStart` observes.
pub trait SlowStart: fmt::Debug + Send + Sized {
    /// With the early end `exit`, if there is one.
    fn new(exit: Option<Box<Exit>>) -> Self;
    /// The early end.
    fn exit(&mut self) -> Option<&mut Exit>;
    /// An acknowledgment of new data in slow start. `cwnd` is in segments.
    #[inline]
    fn on_ack(&mut self, ack: &Ack, cwnd: f64) -> Verdict {
        self.exit()
            .map_or(Verdict::Grow(1.0), |exit| exit.on_ack(ack, cwnd))
    }
    /// An acknowledgment in slow start that measures the round-trip time by SACKed data alone.
    #[inline]
    fn on_sack(&mut self, _ack: &Ack, _cwnd: f64) -> Verdict {
        Verdict::Grow(1.0)
    }
    /// Loss or a mark reduces the window.
    fn on_reduction(&mut self) {}
    /// A restart or window validation ends the stage of congestion avoidance.
    fn on_restart(&mut self) {}
    /// Slow start begins again after a timeout.
    fn on_timeout(&mut self) {
        if let Some(exit) = self.exit() {
            exit.reset();
        }
    }
}

/// The first slow start: observation ends with the first reduction, as in RFC 9406.
#[derive(Debug)]
pub struct InitialSlowStart(Option<Box<Exit>>);

impl SlowStart for InitialSlowStart {
    fn new(exit: Option<Box<Exit>>) -> Self {
        Self(exit)
    }
    #[inline]
    fn exit(&mut self) -> Option<&mut Exit> {
        self.0.as_deref_mut()
    }
    fn on_reduction(&mut self) {
        self.on_timeout();
    }
}

/// Every slow start, as in CUBIC: observation includes SACKed data and begins again with each.
#[derive(Debug)]
pub struct EverySlowStart(Option<Box<Exit>>);

impl SlowStart for EverySlowStart {
    fn new(exit: Option<Box<Exit>>) -> Self {
        Self(exit)
    }
    #[inline]
    fn exit(&mut self) -> Option<&mut Exit> {
        self.0.as_deref_mut()
    }
    #[inline]
    fn on_sack(&mut self, ack: &Ack, cwnd: f64) -> Verdict {
        self.on_ack(ack, cwnd)
    }
    fn on_restart(&mut self) {
        self.on_timeout();
    }
}
