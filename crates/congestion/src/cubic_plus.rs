//! Cubic+: CUBIC that starts over where a timer finds losses during a recovery.
//!
//! Fukuda, KAKENHI 16K00129, final report (2019). Reordering makes fast recoveries follow one
//! another, each a reduction, and the window withers. Cubic+ finds losses by send time as well,
//! after draft-ietf-tcpm-rack-02; where that timer fires during a fast recovery it takes the path
//! for good again and goes to slow start. Everything else is [`super::cubic`].
//!
//! The report leaves open what the window and ssthresh are then. By default ssthresh is reduced
//! as at a timeout, W_max is forgotten as there (RFC 9438 §4.8), and one segment is left.
//!
//! # Differs from Linux
//! - Linux has RACK-TLP (RFC 8985) beside CUBIC, never starts over at it, and adapts the grace
//!   time to the reordering it sees; see [`super::cubic`] for the window.
//!
//! # Not implemented
//! - The rule itself: it is a loss detection, and the endpoint's. [`Params::timer_rule`] asks for it.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, Duration},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Ack, Congestion, CongestionControl, ControlParams, Family, HyStartUse, Idle, Init, Recovered,
    Rto, Spurious, TimerLoss, TimerRule, Unvalidated, Wants,
    cubic::{Cubic, CubicLaw, cubic_params},
    params::{Packets, Share},
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

/// What ssthresh becomes where Cubic+ starts over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum RestartSsthresh {
    /// It is reduced once more, as at a timeout (RFC 9438 §4.8).
    #[default]
    Reduce,
    /// It stays as the recovery has set it.
    Keep,
}

cubic_params! {
    /// Parameters of Cubic+: those of CUBIC, and its own.
    pub struct Params {
        /// The window after starting over. Open in the report.
        pub restart_cwnd: Packets = Packets::new(1),
        /// ssthresh after starting over. Open in the report.
        pub restart_ssthresh: RestartSsthresh = RestartSsthresh::Reduce,
        /// Whether W_max outlives starting over; otherwise it is forgotten as at a timeout. Open
        /// in the report.
        pub restart_keeps_w_max: bool = false,
        /// Grace time of the timer rule before any reordering has been seen: 1 ms in the report.
        pub initial_reo_wnd: Duration = Duration::from_millis(1),
        /// Grace time once reordering has been seen, as a share of the smallest RTT: a quarter in
        /// the report.
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

/// Cubic+ at work.
#[derive(Debug)]
pub struct CubicPlus {
    cubic: Cubic,
    restart_cwnd: f64,
    restart_ssthresh: RestartSsthresh,
    restart_keeps_w_max: bool,
    /// Started over, and the recovery in which that happened is not over: the window grows
    /// although the endpoint is still repairing, and the timer's next losses belong to the same
    /// restart.
    restarted: bool,
}

impl CubicPlus {
    /// A control before its first acknowledgment.
    #[must_use]
    pub fn new(params: &Params, init: &Init) -> Self {
        Self {
            cubic: Cubic::with_law(
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

impl CongestionControl for CubicPlus {
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
    /// CUBIC's, and `restarted`: 1 from starting over to the recovery's end.
    fn state(&self) -> Vec<(&'static str, f64)> {
        let mut state = self.cubic.state();
        state.push(("restarted", f64::from(u8::from(self.restarted))));
        state
    }
}
