//! CUBIC's parameters. `cubic-plus` has the same and adds more, so they are a macro: flattening
//! would lose the check for unknown keys.

use crate::{ControlParams, Family, HyStartUse};

/// The forms of CUBIC: see the types of the same name.
pub(crate) enum Form {
    Octets,
    Segments,
    KernelSegments,
}

macro_rules! cubic_params {
    (
        $(#[$meta:meta])*
        pub struct $Name:ident {
            $($(#[$extra_meta:meta])* pub $extra:ident : $Extra:ty = $default:expr,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct $Name {
            /// `C`: how fast the window grows away from W_max, in segments per second cubed (RFC
            /// 9438 §4.1, §5.1).
            pub c: $crate::params::CubicScale,
            /// β: the share of the window that remains after a reduction (RFC 9438 §4.6). An older
            /// paper's β = 0.2, the share removed, is 0.8 here.
            pub beta: $crate::params::DecreaseFactor,
            /// The share of the window that remains after a mark in congestion avoidance: that of a
            /// loss, or a number (ABE, RFC 8511 §3.1: 0.85).
            pub beta_ecn: $crate::params::EcnFactorOrLoss,
            /// Lowers W_max further when the window did not reach the last W_max, so that new flows
            /// get a share (RFC 9438 §4.7).
            pub fast_convergence: bool,
            /// The Reno-friendly region: never slower than Reno (RFC 9438 §4.3). Without it only
            /// the cubic function determines the window, as in ns-3 up to 3.37.
            pub tcp_friendly: bool,
            /// Growth rate of the Reno-friendly region.
            pub reno_friendly: $crate::params::OrStack<$crate::params::RenoFriendly>,
            /// The unit of the window: exact, or whole segments as in Linux and ns-3.
            pub count: $crate::params::OrStack<$crate::params::WindowCount>,
            /// The base of a reduction (RFC 9438 §4.6).
            pub reduce_from: $crate::params::OrStack<$crate::params::ReductionBase>,
            /// Minimum growth per round trip until the first loss, as a share of the window. 0 in
            /// RFC 9438; 0.05 in Linux and ns-3 (one segment per 20 acknowledged).
            pub first_epoch_growth: $crate::params::ShareOrStack,
            /// Largest growth by one ACK in slow start (`L` of RFC 3465 §2.3; RFC 5681 §3.1
            /// equation 2 has 1).
            pub slow_start_limit: $crate::params::SlowStartLimit,
            /// Early end of slow start (RFC 9438 §4.10).
            pub hystart: $crate::params::OrStack<$crate::hystart::Kind>,
            /// HyStart: no effect below this window (Ha and Rhee 2011: low_ssthresh).
            pub hystart_low_window: $crate::params::Packets,
            /// HyStart: ACKs at most this far apart belong to one train (Ha and Rhee 2011).
            pub hystart_ack_delta: anabranch_core::units::Duration,
            /// HyStart: an ACK train this long, as a share of the smallest RTT, ends slow start
            /// (Ha and Rhee 2011: the forward one-way delay, so half of it).
            pub hystart_ack_train_share: $crate::params::Share,
            /// HyStart: RTTs above the smallest by this share of it end slow start, within
            /// `hystart_delay_min` and `hystart_delay_max`. 1/8 in Linux, 1/16 in Ha and Rhee 2011.
            pub hystart_delay_share: $crate::params::Share,
            /// HyStart: smallest increase of the RTT that ends slow start.
            pub hystart_delay_min: anabranch_core::units::Duration,
            /// HyStart: upper bound of the RTT increase that ends slow start; 16 ms in Linux, 1 s
            /// in ns-3.
            pub hystart_delay_max: anabranch_core::units::Duration,
            /// HyStart: RTT samples taken at the start of each round trip.
            pub hystart_min_samples: $crate::params::Samples,
            $($(#[$extra_meta])* pub $extra: $Extra,)*
        }

        impl Default for $Name {
            fn default() -> Self {
                use anabranch_core::units::Duration;
                use $crate::{
                    params::{
                        CubicScale, DecreaseFactor, EcnFactorOrLoss, OrStack, Packets, Samples, Share,
                        ShareOrStack, SlowStartLimit,
                    },
                };
                Self {
                    c: CubicScale::new(0.4),
                    beta: DecreaseFactor::new(0.7),
                    beta_ecn: EcnFactorOrLoss::default(),
                    fast_convergence: true,
                    tcp_friendly: true,
                    reno_friendly: OrStack::Stack,
                    count: OrStack::Stack,
                    reduce_from: OrStack::Stack,
                    first_epoch_growth: ShareOrStack::default(),
                    slow_start_limit: SlowStartLimit::default(),
                    hystart: OrStack::Stack,
                    hystart_low_window: Packets::new(16),
                    hystart_ack_delta: Duration::from_millis(2),
                    hystart_ack_train_share: Share::new(0.5),
                    hystart_delay_share: Share::new(0.125),
                    hystart_delay_min: Duration::from_millis(4),
                    hystart_delay_max: Duration::from_millis(16),
                    hystart_min_samples: Samples::new(8),
                    $($extra: $default,)*
                }
            }
        }

        impl $Name {
            /// The frame that the parameters describe.
            #[must_use]
            pub(in crate) fn setup(&self, init: &$crate::Init) -> $crate::classic::Setup {
                use $crate::hystart::{Exit, Settings};
                let kind = self.hystart.or(init.stack.hystart);
                let settings = Settings {
                    low_window: self.hystart_low_window.as_f64(),
                    ack_delta: self.hystart_ack_delta,
                    ack_train_share: self.hystart_ack_train_share.get(),
                    delay_share: self.hystart_delay_share.get(),
                    delay_min: self.hystart_delay_min,
                    delay_max: self.hystart_delay_max,
                    min_samples: self.hystart_min_samples.get(),
                };
                $crate::classic::Setup {
                    slow_start_limit: self.slow_start_limit.segments(init, self.hystart),
                    reduce_from: self.reduce_from.or(init.stack.reduce_from),
                    hystart: Exit::new(kind, settings, init.stack.paced),
                }
            }
            /// The form of CUBIC.
            pub(in crate) fn form(&self, init: &$crate::Init) -> $crate::cubic::Form {
                use $crate::{cubic::Form, params::WindowCount};
                match self.count.or(init.stack.window_count) {
                    WindowCount::Bytes => Form::Octets,
                    WindowCount::Segments if init.stack.clock_tick.is_zero() => Form::Segments,
                    WindowCount::Segments => Form::KernelSegments,
                }
            }
            /// The constants of the window law.
            #[must_use]
            pub(in crate) fn constants(&self, init: &$crate::Init) -> $crate::cubic::Constants {
                $crate::cubic::Constants {
                    c: self.c.get(),
                    beta: self.beta.get(),
                    beta_ecn: self.beta_ecn.own().map(|beta| beta.get()),
                    fast_convergence: self.fast_convergence,
                    tcp_friendly: self.tcp_friendly,
                    undo_restores_w_max: init.stack.undo_restores_w_max,
                    reno_friendly: self.reno_friendly.or(init.stack.reno_friendly),
                    first_epoch_growth: self
                        .first_epoch_growth
                        .or(init.stack.first_epoch_growth)
                        .get(),
                }
            }
        }
    };
}
pub(crate) use cubic_params;

cubic_params! {
    /// Parameters of CUBIC.
    pub struct Params {}
}

impl ControlParams for Params {
    const FAMILY: Family = Family::LossBased;

    fn decrease_factor(&self) -> Option<f64> {
        Some(self.beta.get())
    }
    fn hystart(&self) -> HyStartUse {
        HyStartUse::Any(self.hystart)
    }
}
