//! Data Center TCP (RFC 8257): Reno that reduces its window in proportion to the share of marked
//! bytes.
//!
//! Switches mark packets that find more than a few packets in their queue. `alpha` estimates the
//! share of marked bytes, once per window, and a window with marks is reduced by half of that
//! share. This requires an exact echo by the stack: `transport.ecn = "dctcp"` (RFC 8257 §3.2, the
//! default for this control) or `"accecn"`. With the first, every packet of the connection is
//! ECN-capable, including SYN, SYN-ACK, RST, pure acknowledgments and retransmissions (§3.5).
//! Losses halve the window as in Reno (§3.4).
//!
//! The matching queue is [`threshold-mark`](anabranch_path::queue::threshold_mark).
//!
//! If the stack counts windows in whole segments (`window_count`), as Linux does, the reduction by
//! a mark is whole segments, rounded down.
//!
//! In the form of Linux, the default of `stack = "linux"`, `alpha` is counted in 1/1024. Its
//! decrease and its increase per window are rounded down, and a value below 1/64 becomes zero at
//! the next window. A flow with few marks therefore has a small `alpha` and operates just below the
//! threshold, where a real number would converge to the mean share of marks. Measured with Linux
//! 6.12 (`TCP_CC_INFO`): 12/1024 after a window with a fifth of it marked, 1/1024 after the next.
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
    summary: "Reno whose reduction is proportional to the share of bytes that were marked. For data centers whose \
              switches mark at a low threshold, as `queue = { kind = \"threshold-mark\", threshold = \"20 packets\" }` \
              does.",
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
    /// The unit of `alpha`: a real number, or 1/1024 as in Linux.
    pub form: OrStack<Form>,
    /// `g`: the weight of the last window in `alpha` (RFC 8257 §4.2: 1/16).
    pub g: DctcpGain,
    /// Initial `alpha`: 1, so that the first reduction is Reno's (RFC 8257 §3.3).
    pub initial_alpha: Share,
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

/// The window law of DCTCP: that of Reno, and `alpha`.
#[derive(Debug)]
pub struct DctcpLaw {
    reno: RenoLaw,
    smss: Bytes,
    form: Form,
    g: f64,
    /// DCTCP.Alpha
    alpha: f64,
    /// DCTCP.BytesAcked and DCTCP.BytesMarked of the current window.
    acked: u64,
    marked: u64,
    /// The current round trip.
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

/// Linux counts `alpha` in 1/1024.
const UNITS: f64 = 1024.0;

impl DctcpLaw {
    /// `alpha` after a window with the share `m` of marked bytes, in Linux's units.
    fn alpha_in_units(&self, m: f64) -> f64 {
        let alpha = self.alpha * UNITS;
        let taken = (alpha * self.g).floor();
        let left = if taken > 0.0 { alpha - taken } else { 0.0 };
        (left + (m * UNITS * self.g).floor()).min(UNITS) / UNITS
    }
}
