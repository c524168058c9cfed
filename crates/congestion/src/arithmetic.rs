//! Arithmetic of the window-based controls, for parameters that are left to the stack.

use anabranch_core::units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    StackHabits,
    params::{Form, RenoFriendly, Share, WindowCount},
};

/// The unit of windows, and how CUBIC evaluates its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Arithmetic {
    /// Windows in octets, CUBIC as in RFC 9438.
    #[serde(rename = "rfc")]
    Rfc,
    /// Windows in whole segments; CUBIC as published (Ha, Rhee and Xu 2008, Algorithm 1) with the
    /// Reno-friendly region of RFC 8312. CUBIC evaluates its function every 1/32 s while the window
    /// is unchanged.
    #[serde(rename = "linux-2.6")]
    Linux26,
    /// Same as `linux-2.6`, with three changes to CUBIC: until the first loss it grows by at least
    /// one segment for every twenty acknowledged, it resets its count of acknowledged segments
    /// after a reduction, and it keeps the `W_max` of a spurious reduction. Vegas, Westwood+ and
    /// BIC have the form of Linux's modules.
    #[serde(rename = "linux")]
    Linux,
}

impl Arithmetic {
    /// Returns `habits` with this arithmetic.
    #[must_use]
    pub const fn in_habits(self, habits: StackHabits) -> StackHabits {
        match self {
            Self::Rfc => StackHabits {
                window_count: WindowCount::Bytes,
                first_epoch_growth: Share::new(0.0),
                reno_friendly: RenoFriendly::Rfc9438,
                cubic_interval: Duration::ZERO,
                cubic_count_outlives: true,
                undo_restores_w_max: true,
                form: Form::Published,
                ..habits
            },
            Self::Linux26 => StackHabits {
                window_count: WindowCount::Segments,
                reno_friendly: RenoFriendly::Rfc8312,
                // At a round-trip time of 10 ms a small window is constant for three to five round
                // trips, then grows by two segments.
                cubic_interval: Duration::from_micros(31_250),
                ..Self::Rfc.in_habits(habits)
            },
            Self::Linux => StackHabits {
                first_epoch_growth: Share::new(0.05),
                cubic_count_outlives: false,
                undo_restores_w_max: false,
                form: Form::Linux,
                ..Self::Linux26.in_habits(habits)
            },
        }
    }
}
