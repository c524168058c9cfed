//! Reno (RFC 5681): slow start, congestion avoidance, and half the window at a loss.
//!
//! NewReno (RFC 6582) has the same window law; what differs is the recovery, and that is the
//! stack's (`transport.recovery`), so `new-reno` names this file too.
//!
//! With delayed ACKs the defaults grow the window by half in a round trip of slow start and by one
//! segment in one of congestion avoidance. `avoidance = "acks"` is the other form that the RFC
//! allows (equation 3), and ns-3's: half a segment per round trip with an ACK for every second
//! segment.
//!
//! # Differs from Linux
//! - The reduction is taken from FlightSize (RFC 5681 §3.1 equation 4); Linux takes it from cwnd
//!   (`reduce_from = "cwnd"`).
//! - Slow start adds one segment per ACK at most; Linux adds all that was acknowledged
//!   (`slow_start_limit`).
//! - Half of the window is rounded down to whole segments only where the stack counts so
//!   (`window_count`), as Linux does.
//!
//! # Not implemented
//! - Nothing of RFC 5681 §3.1 and §4.1; the recoveries of §3.2 and RFC 6582 are the endpoint's.

use anabranch_core::{
    registry::{Meta, Source},
    units::Bytes,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Ack, Congestion, CongestionControl, ControlParams, Family, HyStartUse, Idle, Init, Recovered,
    Rto, Spurious, Unvalidated,
    hystart::{Exit, Kind, Settings, Verdict},
    params::{OrStack, ReductionBase, SlowStartLimit, WindowCount},
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "reno",
    title: "Reno",
    summary: "One segment more per round trip, half the window at a loss. The yardstick.",
    sources: &[
        Source {
            id: "RFC 5681",
            items: &["§3.1", "§3.2", "§4.1"],
        },
        Source {
            id: "RFC 3465",
            items: &["§2.1", "§2.3"],
        },
        Source {
            id: "RFC 4015",
            items: &["§3"],
        },
    ],
};

/// How congestion avoidance counts what is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Avoidance {
    /// One segment more whenever a window's worth of bytes has been acknowledged (RFC 3465 §2.1).
    #[default]
    Bytes,
    /// `smss² / cwnd` more with every ACK, whatever it acknowledges (RFC 5681 §3.1 equation 3).
    Acks,
}

/// Parameters of Reno.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// What one ACK adds in slow start at most (`L` of RFC 3465 §2.3; RFC 5681 §3.1 equation 2
    /// has 1).
    pub slow_start_limit: SlowStartLimit,
    /// How congestion avoidance counts what is acknowledged.
    pub avoidance: Avoidance,
    /// In congestion avoidance every ACK adds an eighth of a segment besides, as 4.4BSD did (RFC 2525 §2.6).
    pub extra_eighth: bool,
    /// What a reduction is taken from.
    pub reduce_from: OrStack<ReductionBase>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            slow_start_limit: SlowStartLimit::default(),
            avoidance: Avoidance::Bytes,
            extra_eighth: false,
            reduce_from: OrStack::Stack,
        }
    }
}

impl ControlParams for Params {
    const FAMILY: Family = Family::LossBased;

    fn decrease_factor(&self) -> Option<f64> {
        Some(0.5)
    }
    fn hystart(&self) -> HyStartUse {
        HyStartUse::Rfc9406
    }
}

/// Reno at work, in octets.
#[derive(Debug)]
pub struct Reno {
    avoidance: Avoidance,
    /// Bytes that every ACK adds in congestion avoidance besides.
    extra: u64,
    reduce_from: ReductionBase,
    count: WindowCount,
    /// In bytes.
    slow_start_limit: f64,
    /// Boxed: most runs have none, and slow start is short.
    hystart: Option<Box<Exit>>,
    smss: u64,
    initial_cwnd: u64,
    window: Window,
    /// What a spurious reduction is taken back to (RFC 4015 §3).
    undo: Option<Window>,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    cwnd: u64,
    /// `u64::MAX` before the first reduction.
    ssthresh: u64,
    /// Acknowledged since cwnd last grew in congestion avoidance.
    bytes_acked: u64,
}

impl Reno {
    /// A control before its first acknowledgment.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        let smss = init.smss.get();
        let initial_cwnd = init.initial_cwnd.get().max(smss);
        let hystart = match init.stack.hystart {
            Kind::Rfc9406 => Kind::Rfc9406,
            Kind::Off | Kind::Linux | Kind::HaRhee => Kind::Off,
        };
        Self {
            avoidance: params.avoidance,
            extra: if params.extra_eighth { smss / 8 } else { 0 },
            reduce_from: params.reduce_from.or(init.stack.reduce_from),
            count: init.stack.window_count,
            slow_start_limit: smss as f64
                * params
                    .slow_start_limit
                    .segments(init, OrStack::Own(hystart)),
            // Linux's variant is CUBIC's alone.
            hystart: Exit::new(hystart, Settings::LINUX, init.stack.paced),
            smss,
            initial_cwnd,
            window: Window {
                cwnd: initial_cwnd,
                ssthresh: u64::MAX,
                bytes_acked: 0,
            },
            undo: None,
        }
    }

    fn avoid_congestion(&mut self, acked: u64) {
        let window = &mut self.window;
        window.cwnd += self.extra;
        match self.avoidance {
            Avoidance::Bytes => {
                window.bytes_acked += acked;
                if window.bytes_acked >= window.cwnd {
                    window.bytes_acked -= window.cwnd;
                    window.cwnd += self.smss;
                }
            }
            Avoidance::Acks => window.cwnd += (self.smss * self.smss / window.cwnd).max(1),
        }
    }

    /// The window and ssthresh fall to `ssthresh`.
    pub(super) fn reduce_to(&mut self, ssthresh: Bytes) {
        self.reduce(ssthresh, ssthresh);
    }

    /// Reduced to these two.
    pub(super) fn reduce(&mut self, cwnd: Bytes, ssthresh: Bytes) {
        self.undo = Some(self.window);
        self.window = Window {
            cwnd: cwnd.get(),
            ssthresh: ssthresh.get(),
            bytes_acked: 0,
        };
        self.leave_slow_start();
    }

    /// The window and ssthresh become `window`. An undo still restores what was before the reduction.
    pub(super) const fn set(&mut self, window: Bytes) {
        self.window.cwnd = window.get();
        self.window.ssthresh = window.get();
    }

    /// One segment is left and slow start begins; ssthresh becomes `ssthresh` if there is one.
    pub(super) fn collapse(&mut self, ssthresh: Option<Bytes>) {
        if let Some(ssthresh) = ssthresh {
            self.undo = Some(self.window);
            self.window.ssthresh = ssthresh.get();
        }
        self.window.cwnd = self.smss;
        self.window.bytes_acked = 0;
        self.leave_slow_start();
    }

    fn leave_slow_start(&mut self) {
        if let Some(hystart) = &mut self.hystart {
            hystart.reset();
        }
    }

    /// What a loss or a mark is taken from.
    pub(super) fn flight(&self, event: &Congestion) -> Bytes {
        self.reduce_from.on_congestion(event.in_flight, self.cwnd())
    }

    /// What a timeout is taken from.
    pub(super) fn flight_at_timeout(&self, event: &Rto) -> Bytes {
        self.reduce_from.on_rto(event.in_flight, self.cwnd())
    }

    /// RFC 5681 §3.1 equation 4.
    pub(super) fn half(&self, flight: Bytes) -> Bytes {
        self.counted(flight / 2)
    }

    /// What a window of `bytes` comes to in the stack's count: two segments at least.
    pub(super) fn counted(&self, bytes: Bytes) -> Bytes {
        let bytes = bytes.get();
        let counted = match self.count {
            WindowCount::Bytes => bytes,
            WindowCount::Segments => bytes - bytes % self.smss,
        };
        Bytes::new(counted.max(2 * self.smss))
    }
}

/// Whole bytes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-int cast saturates"
)]
const fn whole(bytes: f64) -> u64 {
    bytes as u64
}

impl CongestionControl for Reno {
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if ack.in_recovery || !ack.cwnd_limited || ack.acked == Bytes::ZERO {
            return;
        }
        let acked = ack.acked.get();
        let window = &mut self.window;
        if window.cwnd < window.ssthresh {
            // RFC 5681 §3.1 equation 2.
            let mut growth = (acked as f64).min(self.slow_start_limit);
            if let Some(hystart) = &mut self.hystart {
                match hystart.on_ack(ack, window.cwnd as f64 / self.smss as f64) {
                    Verdict::Grow(share) => growth *= share,
                    Verdict::End => {
                        window.ssthresh = window.cwnd;
                        return;
                    }
                }
            }
            window.cwnd = (window.cwnd + whole(growth)).min(window.ssthresh);
        } else {
            self.avoid_congestion(acked);
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.reduce_to(self.half(self.flight(event)));
    }

    fn on_rto(&mut self, event: &Rto) {
        // RFC 5681 §3.1: ssthresh is held when the timer expires again for the same segment.
        let ssthresh = (event.consecutive <= 1).then(|| self.half(self.flight_at_timeout(event)));
        self.collapse(ssthresh);
    }

    fn on_recovered(&mut self, event: &Recovered) {
        if let Some(limit) = event.cwnd_limit {
            self.window.cwnd = self.window.cwnd.min(limit.get());
        }
    }

    fn on_spurious(&mut self, _event: &Spurious) {
        if let Some(undo) = self.undo.take()
            && self.window.cwnd < undo.cwnd
        {
            self.window = undo;
        }
    }

    fn on_lost_syns(&mut self) {
        self.window.cwnd = self.smss;
    }
    fn on_idle(&mut self, event: &Idle) {
        if event.idle > event.rto {
            let cwnd = self.window.cwnd as f64;
            let smss = self.smss as f64;
            let ssthresh = event.restart_ssthresh(cwnd / smss, 0.0) * smss;
            let window = event.restart_window(cwnd, self.initial_cwnd as f64);
            self.window.ssthresh = self.window.ssthresh.max(whole(ssthresh));
            self.window.cwnd = whole(window).max(self.smss);
            self.window.bytes_acked = 0;
        }
    }

    fn on_unvalidated(&mut self, event: &Unvalidated) {
        let window = &mut self.window;
        window.bytes_acked = 0;
        match event {
            Unvalidated::PeriodOver => {
                window.ssthresh = window.ssthresh.max(window.cwnd / 4 * 3);
                window.cwnd = (window.cwnd / 2).max(self.initial_cwnd.min(window.cwnd));
            }
            Unvalidated::Recovered { window: most } => {
                let most = most.get().max(2 * self.smss);
                window.cwnd = window.cwnd.min(most);
                window.ssthresh = window.ssthresh.min(most);
            }
        }
    }

    #[inline]
    fn cwnd(&self) -> Bytes {
        Bytes::new(self.window.cwnd)
    }
    fn ssthresh(&self) -> Option<Bytes> {
        let ssthresh = self.window.ssthresh;
        (ssthresh != u64::MAX).then(|| Bytes::new(ssthresh))
    }
}

/// What tells a control that counts as Reno does from Reno.
pub trait Variant: std::fmt::Debug + Send {
    /// An acknowledgment has come, before Reno hears of it.
    fn observe(&mut self, ack: &Ack);
    /// A loss or a mark.
    fn on_congestion(&mut self, reno: &mut Reno, event: &Congestion) {
        reno.on_congestion(event);
    }
    /// The retransmission timer has expired.
    fn on_rto(&mut self, reno: &mut Reno, event: &Rto) {
        reno.on_rto(event);
    }
    /// A recovery ends, before Reno hears of it.
    fn on_recovered(&mut self, _reno: &mut Reno) {}
    /// The last reduction was spurious.
    fn on_spurious(&mut self) {}
    /// Sending starts again after a pause.
    fn on_idle(&mut self) {}
    /// Names and values of inner state for traces.
    fn state(&self) -> Vec<(&'static str, f64)>;
}

/// Reno with another law at work.
#[derive(Debug)]
pub struct Varied<V> {
    reno: Reno,
    law: V,
}

impl<V: Variant> Varied<V> {
    /// `law` over Reno.
    pub(super) const fn with(reno: Reno, law: V) -> Self {
        Self { reno, law }
    }
}

impl<V: Variant> CongestionControl for Varied<V> {
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        self.law.observe(ack);
        self.reno.on_ack(ack);
    }
    fn on_congestion(&mut self, event: &Congestion) {
        self.law.on_congestion(&mut self.reno, event);
    }
    fn on_rto(&mut self, event: &Rto) {
        self.law.on_rto(&mut self.reno, event);
    }
    fn on_recovered(&mut self, event: &Recovered) {
        self.law.on_recovered(&mut self.reno);
        self.reno.on_recovered(event);
    }
    fn on_spurious(&mut self, event: &Spurious) {
        self.law.on_spurious();
        self.reno.on_spurious(event);
    }
    fn on_lost_syns(&mut self) {
        self.reno.on_lost_syns();
    }
    fn on_idle(&mut self, event: &Idle) {
        self.law.on_idle();
        self.reno.on_idle(event);
    }
    fn on_unvalidated(&mut self, event: &Unvalidated) {
        self.reno.on_unvalidated(event);
    }
    #[inline]
    fn cwnd(&self) -> Bytes {
        self.reno.cwnd()
    }
    fn ssthresh(&self) -> Option<Bytes> {
        self.reno.ssthresh()
    }
    fn state(&self) -> Vec<(&'static str, f64)> {
        self.law.state()
    }
}
