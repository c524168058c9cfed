//! Reno (RFC 5681): slow start, congestion avoidance, and half the window at a loss.
//!
//! NewReno (RFC 6582) has the same window law. It differs in the recovery, which belongs to the
//! stack (`transport.recovery`), so `new-reno` also names this file.
//!
//! With delayed ACKs, the defaults grow the window by half per round trip in slow start and by one
//! segment per round trip in congestion avoidance. `avoidance = "acks"` is the other form that the
//! RFC allows (equation 3), and the form of ns-3: half a segment per round trip if every second
//! segment is acknowledged.
//!
//! `beta_ecn` is Alternative Backoff with ECN (ABE, RFC 8511): the share of the window that remains
//! after a mark in congestion avoidance. In slow start a mark counts as a loss (RFC 8511 §3).
//!
//! # Differs from Linux
//! - The reduction is taken from FlightSize (RFC 5681 §3.1 equation 4); Linux takes it from cwnd
//!   (`reduce_from = "cwnd"`).
//! - Slow start adds at most one segment per ACK; Linux adds all data that was acknowledged
//!   (`slow_start_limit`).
//! - Half of the window is rounded down to whole segments only if the stack counts in segments
//!   (`window_count`), as Linux does.
//!
//! # Not implemented
//! - Nothing of RFC 5681 §3.1 and §4.1; the recoveries of §3.2 and RFC 6582 belong to the endpoint.

use anabranch_core::registry::{Meta, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Ack, ControlParams, Family, HyStartUse, Init, Signal,
    classic::{Classic, Count as _, Law, Setup, Window},
    params::{EcnFactor, EcnFactorOrLoss, OrStack, ReductionBase, SlowStartLimit, WindowCount},
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "reno",
    title: "Reno",
    summary: "Adds one segment per round trip and halves the window at a loss. The baseline.",
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
        Source {
            id: "RFC 8511",
            items: &["§3", "§3.1"],
        },
    ],
};

/// How congestion avoidance counts acknowledged data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Avoidance {
    /// Adds one segment when a window's worth of bytes has been acknowledged (RFC 3465 §2.1).
    #[default]
    Bytes,
    /// Adds `smss² / cwnd` with every ACK, however much it acknowledges (RFC 5681 §3.1 equation 3).
    Acks,
}

/// Parameters of Reno.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Largest growth by one ACK in slow start (`L` of RFC 3465 §2.3; RFC 5681 §3.1 equation 2 has
    /// 1).
    pub slow_start_limit: SlowStartLimit,
    /// How congestion avoidance counts: `SMSS` per window of octets (RFC 3465 §2.1), or
    /// `SMSS² / cwnd` per ACK (RFC 5681 §3.1 equation 3).
    pub avoidance: Avoidance,
    /// In congestion avoidance every ACK adds another eighth of a segment, as in 4.4BSD (RFC 2525
    /// §2.6).
    pub extra_eighth: bool,
    /// The share of the window that remains after a mark in congestion avoidance: that of a loss,
    /// or a number (ABE, RFC 8511 §3.1: 0.8).
    pub beta_ecn: EcnFactorOrLoss,
    /// The base of a reduction: FlightSize (RFC 5681 §3.1 equation 4) or cwnd.
    pub reduce_from: OrStack<ReductionBase>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            slow_start_limit: SlowStartLimit::default(),
            avoidance: Avoidance::Bytes,
            extra_eighth: false,
            beta_ecn: EcnFactorOrLoss::default(),
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

/// Reno.
pub type Reno = Classic<RenoLaw>;

/// The window law of Reno, in octets.
#[derive(Debug)]
pub struct RenoLaw {
    avoidance: Avoidance,
    /// Additional bytes per ACK in congestion avoidance (`extra_eighth`).
    extra: u64,
    /// `beta_ecn` (RFC 8511 §3); `None` for the factor of a loss.
    beta_ecn: Option<f64>,
    count: WindowCount,
    smss: u64,
    /// Acknowledged since cwnd last grew in congestion avoidance.
    bytes_acked: u64,
}

impl RenoLaw {
    /// The law with this form of congestion avoidance.
    pub(super) const fn with(avoidance: Avoidance, init: &Init) -> Self {
        Self {
            avoidance,
            extra: 0,
            beta_ecn: None,
            count: init.stack.window_count,
            smss: init.smss.get(),
            bytes_acked: 0,
        }
    }

    /// RFC 5681 §3.1 equation 4.
    pub(super) fn half(&self, flight: u64) -> u64 {
        self.rounded(flight / 2)
    }

    /// A reduced window of `bytes` in the stack's count, at least two segments.
    pub(super) fn rounded(&self, bytes: u64) -> u64 {
        self.whole(bytes).max(2 * self.smss)
    }

    /// `bytes` in the stack's count, rounded down.
    pub(super) fn whole(&self, bytes: u64) -> u64 {
        match self.count {
            WindowCount::Bytes => bytes,
            WindowCount::Segments => bytes - bytes % self.smss,
        }
    }
}

impl Law for RenoLaw {
    type Params = Params;
    type Count = u64;
    /// `bytes_acked`.
    type Saved = u64;

    fn new(params: &Params, init: &Init) -> (Self, Setup) {
        let mut law = Self::with(params.avoidance, init);
        if params.extra_eighth {
            law.extra = law.smss / 8;
        }
        law.beta_ecn = params.beta_ecn.own().map(EcnFactor::get);
        let setup = Setup::new(params.slow_start_limit, params.reduce_from, true, init);
        (law, setup)
    }

    #[inline]
    fn avoid_congestion(&mut self, window: &mut Window<u64>, _ack: &Ack, acked: u64) {
        window.cwnd += self.extra;
        match self.avoidance {
            Avoidance::Bytes => {
                self.bytes_acked += acked;
                if self.bytes_acked >= window.cwnd {
                    self.bytes_acked -= window.cwnd;
                    window.cwnd += self.smss;
                }
            }
            Avoidance::Acks => window.cwnd += (self.smss * self.smss / window.cwnd).max(1),
        }
    }

    fn reduce(&mut self, window: &Window<u64>, flight: u64, signal: Signal) -> Window<u64> {
        Window::of(match self.beta_ecn {
            // RFC 8511 §3: only in congestion avoidance.
            Some(beta) if signal == Signal::EcnCe && !window.in_slow_start() => {
                // 0.8 × 14,480 may be a little below 11,584.
                self.rounded(u64::from_real(flight.real() * beta + 1e-3))
            }
            _ => self.half(flight),
        })
    }
    fn ssthresh_at_timeout(&mut self, _window: &Window<u64>, flight: u64) -> u64 {
        self.half(flight)
    }
    fn end_stage(&mut self) {
        self.bytes_acked = 0;
    }
    fn saved(&self) -> u64 {
        self.bytes_acked
    }
    fn restore(&mut self, bytes_acked: u64, restored: bool) {
        if restored {
            self.bytes_acked = bytes_acked;
        }
    }
}
