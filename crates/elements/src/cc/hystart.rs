//! HyStart: leaves slow start before it overshoots, by two signs that the path is full.
//!
//! Ha and Rhee, "Taming the elephants: New TCP slow start", Computer Networks 55 (2011). *ACK
//! train*: closely spaced ACKs that keep coming for the forward one-way delay, taken as half the
//! smallest RTT, mean that the window fills the pipe. *Delay increase*: the first few RTTs of a
//! round exceed the smallest RTT by more than `eta`, so a queue has begun to grow.
//!
//! # Differs from the paper
//! - `eta` is measured from the connection's smallest RTT, as in Linux; the paper measures it from
//!   the last round's.
//! - A sign seen below the low window counts only if it is still there when the window has grown
//!   to it; the paper remembers it.
//!
//! # Differs from Linux
//! - The length of an ACK train is `ack_train_share` of the smallest RTT whether the sender paces
//!   or not; Linux takes the whole RTT where it paces.
//! - Signs are looked for below the low window, too, but not acted on; Linux does not look.
//!
//! # Not implemented
//! - HyStart++ (RFC 9406) with its conservative slow start.

use anabranch_core::units::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Ack;

/// Variants of an early end of slow start, as a stack names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "HyStart")]
pub enum Kind {
    /// Slow start ends by loss, mark or ssthresh alone.
    #[default]
    Off,
    /// By ACK trains and delay increase, as Linux does it in CUBIC.
    Linux,
    /// HyStart++ (RFC 9406).
    Rfc9406,
}

/// How slow start looks for the end of spare capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Mode {
    /// It does not: it ends at a loss, a mark or ssthresh.
    #[default]
    Off,
    /// By ACK trains and delay increase (Ha and Rhee 2011), as Linux and ns-3 do in CUBIC.
    Linux,
}

/// The constants of HyStart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Nothing happens below this window, in segments.
    pub low_window: f64,
    /// ACKs at most this far apart belong to one train.
    pub ack_delta: Duration,
    /// A train this long, as a share of the smallest RTT, ends slow start.
    pub ack_train_share: f64,
    /// `eta` as a share of the smallest RTT.
    pub delay_share: f64,
    /// Smallest `eta`.
    pub delay_min: Duration,
    /// Largest `eta`; `delay_min` wins over it.
    pub delay_max: Duration,
    /// RTT samples taken at the start of each round.
    pub min_samples: u32,
}

/// HyStart at work; belongs beside any slow start.
#[derive(Debug, Clone)]
pub struct HyStart {
    settings: Settings,
    round: Option<Round>,
}

/// One round trip of slow start.
#[derive(Debug, Clone, Copy)]
struct Round {
    number: u64,
    start: Instant,
    /// The last ACK that belongs to the train which began with the round.
    last_ack: Instant,
    samples: u32,
    min_rtt: Duration,
}

impl HyStart {
    /// Before the first acknowledgment.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            round: None,
        }
    }

    /// Forgets the round: slow start begins anew.
    pub fn reset(&mut self) {
        self.round = None;
    }

    /// Takes an ACK of slow start and says whether slow start ends here. `cwnd` is in segments.
    #[must_use]
    pub fn ends_slow_start(&mut self, ack: &Ack, cwnd: f64) -> bool {
        if self.round.is_none_or(|round| round.number != ack.round) {
            self.round = Some(Round {
                number: ack.round,
                start: ack.now,
                last_ack: ack.now,
                samples: 0,
                min_rtt: Duration::MAX,
            });
        }
        let Some(round) = &mut self.round else {
            return false;
        };
        if ack.min_rtt.is_zero() {
            return false;
        }
        // Both look at every ACK, so that a round's evidence is whole once the window is large.
        let train = round.ack_train(ack, &self.settings);
        let delay = round.delay_increase(ack, &self.settings);
        cwnd >= self.settings.low_window && (train || delay)
    }
}

impl Round {
    fn ack_train(&mut self, ack: &Ack, settings: &Settings) -> bool {
        if ack.now.saturating_since(self.last_ack) > settings.ack_delta {
            return false;
        }
        self.last_ack = ack.now;
        ack.now.saturating_since(self.start) >= ack.min_rtt.mul_f64(settings.ack_train_share)
    }

    fn delay_increase(&mut self, ack: &Ack, settings: &Settings) -> bool {
        let Some(rtt) = ack.rtt else { return false };
        if self.samples < settings.min_samples {
            self.min_rtt = self.min_rtt.min(rtt);
            self.samples += 1;
        }
        let eta = ack
            .min_rtt
            .mul_f64(settings.delay_share)
            .min(settings.delay_max)
            .max(settings.delay_min);
        self.samples >= settings.min_samples && self.min_rtt.saturating_sub(ack.min_rtt) >= eta
    }
}
