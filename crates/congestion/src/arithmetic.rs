//! Whose arithmetic the window-based controls follow where their parameters leave it to the stack.

use anabranch_core::units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    StackHabits,
    params::{Form, RenoFriendly, Share, WindowCount},
};

/// In what windows are counted, and how CUBIC computes its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Arithmetic {
    /// Windows in octets, CUBIC as in RFC 9438.
    #[serde(rename = "rfc")]
    Rfc,
    /// Windows in whole segments; CUBIC as published (Ha, Rhee and Xu 2008, Algorithm 1) with the Reno-friendly region of RFC
    /// 8312, its function looked up every 32nd of a second while the window stands.
    #[serde(rename = "linux-2.6")]
    Linux26,
    /// As `linux-2.6`; besides, CUBIC grows by one segment for twenty acknowledged at least until the first loss, counts
    /// acknowledged segments anew after a reduction, and keeps the `W_max` of a spurious reduction. Vegas, Westwood+ and BIC
    /// have the form of Linux's modules.
    #[serde(rename = "linux")]
    Linux,
}

impl Arithmetic {
    /// `habits` with this arithmetic.
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
                // At a round-trip time of 10 ms a small window stands for three to five of them, then grows by two.
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
