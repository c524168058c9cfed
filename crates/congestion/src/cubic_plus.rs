//! Cubic+: CUBIC that restarts with slow start if a timer finds losses during a recovery.
//!
//! Fukuda, KAKENHI 16K00129, final report (2019). Reordering causes consecutive fast recoveries,
//! and each of them reduces the window. Cubic+ also detects losses by send time, after
//! draft-ietf-tcpm-rack-02. If that timer fires during a fast recovery, Cubic+ assumes that the
//! path is good again and restarts with slow start. Everything else is [`super::cubic`].
//!
//! The report does not specify the window and ssthresh of the restart. By default ssthresh is
//! reduced and W_max is discarded, as at a timeout (RFC 9438 §4.8), and the window is one segment.
//!
//! # Differs from Linux
//! - Linux has RACK-TLP (RFC 8985) beside CUBIC, does not restart when its timer fires, and adapts
//!   the grace time to the reordering observed; see [`super::cubic`] for the window.
//!
//! # Not implemented
//! - The timer rule itself: it is a loss detection and belongs to the endpoint.
//!   [`Params::timer_rule`] requests it.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, Duration},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Ack, Congestion, CongestionControl, Control, ControlParams, Family, HyStartUse, Idle, Init,
    Recovered, Rto, Spurious, TimerLoss, TimerRule, Unvalidated, Wants,
    classic::Classic,
    cubic::{CubicLaw, Form, Growth, KernelSegments, Octets, Segments, cubic_params},
    params::{Packets, Share},
    slow_start::Every,
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "cubic-plus",
    title: "Cubic+",
    summary: "CUBIC with a timer-based loss detection: a timer that fires during a fast recovery \
              starts over with slow start. For paths that reorder packets.",
    sources: &[
        Source {
            id: "Fukuda, KAKENHI 16K00129 (2019)",
            items: &["Cubic+"],
        },
        Source {
            id: "draft-ietf-tcpm-rack-02",
            items: &["RACK.reo_wnd"],
        },
        Source {
            id: "RFC 9438",
            items: &["§4"],
        },
    ],
};

/// The value of ssthresh after a restart of Cubic+.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum RestartSsthresh {
    /// Reduced once more, as at a timeout (RFC 9438 §4.8).
    #[default]
    Reduce,
    /// The value that the recovery has set.
    Keep,
}

cubic_params! {
    /// Parameters of Cubic+, including all parameters of CUBIC.
    pub struct Params {
        /// The window after a restart. Not specified in the report.
        pub restart_cwnd: Packets = Packets::new(1),
        /// ssthresh after a restart. Not specified in the report.
        pub restart_ssthresh: RestartSsthresh = RestartSsthresh::Reduce,
        /// Keeps W_max at a restart; otherwise it is discarded as at a timeout. Not specified in
        /// the report.
        pub restart_keeps_w_max: bool = false,
        /// Grace time of the timer rule before reordering has been observed: 1 ms in the report.
        pub initial_reo_wnd: Duration = Duration::from_millis(1),
        /// Grace time once reordering has been observed, as a share of the smallest RTT: a quarter
        /// in the report.
        pub reo_wnd_share: Share = Share::new(0.25),
    }
}

impl ControlParams for Params {
    const FAMILY: Family = Family::LossBased;

    fn decrease_factor(&self) -> Option<f64> {
        Some(self.beta.get())
    }

    fn hystart(&self) -> HyStartUse {
        HyStartUse::Any(self.hystart)
    }

    fn timer_rule(&self) -> Option<TimerRule> {
        Some(TimerRule {
            initial_reo_wnd: self.initial_reo_wnd,
            reo_wnd_min_rtt_share: self.reo_wnd_share.get(),
        })
    }
}

/// Cubic+ counted in segments.
pub type CubicPlusInSegments = CubicPlus<Segments>;
/// Cubic+ counted in segments by a kernel clock.
pub type CubicPlusInKernelSegments = CubicPlus<KernelSegments>;

/// Builds Cubic+ in the form that the parameters and the stack select.
pub(super) fn build(params: &Params, init: &Init) -> Control {
    match params.form(init) {
        Form::Octets => Control::CubicPlus(CubicPlus::new(params, init)),
        Form::Segments => Control::CubicPlusInSegments(CubicPlus::new(params, init)),
        Form::KernelSegments => Control::CubicPlusInKernelSegments(CubicPlus::new(params, init)),
    }
}

/// State of Cubic+.
#[derive(Debug)]
pub struct CubicPlus<G: Growth = Octets> {
    cubic: Classic<CubicLaw<G>, Every>,
    restart_cwnd: f64,
    restart_ssthresh: RestartSsthresh,
    restart_keeps_w_max: bool,
    /// A restart has occurred in a recovery that is still in progress. The window grows although
    /// the endpoint is still retransmitting, and further losses by the timer belong to the same
    /// restart.
    restarted: bool,
}

impl<G: Growth> CubicPlus<G> {
    /// A control before its first acknowledgment.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        Self {
            cubic: Classic::with_law(
                CubicLaw::with(params.constants(init), init),
                params.setup(init),
                init,
            ),
            restart_cwnd: params.restart_cwnd.as_f64(),
            restart_ssthresh: params.restart_ssthresh,
            restart_keeps_w_max: params.restart_keeps_w_max,
            restarted: false,
        }
    }
}

impl<G: Growth> CongestionControl for CubicPlus<G> {
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        self.cubic.on_ack(&Ack {
            in_recovery: ack.in_recovery && !self.restarted,
            ..*ack
        });
    }

    fn on_timer_loss(&mut self, event: &TimerLoss) {
        if self.restarted {
            return;
        }
        let w_max = *self.cubic.law.w_max();
        let flight = match self.restart_ssthresh {
            RestartSsthresh::Reduce => Some(self.cubic.flight_at_timeout(event.in_flight)),
            RestartSsthresh::Keep => None,
        };
        self.cubic.collapse(self.restart_cwnd, flight);
        if self.restart_keeps_w_max {
            *self.cubic.law.w_max() = w_max;
        }
        self.restarted = true;
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.restarted = false;
        self.cubic.on_congestion(event);
    }
    fn on_rto(&mut self, event: &Rto) {
        self.restarted = false;
        self.cubic.on_rto(event);
    }
    fn on_recovered(&mut self, event: &Recovered) {
        self.restarted = false;
        self.cubic.on_recovered(event);
    }
    fn on_spurious(&mut self, event: &Spurious) {
        self.restarted = false;
        self.cubic.on_spurious(event);
    }
    fn on_lost_syns(&mut self) {
        self.cubic.on_lost_syns();
    }
    fn on_idle(&mut self, event: &Idle) {
        self.cubic.on_idle(event);
    }
    fn on_unvalidated(&mut self, event: &Unvalidated) {
        self.cubic.on_unvalidated(event);
    }
    fn wants(&self) -> Wants {
        self.cubic.wants()
    }
    #[inline]
    fn cwnd(&self) -> Bytes {
        self.cubic.cwnd()
    }
    fn ssthresh(&self) -> Option<Bytes> {
        self.cubic.ssthresh()
    }
    /// The state of CUBIC, and `restarted`: 1 from a restart to the end of the recovery.
    fn state(&self) -> Vec<(&'static str, f64)> {
        let mut state = self.cubic.state();
        state.push(("restarted", f64::from(u8::from(self.restarted))));
        state
    }
}
