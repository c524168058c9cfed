//! Early ends of slow start (HyStart) in the frame of the window-based controls.

use super::{
    Ack,
    hystart::{Exit, Verdict},
};

/// `HyStart` observes the first slow start, up to the first reduction, as in RFC 9406.
pub const FIRST: bool = false;
/// `HyStart` observes every slow start, SACKed data included, as in CUBIC.
pub const EVERY: bool = true;

/// Slow start with an early end, if there is one; `WHICH` is [`FIRST`] or [`EVERY`].
#[derive(Debug)]
pub(super) struct SlowStart<const WHICH: bool>(pub(super) Option<Box<Exit>>);

impl<const WHICH: bool> SlowStart<WHICH> {
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
        if WHICH == EVERY {
            self.on_ack(ack, cwnd)
        } else {
            Verdict::Grow(1.0)
        }
    }

    /// Loss or a mark reduces the window.
    pub(super) fn on_reduction(&mut self) {
        if WHICH == FIRST {
            self.on_timeout();
        }
    }

    /// A restart or window validation ends the stage of congestion avoidance.
    pub(super) fn on_restart(&mut self) {
        if WHICH == EVERY {
            self.on_timeout();
        }
    }

    /// Slow start begins again after a timeout.
    pub(super) fn on_timeout(&mut self) {
        if let Some(exit) = &mut self.0 {
            exit.reset();
        }
    }
}
