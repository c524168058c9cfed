//! HyStart: leaves slow start before it overshoots, by two signs that the path is full. HyStart++
//! is in [`plus_plus`].
//!
//! Ha and Rhee, "Taming the elephants: New TCP slow start", Computer Networks 55 (2011). *ACK
//! train*: closely spaced ACKs that keep coming for the forward one-way delay, taken as half the
//! smallest RTT, mean that the window fills the pipe. *Delay increase*: the first few RTTs of a
//! round exceed the smallest RTT by more than `eta`, so a queue has begun to grow.
//!
//! Linux 6.18 has become more patient, as measured on it (`docs/design/008-stack-habits.md`):
//!
//! - A train has to last for half of the sum of the smallest RTT and a millisecond.
//! - The smallest RTT is that of data: the handshake's does not count.
//! - The delay of a round is the smallest of all its RTTs so far, not of the first few (RFC 9406
//!   §4.2 has it so, too), and as many precede the one that is looked at: a round that begins with
//!   an empty queue is not ended by it.
//!
//! # Differs from the paper
//! - `eta` is measured from the connection's smallest RTT, as in Linux; the paper measures it from
//!   the last round's.
//! - A sign seen below the low window counts only if it is still there when the window has grown
//!   to it; the paper remembers it.
//!
//! # Differs from Linux
//! - Signs are looked for below the low window, too, but not acted on; Linux does not look.
//!
//! # Not implemented
//! - The paper's estimate of the one-way delay by the gaps of the ACKs.

pub mod plus_plus;

use anabranch_core::units::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::plus_plus::PlusPlus;
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
    /// The same as it was published, and as Linux had it at first: less patient.
    #[serde(rename = "ha-rhee")]
    HaRhee,
    /// HyStart++ (RFC 9406).
    Rfc9406,
}

/// What slow start does at an ACK.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// Grows, by this share of what it would grow by otherwise.
    Grow(f64),
    /// Ends: ssthresh becomes the window.
    End,
}

/// Either variant at work; belongs beside any slow start.
#[derive(Debug, Clone)]
pub enum Exit {
    /// See [`HyStart`]: [`Kind::Linux`] and [`Kind::HaRhee`].
    Linux(HyStart),
    /// See [`PlusPlus`].
    Rfc9406(PlusPlus),
}

impl Exit {
    /// The variant of that kind; none if it is off. Where the sender paces, an ACK train must be
    /// as long as the whole RTT, for pacing alone makes one of half of it.
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

impl Settings {
    /// Those of Linux.
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

/// HyStart at work; belongs beside any slow start.
#[derive(Debug, Clone)]
pub struct HyStart {
    settings: Settings,
    /// As [`Kind::Linux`] has it, not as it was published.
    patient: bool,
    /// The smallest RTT of data so far.
    min_rtt: Duration,
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
    /// Before the first acknowledgment; `patient` as in Linux 6.18 ([`Kind::Linux`]).
    #[must_use]
    pub fn new(settings: Settings, patient: bool) -> Self {
        Self {
            settings,
            patient,
            min_rtt: Duration::MAX,
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
        // Both look at every ACK, so that a round's evidence is whole once the window is large.
        let train = round.ack_train(ack, &self.settings, least);
        let delay = round.delay_increase(ack, &self.settings, min_rtt, self.patient);
        cwnd >= self.settings.low_window && (train || delay)
    }
}

impl Round {
    /// Whether the train has lasted for its share of this.
    fn ack_train(&mut self, ack: &Ack, settings: &Settings, least: Duration) -> bool {
        if ack.now.saturating_since(self.last_ack) > settings.ack_delta {
            return false;
        }
        self.last_ack = ack.now;
        ack.now.saturating_since(self.start) >= least.mul_f64(settings.ack_train_share)
    }

    /// Whether the RTTs of the round, the first few or all so far, are above the smallest.
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
