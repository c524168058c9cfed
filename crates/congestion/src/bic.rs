//! BIC (Xu, Harfoush and Rhee, INFOCOM 2004): a binary search for the capacity of the path.
//!
//! The window at the last loss is the maximum, and the current window is the minimum. The window
//! moves towards the middle between them, per round trip by at most `s_max` segments (additive
//! increase) and at least `s_min` (end of the search). Beyond the maximum, the search for a new one
//! starts slowly and doubles its steps up to `s_max` (max probing). If a loss occurs below the old
//! maximum, the new maximum is lowered to leave capacity to other flows (fast convergence). Below
//! `low_window` BIC is Reno.
//!
//! `beta` is the share that remains after a reduction, as in all controls here: 0.875, where the
//! paper reduces by 0.125.
//!
//! # Linux
//! `form = "linux"`, the default of `stack = "linux"`, is Linux's module; see [`linux`].
//!
//! # Differs from the paper
//! - An ACK counts by the number of segments that it acknowledges, so that delayed ACKs do not slow
//!   the growth of the window. It adds at most this number, which is less than `s_max` if the
//!   window is no larger than `s_max`.
//! - Fast convergence compares with a maximum that was observed, not with the pseudocode's
//!   placeholder for an unknown one, which exceeds every window.
//! - A timeout reduces ssthresh as a loss does and keeps the bounds of the search; the paper covers
//!   only fast recovery.
//!
//! # Not implemented
//! - Nothing of §III.

mod linux;

use anabranch_core::{
    registry::{Meta, Source},
    units::Bytes,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::linux::Linux;
use super::{
    Ack, ControlParams, Family, HyStartUse, Init, Signal,
    classic::{Classic, Law, Setup, Window},
    params::{
        DecreaseFactor, DecreaseFactorOrStack, Form, OrStack, Packets, ReductionBase, SearchStep,
        SearchStepOrStack, SlowStartLimit,
    },
    window::{SegmentCount, rounded_up, whole_segments},
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
    /// As published, or as in Linux.
    pub form: OrStack<Form>,
    /// `S_max`: largest growth per round trip (§III: 32; Linux: 16).
    pub s_max: OrStack<Packets>,
    /// `S_min`: smallest growth per round trip, in segments (§III: 0.01; Linux: 0.2).
    pub s_min: SearchStepOrStack,
    /// The share of the window that remains after a loss (§III: 0.875, the paper's `1 - beta`;
    /// Linux: 819 of 1024).
    pub beta: DecreaseFactorOrStack,
    /// The window below which BIC is Reno (§III: 14).
    pub low_window: Packets,
    /// A loss below the old maximum lowers the new one to the middle of the window before and after
    /// the reduction (§III).
    pub fast_convergence: bool,
    /// Largest growth by one ACK in slow start (`L` of RFC 3465 §2.3; RFC 5681 §3.1 equation 2 has
    /// 1).
    pub slow_start_limit: SlowStartLimit,
    /// The base of a reduction: FlightSize (RFC 5681 §3.1 equation 4) or cwnd.
    pub reduce_from: OrStack<ReductionBase>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            form: OrStack::Stack,
            s_max: OrStack::Stack,
            s_min: SearchStepOrStack::default(),
            beta: DecreaseFactorOrStack::default(),
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
    form: Form,
    smss: Bytes,
    search: Search,
}

/// State of the search.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    /// Infinite while unknown.
    max_win: f64,
    /// Max probing is in progress.
    probing: Option<Probing>,
    /// [`Form::Linux`] only.
    linux: Linux,
}

/// Slow start beyond the old maximum.
#[derive(Debug, Clone, Copy)]
struct Probing {
    /// Growth per round trip.
    step: f64,
    /// The window at which the step doubles.
    target: f64,
}

impl BicLaw {
    /// The window after a reduction from `flight` segments.
    fn reduced(&self, cwnd: f64, flight: f64) -> f64 {
        let is_low = match self.form {
            Form::Published => cwnd < self.low_window,
            Form::Linux => cwnd <= self.low_window,
        };
        let factor = if is_low { 0.5 } else { self.beta };
        self.whole(flight * factor).max(2.0)
    }

    /// Whether a loss at this window sets the maximum.
    fn searches(&self, cwnd: f64) -> bool {
        self.form == Form::Linux || cwnd >= self.low_window
    }
}

impl Law for BicLaw {
    type Params = Params;
    type Count = f64;
    type Saved = Search;

    fn new(params: &Params, init: &Init) -> (Self, Setup) {
        let form = params.form.or(init.stack.form);
        let (s_max, s_min, beta) = match form {
            Form::Published => (32, 0.01, 0.875),
            Form::Linux => (16, 0.2, 819.0 / 1024.0),
        };
        let s_min = params.s_min.or(SearchStep::new(s_min)).get();
        let law = Self {
            s_max: params.s_max.or(Packets::new(s_max)).as_f64(),
            s_min,
            beta: params.beta.or(DecreaseFactor::new(beta)).get(),
            low_window: params.low_window.as_f64(),
            fast_convergence: params.fast_convergence,
            form,
            smss: init.smss,
            search: Search {
                max_win: f64::INFINITY,
                probing: None,
                linux: Linux::new(s_min),
            },
        };
        let setup = Setup::new(params.slow_start_limit, params.reduce_from, true, init);
        (law, setup)
    }

    fn whole(&self, window: f64) -> f64 {
        match self.form {
            Form::Published => window,
            Form::Linux => whole_segments(window),
        }
    }
    #[inline]
    fn counted(&self, acked: f64) -> f64 {
        match self.form {
            Form::Published => acked,
            Form::Linux => rounded_up(acked),
        }
    }

    #[inline]
    fn measure(&mut self, ack: &Ack) {
        if self.form == Form::Linux && !ack.in_recovery && ack.acked > Bytes::ZERO {
            let acked = rounded_up(ack.acked.segments(self.smss));
            self.search.linux.measure(acked);
        }
    }

    /// §III.
    fn avoid_congestion(&mut self, window: &mut Window<f64>, _ack: &Ack, acked: f64) {
        let (s_min, s_max) = (self.s_min, self.s_max);
        let search = &mut self.search;
        if self.form == Form::Linux {
            let bounds = (search.max_win, s_max, self.low_window);
            search.linux.grow(window, acked, bounds);
            return;
        }
        let cwnd = window.cwnd;
        if cwnd < self.low_window {
            window.cwnd += acked / cwnd;
            return;
        }
        let step = match search.probing {
            Some(probing) => probing.step,
            // Every ACK makes the window the new minimum, so the target is always halfway to the
            // maximum.
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
        if self.searches(cwnd) {
            let max_win = self.search.max_win;
            let is_early = cwnd < max_win && max_win.is_finite();
            self.search.max_win = if self.fast_convergence && is_early {
                self.whole(f64::midpoint(cwnd, reduced))
            } else {
                cwnd
            };
            self.search.probing = None;
        }
        Window::of(reduced)
    }
    fn ssthresh_at_timeout(&mut self, window: &Window<f64>, flight: f64) -> f64 {
        self.reduced(window.cwnd, flight)
    }
    fn on_timeout(&mut self) {
        if self.form == Form::Linux {
            self.search.max_win = f64::INFINITY;
            self.search.linux = Linux::new(self.s_min);
        }
    }
    fn saved(&self) -> Search {
        self.search
    }
    fn restore(&mut self, search: Search, restored: bool) {
        if restored {
            self.search = search;
        }
    }
    /// `max_win` in segments, if a maximum is known, and `probing`, the step of max probing.
    fn state(&self) -> Vec<(&'static str, f64)> {
        let mut state = Vec::new();
        if self.search.max_win.is_finite() {
            state.push(("max_win", self.search.max_win));
        }
        state.extend(self.search.probing.map(|probing| ("probing", probing.step)));
        state
    }
}
