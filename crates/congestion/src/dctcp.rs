//! Data Center TCP (RFC 8257): Reno that gives up only as much of its window as was marked.
//!
//! Switches mark what finds more than a few packets in their queue; `alpha` estimates the share of
//! bytes that were marked, once per window, and a window with marks is reduced by half of that
//! share. The exact echo that this needs is the stack's: `transport.ecn = "dctcp"` (RFC 8257 §3.2,
//! chosen where nothing else is written) or `"accecn"`. With the first, every packet of the connection is ECN-capable,
//! SYN, SYN-ACK, RST, pure acknowledgments and retransmissions too (§3.5). Losses halve the window as in Reno (§3.4).
//!
//! The queue to run it with is [`threshold-mark`](anabranch_path::queue::threshold_mark).
//!
//! Where the stack counts windows in whole segments (`window_count`), as Linux does, a mark gives up whole segments, rounded down.
//!
//! In the form of Linux, the default of `stack = "linux"`, `alpha` counts in 1/1024. What each window takes from it and adds to it is
//! rounded down, and a value below 1/64 is given up entirely at the next window. So a flow whose marks are few stays at a
//! small `alpha` and just below the threshold, where the real number would settle at the mean share of marks. Measured with
//! Linux 6.12 (`TCP_CC_INFO`): 12/1024 after a window with a fifth of it marked, 1/1024 after the next.
//!
//! # Differs from Linux
//! - See [`super::reno`] for the window outside of marks.
//!
//! # Not implemented
//! - Nothing of §3.3 to §3.5.

use anabranch_core::{
    registry::{Meta, Source},
    units::Bytes,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Ack, ControlParams, Family, HyStartUse, Init, Signal,
    classic::{Classic, Count as _, Law, Setup, Window},
    params::{DctcpGain, Form, OrStack, ReductionBase, Share, SlowStartLimit},
    reno::{Avoidance, RenoLaw},
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "dctcp",
    title: "DCTCP",
    summary: "Reno whose reaction to marks is as strong as the share of bytes that were marked. \
              For data centers whose switches mark at a low threshold, as \
              `queue = { kind = \"threshold-mark\", threshold = \"20 packets\" }` does.",
    sources: &[
        Source {
            id: "RFC 8257",
            items: &["§3.2", "§3.3", "§3.4", "§3.5", "§4.2"],
        },
        Source {
            id: "Alizadeh et al., SIGCOMM 2010",
            items: &["§3.1"],
        },
    ],
};

/// Parameters of DCTCP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// In what `alpha` counts: a real number, or 1/1024 as in Linux.
    pub form: OrStack<Form>,
    /// `g`: the weight of the last window in `alpha` (RFC 8257 §4.2: 1/16).
    pub g: DctcpGain,
    /// `alpha` before anything is known: 1, so that the first reduction is Reno's (RFC 8257 §3.3).
    pub initial_alpha: Share,
    /// What one ACK adds in slow start at most (`L` of RFC 3465 §2.3; RFC 5681 §3.1 equation 2 has 1).
    pub slow_start_limit: SlowStartLimit,
    /// What a reduction is taken from: FlightSize (RFC 5681 §3.1 equation 4) or cwnd.
    pub reduce_from: OrStack<ReductionBase>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            form: OrStack::Stack,
            g: DctcpGain::new(0.0625),
            initial_alpha: Share::new(1.0),
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
    fn needs_exact_marks(&self) -> bool {
        true
    }
}

/// DCTCP.
pub type Dctcp = Classic<DctcpLaw>;

/// The window law of DCTCP: Reno's, and `alpha`.
#[derive(Debug)]
pub struct DctcpLaw {
    reno: RenoLaw,
    smss: Bytes,
    form: Form,
    g: f64,
    /// DCTCP.Alpha
    alpha: f64,
    /// DCTCP.BytesAcked and DCTCP.BytesMarked of the window under way.
    acked: u64,
    marked: u64,
    /// The round trip under way.
    round: u64,
}

impl Law for DctcpLaw {
    type Params = Params;
    type Count = u64;
    type Saved = u64;

    fn new(params: &Params, init: &Init) -> (Self, Setup) {
        let law = Self {
            reno: RenoLaw::with(Avoidance::Bytes, init),
            smss: init.smss,
            form: params.form.or(init.stack.form),
            g: params.g.get(),
            alpha: params.initial_alpha.get(),
            acked: 0,
            marked: 0,
            round: 0,
        };
        let setup = Setup::new(params.slow_start_limit, params.reduce_from, true, init);
        (law, setup)
    }

    fn measure(&mut self, ack: &Ack) {
        self.acked += ack.delivered.get();
        self.marked += ack.ce_marked.get().min(ack.delivered.get());
        if ack.round != self.round {
            self.round = ack.round;
            if self.acked > 0 {
                // RFC 8257 §3.3 steps 5 to 7.
                let m = self.marked as f64 / self.acked as f64;
                self.alpha = match self.form {
                    Form::Published => self.alpha * (1.0 - self.g) + self.g * m,
                    Form::Linux => self.alpha_in_units(m),
                };
            }
            self.acked = 0;
            self.marked = 0;
        }
    }

    fn avoid_congestion(&mut self, window: &mut Window<u64>, ack: &Ack, acked: u64) {
        self.reno.avoid_congestion(window, ack, acked);
    }

    fn reduce(&mut self, window: &Window<u64>, flight: u64, signal: Signal) -> Window<u64> {
        match signal {
            // RFC 8257 §3.3 step 9.
            Signal::EcnCe => {
                let given_up = self
                    .reno
                    .whole(u64::from_real(flight.real() * self.alpha / 2.0));
                Window::of((flight - given_up).max((self.smss * 2).get()))
            }
            Signal::Loss => self.reno.reduce(window, flight, signal),
        }
    }
    fn ssthresh_at_timeout(&mut self, _window: &Window<u64>, flight: u64) -> u64 {
        self.reno.half(flight)
    }
    fn end_stage(&mut self) {
        self.reno.end_stage();
    }
    fn saved(&self) -> u64 {
        self.reno.saved()
    }
    fn restore(&mut self, saved: u64, restored: bool) {
        self.reno.restore(saved, restored);
    }
    /// `alpha`.
    fn state(&self) -> Vec<(&'static str, f64)> {
        vec![("alpha", self.alpha)]
    }
}

/// Linux counts `alpha` in parts of one.
const UNITS: f64 = 1024.0;

impl DctcpLaw {
    /// `alpha` after a window of which the share `m` was marked, in Linux's units.
    fn alpha_in_units(&self, m: f64) -> f64 {
        let alpha = self.alpha * UNITS;
        let taken = (alpha * self.g).floor();
        let left = if taken > 0.0 { alpha - taken } else { 0.0 };
        (left + (m * UNITS * self.g).floor()).min(UNITS) / UNITS
    }
}
