//! CUBIC (RFC 9438): the window follows a cubic function of the time since the last reduction, and
//! is never below the window of Reno.
//!
//! The older forms are parameters. Ha, Rhee and Xu (SIGOPS 2008) and early kernels reduce the
//! window by 0.2 and call that β. Here, as in the RFC, `beta` is the share that remains, so the
//! equivalent is `beta = 0.8`. `tcp_friendly = false` disables the Reno-friendly region, as in ns-3
//! up to 3.37 (with `beta = 0.7`).
//!
//! # Differs from Linux
//! The defaults are those of the RFC. The stack profile `linux-6.18` changes these:
//! - The reduction is taken from FlightSize (§4.6); Linux takes it from cwnd
//!   (`reduce_from = "cwnd"`).
//! - Before the first loss only the cubic function determines the window; Linux adds at least 5 %
//!   per round trip (`first_epoch_growth = 0.05`).
//! - Slow start adds at most one segment per ACK; Linux adds all data that was acknowledged
//!   (`slow_start_limit`).
//! - The Reno-friendly region is that of RFC 9438; Linux has that of RFC 8312
//!   (`reno_friendly = "rfc8312"`).
//! - A spurious reduction is undone completely (§4.9). Linux restores window and ssthresh, but
//!   keeps the W_max of the reduction, which also counts as the first loss (`undo_restores_w_max`).
//! - The window is counted in bytes. Linux counts whole segments (`count = "segments"`, see
//!   [`segments`] and [`kernel`]), and evaluates its function every 1/32 s (`cubic_interval`).
//!
//! Other differences:
//! - At the plateau of the cubic function, a window counted in bytes does not grow; Linux adds 1 %
//!   per round trip.
//! - Times are real numbers; Linux counts milliseconds.
//! - A congestion avoidance stage begins at the first ACK that may grow the window, as in Linux.
//!
//! # Differs from RFC 9438
//! - §4.4, §4.5: an ACK counts by the number of segments that it acknowledges, so that delayed ACKs
//!   do not slow the growth of the window; §4.3 always counts in this way.
//! - §4.3: if W_est is below cwnd in the Reno-friendly region, cwnd is kept.
//!
//! # Differs from RFC 8511
//! - `beta_ecn` is the share of the window that remains after a mark in congestion avoidance. Fast
//!   convergence (§4.7) and the Reno-friendly region (§4.3) keep `beta`: RFC 8511 does not mention
//!   them.
//!
//! # Not implemented
//! - Nothing of §4.

mod growth;
mod kernel;
mod params;
mod segments;
mod stage;

use anabranch_core::{
    registry::{Meta, Source},
    units::Instant,
};

use self::stage::{Epoch, Stage};
pub use self::{
    growth::{Growth, Octets},
    kernel::KernelSegments,
    params::Params,
    segments::Segments,
};
pub(super) use self::{
    params::{Form, cubic_params},
    stage::Constants,
};
use super::{
    Ack, Control, Idle, Init, Signal, StackHabits,
    classic::{Classic, Count as _, Law, Setup, Window},
    slow_start::Every,
    ticks, window,
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "cubic",
    title: "CUBIC",
    summary: "A cubic function of the time since the last loss: fast up to the window of then, \
              careful around it, fast again beyond. The default of Linux, Windows and macOS.",
    sources: &[
        Source {
            id: "RFC 9438",
            items: &["§4", "§5.8"],
        },
        Source {
            id: "RFC 8511",
            items: &["§3", "§3.1"],
        },
        Source {
            id: "Ha and Rhee, Computer Networks 55 (2011)",
            items: &["HyStart"],
        },
    ],
};

/// CUBIC counted in octets.
pub type Cubic = Classic<CubicLaw<Octets>, Every>;
/// CUBIC counted in segments.
pub type CubicInSegments = Classic<CubicLaw<Segments>, Every>;
/// CUBIC counted in segments by a kernel clock.
pub type CubicInKernelSegments = Classic<CubicLaw<KernelSegments>, Every>;

/// Builds CUBIC in the form that the parameters and the stack select.
pub(super) fn build(params: &Params, init: &Init) -> Control {
    match params.form(init) {
        Form::Octets => Control::Cubic(Classic::new(params, init)),
        Form::Segments => Control::CubicInSegments(Classic::new(params, init)),
        Form::KernelSegments => Control::CubicInKernelSegments(Classic::new(params, init)),
    }
}

/// The window law of CUBIC. Windows are in segments, as in the RFC's equations.
#[derive(Debug)]
pub struct CubicLaw<G> {
    constants: Constants,
    state: State<G>,
}

/// State that a reduction changes in addition to the window, and that §4.9 therefore restores.
#[derive(Debug, Clone, Copy)]
pub struct State<G> {
    /// Plateau of the cubic function. `None`: the window at the start of the next stage of
    /// congestion avoidance (§4.8, §4.10).
    w_max: Option<f64>,
    /// cwnd before the last reduction.
    cwnd_prior: f64,
    /// The current stage of congestion avoidance.
    epoch: Option<Epoch>,
    /// Neither a loss nor a mark has occurred.
    first_epoch: bool,
    growth: G,
}

impl<G: Growth> State<G> {
    /// §4.6, and the part of it that also applies to a timeout.
    fn on_reduction(&mut self, cwnd: f64) {
        self.cwnd_prior = cwnd;
        self.growth.on_reduction();
    }
}

impl<G: Growth> CubicLaw<G> {
    pub(super) fn with(constants: Constants, init: &Init) -> Self {
        let initial_cwnd = G::whole(f64::of(init.initial_cwnd, init.smss).max(1.0));
        Self {
            constants,
            state: State {
                w_max: None,
                cwnd_prior: initial_cwnd,
                epoch: None,
                first_epoch: true,
                growth: G::new(&init.stack),
            },
        }
    }

    /// The plateau, which is restored by a restart that keeps W_max.
    pub(super) const fn w_max(&mut self) -> &mut Option<f64> {
        &mut self.state.w_max
    }
}

impl<G: Growth> Law for CubicLaw<G> {
    type Params = Params;
    type Count = f64;
    type Saved = State<G>;

    fn new(params: &Params, init: &Init) -> (Self, Setup) {
        (Self::with(params.constants(init), init), params.setup(init))
    }

    fn whole(&self, window: f64) -> f64 {
        G::whole(window)
    }
    #[inline]
    fn counted(&self, acked: f64) -> f64 {
        G::counted(acked)
    }

    fn on_unused(&mut self, ack: &Ack) {
        if let Some(epoch) = &mut self.state.epoch {
            epoch.paused.get_or_insert(ack.now);
        }
    }

    fn on_hystart_exit(&mut self, window: &Window<f64>) -> bool {
        if self.state.first_epoch {
            self.state.cwnd_prior = window.cwnd;
        }
        G::COUNTS_END_OF_SLOW_START
    }

    #[inline]
    fn avoid_congestion(&mut self, window: &mut Window<f64>, ack: &Ack, acked: f64) {
        let (law, state) = (&self.constants, &mut self.state);
        let epoch = state
            .epoch
            .get_or_insert_with(|| Epoch::begin(&mut state.w_max, law, window.cwnd, ack.now));
        epoch.resume(ack.now);
        let current = Stage {
            law,
            epoch,
            cwnd_prior: state.cwnd_prior,
            first_epoch: state.first_epoch,
        };
        state.growth.grow(window, current, ack, acked);
    }

    fn reduce(&mut self, window: &Window<f64>, flight: f64, signal: Signal) -> Window<f64> {
        let (law, state, cwnd) = (&self.constants, &mut self.state, window.cwnd);
        // §4.7.
        state.w_max = Some(match state.w_max {
            Some(w_max) if law.fast_convergence && cwnd < w_max => {
                G::whole(cwnd * (1.0 + law.beta) / 2.0)
            }
            _ => cwnd,
        });
        // §4.6.
        state.on_reduction(cwnd);
        state.first_epoch = false;
        let beta = match law.beta_ecn {
            // RFC 8511 §3: only in congestion avoidance.
            Some(beta) if signal == Signal::EcnCe && !window.in_slow_start() => beta,
            _ => law.beta,
        };
        let reduced = G::whole(flight * beta);
        let least = match signal {
            Signal::Loss => 2.0,
            Signal::EcnCe => 1.0,
        };
        Window {
            cwnd: reduced.max(least),
            ssthresh: reduced.max(2.0),
        }
    }
    fn ssthresh_at_timeout(&mut self, window: &Window<f64>, flight: f64) -> f64 {
        self.state.on_reduction(window.cwnd);
        G::whole(flight * self.constants.beta).max(2.0)
    }
    fn on_timeout(&mut self) {
        // §4.8.
        self.state.w_max = None;
        self.state.first_epoch = false;
    }
    fn end_stage(&mut self) {
        self.state.epoch = None;
        self.state.growth.end_stage();
    }
    fn on_idle(&mut self, event: &Idle) {
        if event.idle <= event.rto
            && let Some(epoch) = &mut self.state.epoch
        {
            let began = Instant::START.saturating_add(
                event
                    .now
                    .saturating_since(Instant::START)
                    .saturating_sub(event.idle),
            );
            epoch.paused.get_or_insert(began);
        }
    }
    fn saved(&self) -> State<G> {
        self.state
    }
    fn restore(&mut self, state: State<G>, restored: bool) {
        // §4.9.
        if restored && self.constants.undo_restores_w_max {
            self.state = state;
        }
    }

    /// `w_max`, `w_est` in segments, `k` in seconds; undefined values are omitted.
    fn state(&self) -> Vec<(&'static str, f64)> {
        let mut state = Vec::new();
        state.extend(self.state.w_max.map(|w_max| ("w_max", w_max)));
        if let Some(epoch) = &self.state.epoch {
            state.push(("k", epoch.k));
            if self.constants.tcp_friendly {
                state.push(("w_est", epoch.w_est));
            }
        }
        state
    }
}
