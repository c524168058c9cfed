//! HyStart: ends slow start before it overshoots, by two signs of a full path. HyStart++ is in
//! [`plus_plus`].
//!
//! Ha and Rhee, "Taming the elephants: New TCP slow start", Computer Networks 55 (2011). *ACK
//! train*: closely spaced ACKs that continue for the forward one-way delay, taken as half the
//! smallest RTT, mean that the window fills the pipe. *Delay increase*: if the first few RTTs of a
//! round exceed the smallest RTT by more than `eta`, a queue has begun to grow.
//!
//! Linux 6.18 ends slow start later, as measured on it (`docs/design/008-stack-habits.md`):
//!
//! - A train has to last for half of the sum of the smallest RTT and a millisecond.
//! - The smallest RTT is that of data, without the handshake.
//! - As in RFC 9406 §4.2, the delay of a round is the smallest of all its RTTs so far, not of the
//!   first few. The minimum number of samples must precede the current one: a round that begins
//!   with an empty queue does not end slow start.
//!
//! # Differs from the paper
//! - `eta` is measured from the connection's smallest RTT, as in Linux; the paper measures it from
//!   that of the last round.
//! - A sign seen below the low window counts only if it persists when the window has grown to it;
//!   the paper stores it.
//!
//! # Differs from Linux
//! - Signs are also evaluated below the low window, but have no effect; Linux does not evaluate
//!   them.
//!
//! # Not implemented
//! - The paper's estimate of the one-way delay by the gaps of the ACKs.

pub mod plus_plus;

use anabranch_core::units::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::plus_plus::PlusPlus;
use super::Ack;

/// Variants of an early end of slow start, by the names of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "HyStart")]
pub enum Kind {
    /// Slow start ends only by loss, mark or ssthresh.
    #[default]
    Off,
    /// ACK trains and delay increase, as in Linux's CUBIC.
    Linux,
    /// The same as published, and as in early Linux: ends slow start earlier.
    #[serde(rename = "ha-rhee")]
    HaRhee,
    /// HyStart++ (RFC 9406).
    Rfc9406,
}

/// Effect of an ACK on slow start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// The window grows by this share of the usual growth.
    Grow(f64),
    /// Slow start ends: ssthresh becomes the window.
    End,
}

/// State of either variant, for use with any slow start.
#[derive(Debug, Clone)]
pub enum Exit {
    /// See [`HyStart`]: [`Kind::Linux`] and [`Kind::HaRhee`].
    Linux(HyStart),
    /// See [`PlusPlus`].
    Rfc9406(PlusPlus),
}

impl Exit {
    /// The variant of that kind; `None` if it is off. If the sender paces, an ACK train must be as
    /// long as the whole RTT, because pacing alone produces a train of half the RTT.
    #[must_use]
    pub fn new(kind: Kind, settings: Settings, paced: bool) -> Option<Box<Self>> {
        let exit = match kind {
            Kind::Off => return None,
            Kind::Linux | Kind::HaRhee => {
                let settings = Settings {
                    ack_train_share: if paced { 1.0 } else { settings.ack_train_share },
                    ..settings
                };
                Self::Linux(HyStart::new(settings, kind == Kind::Linux))
            }
            Kind::Rfc9406 => Self::Rfc9406(PlusPlus::new(plus_plus::Settings::default())),
        };
        Some(Box::new(exit))
    }

    /// Takes an ACK of slow start. `cwnd` is in segments.
    #[must_use]
    pub fn on_ack(&mut self, ack: &Ack, cwnd: f64) -> Verdict {
        match self {
            Self::Linux(hystart) => {
                if hystart.ends_slow_start(ack, cwnd) {
                    Verdict::End
                } else {
                    Verdict::Grow(1.0)
                }
            }
            Self::Rfc9406(hystart) => hystart.on_ack(ack),
        }
    }

    /// Slow start begins again after a pause. HyStart of Linux that has ended a slow start acts
    /// again after a timeout only (measured of 6.12).
    pub fn restart(&mut self) {
        match self {
            Self::Linux(hystart) => hystart.round = None,
            Self::Rfc9406(hystart) => hystart.end(),
        }
    }

    /// The window was reduced.
    pub fn reset(&mut self) {
        match self {
            Self::Linux(hystart) => hystart.reset(),
            Self::Rfc9406(hystart) => hystart.end(),
        }
    }
}

/// The constants of HyStart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// HyStart has no effect below this window, in segments.
    pub low_window: f64,
    /// ACKs at most this far apart belong to one train.
    pub ack_delta: Duration,
    /// A train this long, as a share of the smallest RTT, ends slow start.
    pub ack_train_share: f64,
    /// `eta` as a share of the smallest RTT.
    pub delay_share: f64,
    /// Smallest `eta`.
    pub delay_min: Duration,
    /// Largest `eta`; `delay_min` takes precedence over it.
    pub delay_max: Duration,
    /// RTT samples taken at the start of each round.
    pub min_samples: u32,
}

impl Settings {
    /// The constants of Linux.
    pub const LINUX: Self = Self {
        low_window: 16.0,
        ack_delta: Duration::from_millis(2),
        ack_train_share: 0.5,
        delay_share: 0.125,
        delay_min: Duration::from_millis(4),
        delay_max: Duration::from_millis(16),
        min_samples: 8,
    };
}

/// Added to the smallest RTT before an ACK train's share is taken ([`Kind::Linux`]).
const ALLOWANCE: Duration = Duration::from_millis(1);

/// State of HyStart, for use with any slow start.
#[derive(Debug, Clone)]
pub struct HyStart {
    settings: Settings,
    /// The variant of [`Kind::Linux`], not the published one.
    patient: bool,
    /// The smallest RTT of data so far.
    min_rtt: Duration,
    round: Option<Round>,
    /// It has ended a slow start; see [`Exit::restart`].
    has_ended: bool,
}

/// One round trip of slow start.
#[derive(Debug, Clone, Copy)]
struct Round {
    number: u64,
    start: Instant,
    /// The last ACK of the train that began with the round.
    last_ack: Instant,
    samples: u32,
    min_rtt: Duration,
}

impl HyStart {
    /// Before the first acknowledgment; `patient` as in Linux 6.18 ([`Kind::Linux`]).
    #[must_use]
    pub fn new(settings: Settings, patient: bool) -> Self {
        Self {
            settings,
            patient,
            min_rtt: Duration::MAX,
            round: None,
            has_ended: false,
        }
    }

    /// Slow start follows a timeout.
    pub fn reset(&mut self) {
        self.round = None;
        self.has_ended = false;
    }

    /// Takes an ACK of slow start and returns whether slow start ends. `cwnd` is in segments.
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
        if let Some(rtt) = ack.rtt {
            self.min_rtt = self.min_rtt.min(rtt);
        }
        let min_rtt = if self.patient {
            self.min_rtt
        } else {
            ack.min_rtt
        };
        if min_rtt.is_zero() || min_rtt == Duration::MAX {
            return false;
        }
        let least = if self.patient {
            min_rtt + ALLOWANCE
        } else {
            min_rtt
        };
        // Both evaluate every ACK, so that a round's evidence is complete once the window is large.
        let train = round.ack_train(ack, &self.settings, least);
        let delay = round.delay_increase(ack, &self.settings, min_rtt, self.patient);
        let ends = cwnd >= self.settings.low_window && (train || delay) && !self.has_ended;
        self.has_ended |= ends && self.patient;
        ends
    }
}

impl Round {
    /// Whether the train has lasted for its share of `least`.
    fn ack_train(&mut self, ack: &Ack, settings: &Settings, least: Duration) -> bool {
        if ack.now.saturating_since(self.last_ack) > settings.ack_delta {
            return false;
        }
        self.last_ack = ack.now;
        ack.now.saturating_since(self.start) >= least.mul_f64(settings.ack_train_share)
    }

    /// Whether the RTTs of the round, the first few or all so far, exceed the smallest by `eta`.
    fn delay_increase(
        &mut self,
        ack: &Ack,
        settings: &Settings,
        min_rtt: Duration,
        all: bool,
    ) -> bool {
        let Some(rtt) = ack.rtt else { return false };
        if all || self.samples < settings.min_samples {
            self.min_rtt = self.min_rtt.min(rtt);
        }
        self.samples = self.samples.saturating_add(1);
        let eta = min_rtt
            .mul_f64(settings.delay_share)
            .min(settings.delay_max)
            .max(settings.delay_min);
        let preceding = if all { self.samples - 1 } else { self.samples };
        preceding >= settings.min_samples && self.min_rtt.saturating_sub(min_rtt) >= eta
    }
}
