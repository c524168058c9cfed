//! BIC (Xu, Harfoush and Rhee, INFOCOM 2004): a binary search for the window that the path bears.
//!
//! The window at the last loss is the maximum, the window of now the minimum; the window moves
//! towards the middle between them, per round trip by `s_max` segments at most (additive increase)
//! and `s_min` at least (the search is over). Beyond the maximum the search for a new one begins slowly and doubles its
//! steps up to `s_max` (max probing). Where a loss comes before the old maximum is reached, others
//! want their share, and the new maximum is lowered (fast convergence). Below `low_window` it is Reno.
//!
//! `beta` is what a reduction leaves, as everywhere here: 0.875, where the paper takes 0.125 away.
//!
//! # Differs from Linux
//! - What Linux's module does is not compared here; the paper is the source.
//! - See [`super::reno`] for slow start.
//!
//! # Differs from the paper
//! - An ACK counts by the segments that it acknowledges, so that delayed ACKs do not slow the window
//!   down, and adds no more than these: less than `s_max` where the window is not larger than that.
//! - Fast convergence compares with a maximum that was seen, not with the pseudocode's placeholder
//!   for an unknown one, which every window is below.
//! - A timeout reduces ssthresh as a loss does and leaves the search's bounds as they are; the paper
//!   speaks of fast recovery alone.
//!
//! # Not implemented
//! - Nothing of §III.

use anabranch_core::registry::{Meta, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Ack, ControlParams, Family, HyStartUse, Init, Signal,
    classic::{Classic, Law, Setup, Window},
    params::{DecreaseFactor, OrStack, Packets, ReductionBase, SearchStep, SlowStartLimit},
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "bic",
    title: "BIC",
    summary: "A binary search between the windows before and after the last loss. The default of \
              Linux before CUBIC.",
    sources: &[Source {
        id: "Xu, Harfoush and Rhee, INFOCOM 2004",
        items: &["§III"],
    }],
};

/// Parameters of BIC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// `S_max`: the most that a round trip adds (§III: 32).
    pub s_max: Packets,
    /// `S_min`: the least that a round trip adds, in segments (§III: 0.01).
    pub s_min: SearchStep,
    /// The share of the window that a loss leaves (§III: 0.875, the paper's `1 - beta`).
    pub beta: DecreaseFactor,
    /// The window below which BIC is Reno (§III: 14).
    pub low_window: Packets,
    /// A loss before the old maximum is reached lowers the new one to the middle of the window before and after it (§III).
    pub fast_convergence: bool,
    /// What one ACK adds in slow start at most (`L` of RFC 3465 §2.3; RFC 5681 §3.1 equation 2 has 1).
    pub slow_start_limit: SlowStartLimit,
    /// What a reduction is taken from: FlightSize (RFC 5681 §3.1 equation 4) or cwnd.
    pub reduce_from: OrStack<ReductionBase>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            s_max: Packets::new(32),
            s_min: SearchStep::new(0.01),
            beta: DecreaseFactor::new(0.875),
            low_window: Packets::new(14),
            fast_convergence: true,
            slow_start_limit: SlowStartLimit::default(),
            reduce_from: OrStack::Stack,
        }
    }
}

impl ControlParams for Params {
    const FAMILY: Family = Family::LossBased;

    fn hystart(&self) -> HyStartUse {
        HyStartUse::Rfc9406
    }
}

/// BIC.
pub type Bic = Classic<BicLaw>;

/// The window law of BIC. Windows are in segments, as in the paper.
#[derive(Debug)]
pub struct BicLaw {
    s_max: f64,
    s_min: f64,
    beta: f64,
    low_window: f64,
    fast_convergence: bool,
    search: Search,
}

/// State of the search.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    /// Infinite while it is unknown.
    max_win: f64,
    /// Max probing is under way.
    probing: Option<Probing>,
}

/// Slow start beyond the old maximum.
#[derive(Debug, Clone, Copy)]
struct Probing {
    /// What a round trip adds.
    step: f64,
    /// The window at which the step doubles.
    target: f64,
}

impl BicLaw {
    /// What `flight` segments are reduced to.
    fn reduced(&self, cwnd: f64, flight: f64) -> f64 {
        let factor = if cwnd < self.low_window {
            0.5
        } else {
            self.beta
        };
        (flight * factor).max(2.0)
    }
}

impl Law for BicLaw {
    type Params = Params;
    type Count = f64;
    type Saved = Search;

    fn new(params: &Params, init: &Init) -> (Self, Setup) {
        let law = Self {
            s_max: params.s_max.as_f64(),
            s_min: params.s_min.get(),
            beta: params.beta.get(),
            low_window: params.low_window.as_f64(),
            fast_convergence: params.fast_convergence,
            search: Search {
                max_win: f64::INFINITY,
                probing: None,
            },
        };
        let setup = Setup::new(params.slow_start_limit, params.reduce_from, true, init);
        (law, setup)
    }

    /// §III.
    fn avoid_congestion(&mut self, window: &mut Window<f64>, _ack: &Ack, acked: f64) {
        let (s_min, s_max) = (self.s_min, self.s_max);
        let search = &mut self.search;
        let cwnd = window.cwnd;
        if cwnd < self.low_window {
            window.cwnd += acked / cwnd;
            return;
        }
        let step = match search.probing {
            Some(probing) => probing.step,
            // Every ACK makes the window the new minimum, so the target is always halfway on.
            None => ((search.max_win - cwnd) / 2.0).min(s_max).max(s_min),
        };
        window.cwnd += acked * (step / cwnd).min(1.0);
        let cwnd = window.cwnd;
        match &mut search.probing {
            None if cwnd < search.max_win => {}
            None => {
                search.max_win = f64::INFINITY;
                search.probing = Some(Probing {
                    step: 1.0,
                    target: cwnd + 1.0,
                });
            }
            Some(probing) => {
                if cwnd >= probing.target {
                    probing.step *= 2.0;
                    probing.target = cwnd + probing.step;
                }
                if probing.step >= s_max {
                    search.probing = None;
                }
            }
        }
    }

    fn reduce(&mut self, window: &Window<f64>, flight: f64, _signal: Signal) -> Window<f64> {
        let cwnd = window.cwnd;
        let reduced = self.reduced(cwnd, flight);
        let search = &mut self.search;
        if cwnd >= self.low_window {
            let is_early = cwnd < search.max_win && search.max_win.is_finite();
            search.max_win = if self.fast_convergence && is_early {
                f64::midpoint(cwnd, reduced)
            } else {
                cwnd
            };
            search.probing = None;
        }
        Window::of(reduced)
    }
    fn ssthresh_at_timeout(&mut self, window: &Window<f64>, flight: f64) -> f64 {
        self.reduced(window.cwnd, flight)
    }
    fn saved(&self) -> Search {
        self.search
    }
    fn restore(&mut self, search: Search, restored: bool) {
        if restored {
            self.search = search;
        }
    }
    /// `max_win` in segments, while a maximum is known, and `probing`, the step of max probing.
    fn state(&self) -> Vec<(&'static str, f64)> {
        let mut state = Vec::new();
        if self.search.max_win.is_finite() {
            state.push(("max_win", self.search.max_win));
        }
        state.extend(self.search.probing.map(|probing| ("probing", probing.step)));
        state
    }
}
