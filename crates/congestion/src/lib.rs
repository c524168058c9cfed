//! Congestion control: how much data may be in flight, and how fast it may be sent.
//!
//! A control is pure state driven by events; it has no clock and never touches the endpoint. Adding
//! a control takes a file in `src/` and a line in the registry at the end of this file. A user's
//! control, outside this workspace, implements [`CongestionControl`] and is passed as
//! [`Control::Boxed`].
#![forbid(unsafe_code)]

use std::{fmt, sync::Arc};

use anabranch_core::{
    component, components,
    units::{Bytes, Instant, Rate},
};

mod arithmetic;
mod attached;
pub mod classic;
mod event;
pub mod hystart;
mod init;
pub mod params;
mod properties;
pub mod rate;
mod rtt_samples;
pub mod slow_start;
mod ticks;
mod window;

pub use self::{
    arithmetic::Arithmetic,
    attached::Attached,
    event::{
        Ack, Congestion, Idle, IdleRestart, Lost, RateSample, Recovered, Rto, Sent, Signal,
        Spurious, TimerLoss, Unvalidated,
    },
    init::{Init, Shared, StackHabits},
    properties::{ControlParams, Family, HyStartUse, TimerRule},
};

/// A congestion control. Only acknowledgments, congestion and timeouts must be handled. The default
/// handlers ignore the other events.
pub trait CongestionControl: fmt::Debug + Send {
    /// A segment was sent. Called for first transmissions and retransmissions.
    fn on_sent(&mut self, _sent: &Sent) {}
    /// An acknowledgment with new information: data acknowledged or SACKed, or losses found.
    fn on_ack(&mut self, ack: &Ack);
    /// A reduction is due: loss was detected, or Congestion Experienced was reported. Called at
    /// most once per round trip; the endpoint decides whether an event is new.
    fn on_congestion(&mut self, event: &Congestion);
    /// The retransmission timer expired (RFC 6298 §5.4).
    fn on_rto(&mut self, event: &Rto);
    /// A timer rule found losses while a recovery was already in progress (`recovery = timer rule`
    /// only, see [`TimerRule`]). The default treats them as part of that recovery.
    fn on_timer_loss(&mut self, _event: &TimerLoss) {}
    /// A segment was marked lost, if [`Wants::losses`]. Called after [`Self::on_congestion`] or
    /// [`Self::on_rto`], if any, and before the [`Self::on_ack`] that includes the loss.
    fn on_lost(&mut self, _event: &Lost) {}
    /// Recovery ended: everything outstanding when it began is acknowledged.
    fn on_recovered(&mut self, _event: &Recovered) {}
    /// The last [`Self::on_congestion`] or [`Self::on_rto`] proved spurious. The default keeps the
    /// reduction.
    fn on_spurious(&mut self, _event: &Spurious) {}
    /// The connection opens after more than one loss of its SYN or SYN-ACK: the window is one
    /// segment (RFC 5681 §3.1, RFC 6928 §2). The default keeps the initial window.
    fn on_lost_syns(&mut self) {}
    /// Sending resumes after an idle time.
    fn on_idle(&mut self, _event: &Idle) {}
    /// The window was not in use (RFC 7661). The default keeps it.
    fn on_unvalidated(&mut self, _event: &Unvalidated) {}
    /// The time returned by [`Self::timer`] has come.
    fn on_timer(&mut self, _now: Instant) {}
    /// When to call [`Self::on_timer`].
    fn timer(&self) -> Option<Instant> {
        None
    }
    /// The congestion window, without temporary inflation by a recovery.
    fn cwnd(&self) -> Bytes;
    /// The slow start threshold; `None` before the first reduction.
    fn ssthresh(&self) -> Option<Bytes>;
    /// The rate to send at; `None` leaves it to the endpoint (no pacing, or `cwnd / srtt`).
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
    /// The estimate of the path's bandwidth; `None` without a measurement, or if the control makes
    /// none.
    fn bandwidth_estimate(&self) -> Option<Rate> {
        None
    }
    /// The optional events and parts of [`Ack`] that the control needs; each costs work.
    fn wants(&self) -> Wants {
        Wants::default()
    }
    /// Names and values of inner state for traces (`w_max`, `k`, …), in units the docs name.
    fn state(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// Optional events and values that a control requests.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each asks for one thing, and none excludes another"
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wants {
    /// [`CongestionControl::on_sent`].
    pub sent: bool,
    /// [`Ack::rate`], which costs the endpoint two stamps per segment.
    pub rate_samples: bool,
    /// [`CongestionControl::on_lost`], which needs `rate_samples` as well.
    pub losses: bool,
    /// A reduction by marks takes effect at once, without a recovery that freezes the window.
    pub grows_under_marks: bool,
    /// Longest paced burst, in microseconds at the pacing rate; `None` leaves it to the stack.
    pub burst_us: Option<u16>,
}

impl Default for Wants {
    fn default() -> Self {
        Self {
            sent: true,
            rate_samples: false,
            losses: false,
            grows_under_marks: false,
            burst_us: None,
        }
    }
}

/// Makes a control from outside the workspace.
pub type Factory = Arc<dyn Fn(&Init) -> Box<dyn CongestionControl> + Send + Sync>;

/// A control from outside the workspace, as part of a scenario.
pub type Custom = component::Custom<Factory>;

components! {
    enum Control: CongestionControl(init: &Init);

    #[serde(alias = "new-reno")]
    reno::Reno,
    cubic::Cubic | CubicInSegments | CubicInKernelSegments,
    cubic_plus::CubicPlus | CubicPlusInSegments | CubicPlusInKernelSegments,
    bbr::Bbr,
    bbr3::Bbr3,
    dctcp::Dctcp,
    westwood_plus::WestwoodPlus,
    compound::Compound,
    vegas::Vegas,
    bic::Bic,
    htcp::Htcp,
    prague::Prague,
}

impl Config {
    /// The congestion signal of the control; `None` for a user's control.
    #[must_use]
    pub fn family(&self) -> Option<Family> {
        each!(self, params => Some(params.family()), custom => None)
    }
    /// The share of the window that remains after a loss, if the control has such a factor.
    #[must_use]
    pub fn decrease_factor(&self) -> Option<f64> {
        each!(self, params => params.decrease_factor(), custom => None)
    }
    /// The loss detection that is part of the control.
    #[must_use]
    pub fn timer_rule(&self) -> Option<TimerRule> {
        each!(self, params => params.timer_rule(), custom => None)
    }
    /// The early ends of slow start that the control supports; `None` for a user's control.
    #[must_use]
    pub fn hystart(&self) -> Option<HyStartUse> {
        each!(self, params => Some(params.hystart()), custom => None)
    }
    /// See [`ControlParams::sets_its_rate`].
    #[must_use]
    pub fn sets_its_rate(&self) -> bool {
        each!(self, params => params.sets_its_rate(), custom => false)
    }
    /// See [`ControlParams::is_l4s`].
    #[must_use]
    pub fn is_l4s(&self) -> bool {
        each!(self, params => params.is_l4s(), custom => false)
    }
    /// See [`ControlParams::needs_exact_marks`].
    #[must_use]
    pub fn needs_exact_marks(&self) -> bool {
        each!(self, params => params.needs_exact_marks(), custom => false)
    }
}

impl Control {
    /// The window and the timer.
    fn answers(&self) -> (Bytes, Instant) {
        let (cwnd, timer) = each!(self, c => (c.cwnd(), c.timer()));
        (cwnd, timer.unwrap_or(Instant::NEVER))
    }
    /// Handles an acknowledgment and returns the window and the timer.
    #[expect(
        clippy::inline_always,
        reason = "saves 30 of 3,393 instructions per packet of plain/10"
    )]
    #[inline(always)]
    fn answers_after(&mut self, ack: &Ack) -> (Bytes, Instant) {
        each!(self, c => out_of_line(|| {
            c.on_ack(ack);
            (c.cwnd(), c.timer().unwrap_or(Instant::NEVER))
        }))
    }
}

/// Calls `event` out of line, so that an acknowledgment costs one jump to the control's code,
/// without a second call.
#[inline(never)]
fn out_of_line<T>(event: impl FnOnce() -> T) -> T {
    event()
}

impl CongestionControl for Control {
    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        each!(self, c => c.on_sent(sent));
    }
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        self.answers_after(ack);
    }
    fn on_congestion(&mut self, event: &Congestion) {
        each!(self, c => c.on_congestion(event));
    }
    fn on_rto(&mut self, event: &Rto) {
        each!(self, c => c.on_rto(event));
    }
    fn on_timer_loss(&mut self, event: &TimerLoss) {
        each!(self, c => c.on_timer_loss(event));
    }
    fn on_lost(&mut self, event: &Lost) {
        each!(self, c => c.on_lost(event));
    }
    fn on_recovered(&mut self, event: &Recovered) {
        each!(self, c => c.on_recovered(event));
    }
    fn on_spurious(&mut self, event: &Spurious) {
        each!(self, c => c.on_spurious(event));
    }
    fn on_lost_syns(&mut self) {
        each!(self, c => c.on_lost_syns());
    }
    fn on_idle(&mut self, event: &Idle) {
        each!(self, c => c.on_idle(event));
    }
    fn on_unvalidated(&mut self, event: &Unvalidated) {
        each!(self, c => c.on_unvalidated(event));
    }
    fn on_timer(&mut self, now: Instant) {
        each!(self, c => c.on_timer(now));
    }
    #[inline]
    fn timer(&self) -> Option<Instant> {
        each!(self, c => c.timer())
    }
    #[inline]
    fn cwnd(&self) -> Bytes {
        each!(self, c => c.cwnd())
    }
    #[inline]
    fn ssthresh(&self) -> Option<Bytes> {
        each!(self, c => c.ssthresh())
    }
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        each!(self, c => c.pacing_rate())
    }
    fn bandwidth_estimate(&self) -> Option<Rate> {
        each!(self, c => c.bandwidth_estimate())
    }
    fn wants(&self) -> Wants {
        each!(self, c => c.wants())
    }
    fn state(&self) -> Vec<(&'static str, f64)> {
        each!(self, c => c.state())
    }
}
