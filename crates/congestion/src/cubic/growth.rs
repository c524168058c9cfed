//! Growth in congestion avoidance: the form of CUBIC.

use std::fmt::Debug;

use super::{
    Ack, StackHabits, Window,
    stage::Stage,
    window::{rounded_up, whole_segments},
};

/// A form of CUBIC: the unit of its window, the growth in congestion avoidance, and the state that
/// only this form has. The defaults count whole segments.
pub trait Growth: Copy + Debug + Send {
    /// Whether the acknowledgment with which HyStart ends slow start also counts in congestion
    /// avoidance.
    const COUNTS_END_OF_SLOW_START: bool = false;

    /// The form before the first acknowledgment.
    fn new(stack: &StackHabits) -> Self;

    /// Rounds a window that results from an equation to the unit of the form.
    #[must_use]
    fn whole(window: f64) -> f64 {
        whole_segments(window)
    }
    /// The number of segments that an acknowledgment counts for. A segment that is not full counts
    /// as one.
    #[inline]
    #[must_use]
    fn counted(acked: f64) -> f64 {
        rounded_up(acked)
    }

    /// Grows the window by an acknowledgment that counts for `acked` segments.
    fn grow(&mut self, window: &mut Window<f64>, stage: Stage<'_>, ack: &Ack, acked: f64);
    /// The window is reduced.
    fn on_reduction(&mut self) {}
    /// The stage of congestion avoidance ended.
    fn end_stage(&mut self) {}
}

/// RFC 9438: the window is a real number, and every acknowledgment changes it slightly (§4.2 to
/// §4.5).
#[derive(Debug, Clone, Copy)]
pub struct Octets;

impl Growth for Octets {
    fn new(_stack: &StackHabits) -> Self {
        Self
    }

    fn whole(window: f64) -> f64 {
        window
    }
    #[inline]
    fn counted(acked: f64) -> f64 {
        acked
    }

    #[inline]
    fn grow(&mut self, window: &mut Window<f64>, stage: Stage<'_>, ack: &Ack, acked: f64) {
        let cwnd = window.cwnd;
        let t = stage.epoch.elapsed(ack.now);
        // §4.2: the window neither shrinks nor grows faster than in slow start.
        let target = stage
            .w_cubic(t + ack.srtt.as_secs_f64())
            .max(cwnd)
            .min(1.5 * cwnd);
        window.cwnd = (cwnd + acked * (target - cwnd) / cwnd).min(target);
        if stage.law.tcp_friendly {
            stage.epoch.w_est += stage.alpha() * acked / cwnd;
            if stage.w_cubic(t) < stage.epoch.w_est {
                window.cwnd = cwnd.max(stage.epoch.w_est);
            }
        }
        if stage.first_epoch {
            window.cwnd = window.cwnd.max(cwnd + acked * stage.law.first_epoch_growth);
        }
    }
}
