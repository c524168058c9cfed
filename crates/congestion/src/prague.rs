//! Prague (draft-briscoe-iccrg-prague-congestion-control-04): DCTCP adapted to the Internet.
//!
//! The share of marked bytes is averaged as in DCTCP, and a window with marks is reduced by half of
//! that average. Unlike DCTCP it grows under marks, by the unmarked bytes only (§2.4.3), so that in
//! equilibrium it has 2/p segments at a marking probability p: two marks per round trip, at any
//! rate. Transmission is paced, in bursts of at most 250 µs.
//!
//! **RTT independence** (§2.4.4). After `rtt_independent_after` round trips a connection behaves as
//! if its round-trip time were at least `rtt_virtual`: it averages and reduces once per virtual
//! round trip, and its growth per real round trip is scaled by the square of the ratio of real to
//! virtual round-trip time. Its rate is then that of a flow with a round-trip time of
//! `rtt_virtual`.
//!
//! Prague requires an exact echo, and ECT(1) to be classified as L4S: `transport.ecn = "l4s"`, the
//! default for this control. A loss halves the window (§2.4.6), independent of earlier marks.
//!
//! # Differs from the draft
//! - Windows are real numbers of segments, and never less than two after a reduction; the draft
//!   allows smaller windows by pacing.
//! - A loss in the round trip of a reduction by marks halves the window that remains after that
//!   reduction.
//!
//! # Differs from Linux
//! - `alpha` is a real number. The reference implementation is outside the kernel and is not
//!   compared.
//!
//! # Not implemented
//! - Detection of a Classic ECN queue and the fallback to Reno (§3.1); CUBIC's increase.

use anabranch_core::{
    parameters::Count,
    registry::{Meta, Source},
    units::{Duration, Instant},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Ack, ControlParams, Family, HyStartUse, Init, Signal, Wants,
    classic::{Classic, Law, Setup, Window},
    params::{DctcpGain, OrStack, ReductionBase, Share, SlowStartLimit, VirtualRtt},
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "prague",
    title: "Prague",
    summary: "The scalable control for L4S: two marks a round trip at any rate, paced, with a rate that depends little on the \
              round-trip time. Its queue is `dualpi2`.",
    sources: &[
        Source {
            id: "draft-briscoe-iccrg-prague-congestion-control-04",
            items: &["§2.4.1", "§2.4.2", "§2.4.3", "§2.4.4", "§2.4.6"],
        },
        Source {
            id: "RFC 9331",
            items: &["§4"],
        },
        Source {
            id: "RFC 8257",
            items: &["§3.3"],
        },
    ],
};

/// Parameters of Prague.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// `g`: the weight of the last virtual round trip in `alpha` (1/16).
    pub g: DctcpGain,
    /// `alpha` before the first mark: 1, so that the first reduction is Reno's.
    pub initial_alpha: Share,
    /// The smallest round-trip time that a connection assumes (25 ms).
    pub rtt_virtual: VirtualRtt,
    /// Number of round trips before RTT independence begins (500).
    pub rtt_independent_after: Count<1_000_000>,
    /// Largest growth by one ACK in slow start (`L` of RFC 3465 §2.3; RFC 5681 §3.1 equation 2 has
    /// 1).
    pub slow_start_limit: SlowStartLimit,
    /// The base of a reduction: cwnd, or FlightSize (RFC 5681 §3.1 equation 4).
    pub reduce_from: OrStack<ReductionBase>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            g: DctcpGain::new(0.0625),
            initial_alpha: Share::new(1.0),
            rtt_virtual: VirtualRtt::from_millis(25),
            rtt_independent_after: Count::new(500),
            slow_start_limit: SlowStartLimit::default(),
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
    fn sets_its_rate(&self) -> bool {
        true
    }
    fn needs_exact_marks(&self) -> bool {
        true
    }
    fn is_l4s(&self) -> bool {
        true
    }
}

/// Prague.
pub type Prague = Classic<PragueLaw>;

/// Duration of a paced burst at the pacing rate, in microseconds (§2.4.5).
const BURST_US: u16 = 250;

/// The window law of Prague, in segments.
#[derive(Debug)]
pub struct PragueLaw {
    g: f64,
    rtt_virtual: Duration,
    independent_after: u64,
    alpha: f64,
    /// A mark has been received.
    known: bool,
    /// Octets delivered and marked since `alpha` was last updated.
    delivered: u64,
    marked: u64,
    /// Time and round trip of that update.
    updated: Instant,
    round: u64,
    /// Time of the last acknowledgment, and the virtual round-trip time at that time.
    now: Instant,
    virtual_rtt: Duration,
    /// The square of the ratio of real to virtual round-trip time.
    growth: f64,
    /// No reduction by marks before this time.
    next_reduction: Instant,
}

impl PragueLaw {
    /// Updates the virtual round-trip time, which differs from the real one from
    /// `independent_after` rounds on.
    fn measure_rtt(&mut self, srtt: Duration, round: u64) {
        self.virtual_rtt = srtt;
        self.growth = 1.0;
        if round >= self.independent_after && srtt < self.rtt_virtual && !srtt.is_zero() {
            self.virtual_rtt = self.rtt_virtual;
            let ratio = srtt.as_secs_f64() / self.rtt_virtual.as_secs_f64();
            self.growth = ratio * ratio;
        }
    }
}

impl Law for PragueLaw {
    type Params = Params;
    type Count = f64;
    type Saved = ();

    fn new(params: &Params, init: &Init) -> (Self, Setup) {
        let law = Self {
            g: params.g.get(),
            rtt_virtual: params.rtt_virtual.get(),
            independent_after: u64::from(params.rtt_independent_after.get()),
            alpha: params.initial_alpha.get(),
            known: false,
            delivered: 0,
            marked: 0,
            updated: Instant::START,
            round: 0,
            now: Instant::START,
            virtual_rtt: Duration::ZERO,
            growth: 1.0,
            next_reduction: Instant::START,
        };
        let setup = Setup::new(params.slow_start_limit, params.reduce_from, true, init);
        (law, setup)
    }

    fn measure(&mut self, ack: &Ack) {
        self.now = ack.now;
        self.delivered += ack.delivered.get();
        self.marked += ack.ce_marked.get().min(ack.delivered.get());
        self.measure_rtt(ack.srtt, ack.round);
        if !self.known {
            // Before the first mark `alpha` keeps its initial value, and earlier data does not
            // count.
            self.known = self.marked > 0;
            self.delivered = ack.delivered.get();
            (self.round, self.updated) = (ack.round, ack.now);
            return;
        }
        let elapsed = ack.now.saturating_since(self.updated);
        if ack.round != self.round && elapsed >= self.virtual_rtt && self.delivered > 0 {
            // §2.4.1
            let share = self.marked as f64 / self.delivered as f64;
            self.alpha += self.g * (share - self.alpha);
            (self.delivered, self.marked) = (0, 0);
            (self.round, self.updated) = (ack.round, ack.now);
        }
    }

    fn avoid_congestion(&mut self, window: &mut Window<f64>, ack: &Ack, acked: f64) {
        // §2.4.3
        let marked = ack.ce_marked.get() as f64 / ack.acked.get().max(1) as f64;
        window.cwnd += self.growth * acked * (1.0 - marked.min(1.0)) / window.cwnd;
    }

    fn reduce(&mut self, window: &Window<f64>, flight: f64, signal: Signal) -> Window<f64> {
        match signal {
            Signal::Loss => Window::of((flight / 2.0).max(2.0)),
            // §2.4.2: once per virtual round trip.
            Signal::EcnCe if self.now < self.next_reduction => *window,
            Signal::EcnCe => {
                self.next_reduction = self.now.saturating_add(self.virtual_rtt);
                Window::of((flight * (1.0 - self.alpha / 2.0)).max(2.0))
            }
        }
    }
    fn ssthresh_at_timeout(&mut self, _window: &Window<f64>, flight: f64) -> f64 {
        (flight / 2.0).max(2.0)
    }
    fn wants(&self) -> Wants {
        Wants {
            grows_under_marks: true,
            burst_us: Some(BURST_US),
            ..Wants::default()
        }
    }
    fn saved(&self) {}
    /// `alpha`; `virtual_rtt`, in milliseconds.
    fn state(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("alpha", self.alpha),
            ("virtual_rtt", self.virtual_rtt.as_millis_f64()),
        ]
    }
}
