//! Congestion control: how much may be in flight, and how fast it may leave.
//!
//! A control is pure state driven by events; it has no clock and never touches the endpoint. Adding
//! one is a file in `cc/` and a line in the registry at the end of this file. A control of a
//! user's own, outside this workspace, implements [`CongestionControl`] and travels as
//! [`Control::Boxed`].

use std::{
    any::Any,
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use anabranch_core::units::{Bytes, Duration, Instant, Rate};

use crate::component::{self, components};

pub mod hystart;
pub mod params;

/// A congestion control. Only acknowledgments, congestion and timeouts must be handled; the other
/// events have defaults that ignore them.
pub trait CongestionControl: fmt::Debug + Send {
    /// A segment left. Called for first transmissions and retransmissions.
    fn on_sent(&mut self, _sent: &Sent) {}
    /// An acknowledgment that tells something new: data acknowledged or sacked, losses found.
    fn on_ack(&mut self, ack: &Ack);
    /// A reduction is due: loss was detected or Congestion Experienced was reported. At most once
    /// per round trip; the endpoint decides when an event is a new one.
    fn on_congestion(&mut self, event: &Congestion);
    /// The retransmission timer expired (RFC 6298 §5.4).
    fn on_rto(&mut self, event: &Rto);
    /// A timer rule found losses while a recovery was already under way (`recovery = timer rule`
    /// only, see [`TimerRule`]). The default treats them as part of that recovery.
    fn on_timer_loss(&mut self, _event: &TimerLoss) {}
    /// Recovery ended: everything outstanding when it began is acknowledged.
    fn on_recovered(&mut self, _event: &Recovered) {}
    /// The last [`Self::on_congestion`] or [`Self::on_rto`] proved spurious. The default keeps the
    /// reduction.
    fn on_spurious(&mut self, _event: &Spurious) {}
    /// Sending starts again after an idle time.
    fn on_idle(&mut self, _event: &Idle) {}
    /// The time asked for with [`Self::timer`] has come.
    fn on_timer(&mut self, _now: Instant) {}
    /// When to call [`Self::on_timer`].
    fn timer(&self) -> Option<Instant> {
        None
    }
    /// The congestion window, without any inflation that a recovery adds for a while.
    fn cwnd(&self) -> Bytes;
    /// The slow start threshold; `None` before the first reduction.
    fn ssthresh(&self) -> Option<Bytes>;
    /// The rate to send at; `None` leaves it to the endpoint (no pacing, or `cwnd / srtt`).
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
    /// Which parts of [`Ack`] cost work and are wanted.
    fn wants(&self) -> Wants {
        Wants::default()
    }
    /// Names and values of inner state for traces (`w_max`, `k`, …), in units the docs name.
    fn state(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

/// What a control wants computed for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wants {
    /// [`Ack::rate`], which costs the endpoint two stamps per segment.
    pub rate_samples: bool,
}

/// A segment left.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// When.
    pub now: Instant,
    /// Payload bytes.
    pub bytes: Bytes,
    /// In flight, this segment included.
    pub in_flight: Bytes,
    /// Sent before.
    pub retransmission: bool,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
}

/// What an acknowledgment told.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    /// When it arrived.
    pub now: Instant,
    /// Newly acknowledged cumulatively.
    pub acked: Bytes,
    /// Newly acknowledged selectively (RFC 2018).
    pub sacked: Bytes,
    /// Newly delivered: acknowledged in one way or the other, each byte once.
    pub delivered: Bytes,
    /// Newly found lost.
    pub lost: Bytes,
    /// Newly reported as marked Congestion Experienced.
    pub ce_marked: Bytes,
    /// In flight before this acknowledgment.
    pub prior_in_flight: Bytes,
    /// In flight after it.
    pub in_flight: Bytes,
    /// The round-trip time that it measured.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time (RFC 6298); zero before the first sample.
    pub srtt: Duration,
    /// Smallest round-trip time seen; zero before the first sample.
    pub min_rtt: Duration,
    /// Delivery-rate sample, if wanted.
    pub rate: Option<RateSample>,
    /// Round trips completed: counts up when data sent after the last count is acknowledged.
    pub round: u64,
    /// The window kept the sender from sending more in the last round trip (RFC 7661 §4.2).
    pub cwnd_limited: bool,
    /// The application kept the sender from sending more.
    pub app_limited: bool,
    /// A recovery is under way; loss-based controls do not grow then.
    pub in_recovery: bool,
}

/// How fast data was delivered lately (draft-ietf-ccwg-bbr §4.1, delivery rate estimation).
#[derive(Debug, Clone, Copy)]
pub struct RateSample {
    /// Delivered between the segment's sending and its acknowledgment.
    pub delivered: Bytes,
    /// In this time.
    pub interval: Duration,
    /// All delivered on this connection when the segment was sent.
    pub prior_delivered: Bytes,
    /// The sender was application-limited when the segment was sent: a lower bound only.
    pub app_limited: bool,
}

/// A reduction is due.
#[derive(Debug, Clone, Copy)]
pub struct Congestion {
    /// When it was found.
    pub now: Instant,
    /// By what.
    pub signal: Signal,
    /// In flight just before: FlightSize of RFC 5681 §3.1.
    pub in_flight: Bytes,
}

/// How congestion was signalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// By a lost packet.
    Loss,
    /// By a mark (RFC 3168).
    EcnCe,
}

/// The retransmission timer expired.
#[derive(Debug, Clone, Copy)]
pub struct Rto {
    /// When.
    pub now: Instant,
    /// In flight just before.
    pub in_flight: Bytes,
    /// 1 for the first expiry, 2 for the next without progress between them, and so on.
    pub consecutive: u32,
}

/// A timer rule found losses during a recovery.
#[derive(Debug, Clone, Copy)]
pub struct TimerLoss {
    /// When.
    pub now: Instant,
    /// In flight just before.
    pub in_flight: Bytes,
}

/// A recovery ended.
#[derive(Debug, Clone, Copy)]
pub struct Recovered {
    /// When.
    pub now: Instant,
    /// In flight.
    pub in_flight: Bytes,
    /// The window is to be no larger from here on, ssthresh stays as it is (RFC 6582 §3.2 step 3,
    /// the first option of a full acknowledgment); `None` where the stack asks for no such thing.
    pub cwnd_limit: Option<Bytes>,
}

/// A reduction was for nothing.
#[derive(Debug, Clone, Copy)]
pub struct Spurious {
    /// When this was found out.
    pub now: Instant,
    /// It was a timeout, not a fast recovery.
    pub timeout: bool,
}

/// Sending starts again after a pause.
#[derive(Debug, Clone, Copy)]
pub struct Idle {
    /// Now.
    pub now: Instant,
    /// How long nothing was in flight.
    pub idle: Duration,
    /// The retransmission timeout, the usual measure of a long pause (RFC 5681 §4.1).
    pub rto: Duration,
    /// What the stack makes of a long pause.
    pub rule: IdleRestart,
}

impl Idle {
    /// The window with which sending starts again, for controls that take a pause as RFC 5681 has
    /// it; in the same unit as `cwnd` and the initial window `initial`.
    #[must_use]
    pub fn restart_window(&self, cwnd: f64, initial: f64) -> f64 {
        let restart = initial.min(cwnd);
        if self.idle <= self.rto {
            return cwnd;
        }
        match self.rule {
            IdleRestart::Off => cwnd,
            IdleRestart::Rfc5681 => restart,
            IdleRestart::Rfc2861 => {
                let (mut window, mut left) = (cwnd, self.idle);
                while left > self.rto && window > restart {
                    window /= 2.0;
                    left = left.saturating_sub(self.rto);
                }
                window.max(restart)
            }
        }
    }
}

/// What a pause longer than the retransmission timeout does to the window.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum IdleRestart {
    /// Nothing.
    Off,
    /// The initial window is left, if that is less (RFC 5681 §4.1).
    #[default]
    Rfc5681,
    /// It is halved for every timeout that has passed, down to the initial window (RFC 2861 §3.2;
    /// Linux: `tcp_slow_start_after_idle`).
    Rfc2861,
}

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

/// Loss detection by send time that a control brings along and that replaces the stack's recovery
/// (the reordering study's RACK-like rule).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimerRule {
    /// Grace time before any reordering has been seen.
    pub initial_reo_wnd: Duration,
    /// Grace time once reordering has been seen, as a share of the smallest RTT.
    pub reo_wnd_min_rtt_share: f64,
}

/// Makes a control from outside the workspace.
pub type Factory = Arc<dyn Fn(&Init) -> Box<dyn CongestionControl> + Send + Sync>;

/// A control from outside the workspace, as a scenario carries it.
pub type Custom = component::Custom<Factory>;

/// What a control takes for congestion. The law suite asks every family its own questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Losses and marks.
    LossBased,
    /// Growing delay, besides losses.
    DelayBased,
    /// A model of the path: its rate and its propagation delay.
    ModelBased,
}

/// What the parameters of every built-in control can say.
pub trait ControlParams: Default {
    /// What the control takes for congestion.
    const FAMILY: Family;
    /// [`Self::FAMILY`], of a value.
    fn family(&self) -> Family {
        Self::FAMILY
    }
    /// The share of the window that a loss leaves; `None` where that is not a constant.
    fn decrease_factor(&self) -> Option<f64> {
        None
    }
    /// The loss detection that the control brings along, if any.
    fn timer_rule(&self) -> Option<TimerRule> {
        None
    }
    /// Which early ends of slow start the control knows.
    fn hystart(&self) -> HyStartUse {
        HyStartUse::None
    }
    /// The control gives a rate of its own, so that its data is paced whatever the stack does.
    fn sets_its_rate(&self) -> bool {
        false
    }
    /// The control needs to know which bytes were marked, not only that some were.
    fn needs_exact_marks(&self) -> bool {
        false
    }
}

/// Which early ends of slow start a control knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HyStartUse {
    /// It has no slow start to end.
    None,
    /// HyStart++ only, as the stack has it.
    Rfc9406,
    /// All, with this parameter of its own.
    Any(params::OrStack<hystart::Kind>),
}

components! {
    enum Control: CongestionControl(init: &Init);

    #[serde(alias = "new-reno")]
    reno::Reno,
    cubic::Cubic,
    cubic_plus::CubicPlus,
    bbr::Bbr,
    dctcp::Dctcp,
}

impl Config {
    /// What the control takes for congestion; unknown where it is a user's own.
    #[must_use]
    pub fn family(&self) -> Option<Family> {
        each!(self, params => Some(params.family()), custom => None)
    }
    /// The share of the window that a loss leaves, where the control has such a factor.
    #[must_use]
    pub fn decrease_factor(&self) -> Option<f64> {
        each!(self, params => params.decrease_factor(), custom => None)
    }
    /// The loss detection that the control brings along.
    #[must_use]
    pub fn timer_rule(&self) -> Option<TimerRule> {
        each!(self, params => params.timer_rule(), custom => None)
    }
    /// Which early ends of slow start the control knows; unknown where it is a user's own.
    #[must_use]
    pub fn hystart(&self) -> Option<HyStartUse> {
        each!(self, params => Some(params.hystart()), custom => None)
    }
    /// See [`ControlParams::sets_its_rate`].
    #[must_use]
    pub fn sets_its_rate(&self) -> bool {
        each!(self, params => params.sets_its_rate(), custom => false)
    }
    /// See [`ControlParams::needs_exact_marks`].
    #[must_use]
    pub fn needs_exact_marks(&self) -> bool {
        each!(self, params => params.needs_exact_marks(), custom => false)
    }
}

impl CongestionControl for Control {
    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        each!(self, c => c.on_sent(sent));
    }
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        each!(self, c => c.on_ack(ack));
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
    fn on_recovered(&mut self, event: &Recovered) {
        each!(self, c => c.on_recovered(event));
    }
    fn on_spurious(&mut self, event: &Spurious) {
        each!(self, c => c.on_spurious(event));
    }
    fn on_idle(&mut self, event: &Idle) {
        each!(self, c => c.on_idle(event));
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
    fn wants(&self) -> Wants {
        each!(self, c => c.wants())
    }
    fn state(&self) -> Vec<(&'static str, f64)> {
        each!(self, c => c.state())
    }
}
