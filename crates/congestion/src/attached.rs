//! A control attached to a connection, which reads the window more often than it changes.

use anabranch_core::units::{Bytes, Instant, Rate};

use super::{
    Ack, Congestion, CongestionControl, Control, Idle, Lost, Recovered, Rto, Sent, Spurious,
    TimerLoss, Unvalidated, Wants,
};

/// A [`Control`] with its window and timer cached after each event; a control changes only by
/// events.
#[derive(Debug)]
pub struct Attached {
    cwnd: Bytes,
    timer: Instant,
    hears_sent: bool,
    control: Control,
}

impl Attached {
    /// A control before its first event.
    #[must_use]
    pub fn new(control: Control) -> Self {
        let (cwnd, timer) = control.answers();
        Self {
            cwnd,
            timer,
            hears_sent: control.wants().sent,
            control,
        }
    }

    /// The control itself.
    #[must_use]
    pub const fn control(&self) -> &Control {
        &self.control
    }

    /// Same as [`CongestionControl::timer`], with [`Instant::NEVER`] for none.
    #[must_use]
    #[inline]
    pub const fn deadline(&self) -> Instant {
        self.timer
    }

    /// Whether the control takes [`CongestionControl::on_sent`].
    #[must_use]
    pub const fn hears_sent(&self) -> bool {
        self.hears_sent
    }

    /// [`CongestionControl::on_ack`] for a caller with most of the acknowledgments: the default
    /// controls are compiled into it, so that the parts of `ack` stay in registers.
    #[expect(clippy::inline_always, reason = "the purpose")]
    #[inline(always)]
    pub fn on_hot_ack(&mut self, ack: &Ack) {
        (self.cwnd, self.timer) = match &mut self.control {
            Control::Cubic(control) => answers_of(control, ack),
            Control::CubicInKernelSegments(control) => answers_of(control, ack),
            control => control.answers_after(ack),
        };
    }

    fn after<T>(&mut self, event: impl FnOnce(&mut Control) -> T) -> T {
        let result = event(&mut self.control);
        (self.cwnd, self.timer) = self.control.answers();
        result
    }
}

#[expect(clippy::inline_always, reason = "as for its caller")]
#[inline(always)]
fn answers_of(control: &mut impl CongestionControl, ack: &Ack) -> (Bytes, Instant) {
    control.on_ack(ack);
    (control.cwnd(), control.timer().unwrap_or(Instant::NEVER))
}

impl CongestionControl for Attached {
    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        if self.hears_sent {
            self.after(|control| control.on_sent(sent));
        }
    }
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        (self.cwnd, self.timer) = self.control.answers_after(ack);
    }
    fn on_congestion(&mut self, event: &Congestion) {
        self.after(|control| control.on_congestion(event));
    }
    fn on_rto(&mut self, event: &Rto) {
        self.after(|control| control.on_rto(event));
    }
    fn on_timer_loss(&mut self, event: &TimerLoss) {
        self.after(|control| control.on_timer_loss(event));
    }
    fn on_lost(&mut self, event: &Lost) {
        self.after(|control| control.on_lost(event));
    }
    fn on_recovered(&mut self, event: &Recovered) {
        self.after(|control| control.on_recovered(event));
    }
    fn on_spurious(&mut self, event: &Spurious) {
        self.after(|control| control.on_spurious(event));
    }
    fn on_lost_syns(&mut self) {
        self.after(CongestionControl::on_lost_syns);
    }
    fn on_idle(&mut self, event: &Idle) {
        self.after(|control| control.on_idle(event));
    }
    fn on_unvalidated(&mut self, event: &Unvalidated) {
        self.after(|control| control.on_unvalidated(event));
    }
    fn on_timer(&mut self, now: Instant) {
        self.after(|control| control.on_timer(now));
    }
    fn timer(&self) -> Option<Instant> {
        (self.timer != Instant::NEVER).then_some(self.timer)
    }
    #[inline]
    fn cwnd(&self) -> Bytes {
        debug_assert_eq!(self.cwnd, self.control.cwnd(), "{:?}", self.control);
        self.cwnd
    }
    #[inline]
    fn ssthresh(&self) -> Option<Bytes> {
        self.control.ssthresh()
    }
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        self.control.pacing_rate()
    }
    fn bandwidth_estimate(&self) -> Option<Rate> {
        self.control.bandwidth_estimate()
    }
    fn wants(&self) -> Wants {
        self.control.wants()
    }
    fn state(&self) -> Vec<(&'static str, f64)> {
        self.control.state()
    }
}
