//! Impairments: what a path does to one packet, decided without a queue or a clock.
//!
//! Adding one is a file in `impair/` and a line in the registry below; one from outside the
//! workspace implements [`Impairment`] and travels as [`AnyImpairment::Boxed`].

use std::{fmt, sync::Arc};

use anabranch_core::{
    component, components,
    packet::Ecn,
    rng::Draw,
    units::{Duration, Instant},
};

pub use anabranch_core::{parameters::Contradiction, side_file::Misread};

/// What an impairment decided for one packet; the link carries it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing happens to it.
    Pass,
    /// It is lost.
    Lose,
    /// It is late by this much. With `may_overtake` others may pass it on the way; without, those
    /// behind it wait.
    Delay {
        /// How much.
        by: Duration,
        /// Whether order may change.
        may_overtake: bool,
    },
    /// It arrives twice, the copy right behind.
    Duplicate,
    /// It arrives damaged: the check at the link's far end finds it, and it goes no further.
    Corrupt,
}

/// What an impairment may see of a packet.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// Size of the IP packet in bytes.
    pub size: u32,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its number at this element, from 0.
    pub index: u64,
    /// Whether it carries application data: a TCP segment with payload, or a datagram.
    pub has_data: bool,
}

/// An impairment. The draws it is given belong to the packet's number at this element, so that
/// the n-th packet has the same fate in every engine.
pub trait Impairment: fmt::Debug + Send {
    /// Decides the fate of a packet that comes at `now`. Packets are given in the order of their numbers,
    /// which is that of `now` unless an impairment before this one lets them overtake each other.
    fn judge(&mut self, now: Instant, packet: View, draw: &mut Draw) -> Verdict;
    /// Whether packets may leave in another order than they came.
    fn reorders(&self) -> bool {
        false
    }
}

/// Makes an impairment from outside the workspace.
pub type Factory = Arc<dyn Fn() -> Box<dyn Impairment> + Send + Sync>;

/// An impairment from outside the workspace, as a scenario carries it.
pub type Custom = component::Custom<Factory>;

/// What the parameters of every built-in impairment can say.
pub trait ImpairParams: Default {
    /// Whether the parameters go together.
    ///
    /// # Errors
    /// With the first that do not.
    fn check(&self) -> Result<(), Contradiction> {
        Ok(())
    }
    /// The file that is to be read first, its path as written; the key is `file`.
    fn file(&self) -> Option<&str> {
        None
    }
    /// Takes the file's text in its place.
    ///
    /// # Errors
    /// With the first line that does not fit.
    fn take_file(&mut self, _text: &str) -> Result<(), Misread> {
        Ok(())
    }
}

components! {
    enum AnyImpairment: Impairment();

    bernoulli_loss::BernoulliLoss,
    gilbert_elliott::GilbertElliott,
    four_state_loss::FourStateLoss,
    loss_list::LossList,
    jitter::Jitter,
    duplicate::Duplicate,
    corrupt::Corrupt,
    policer::Policer,
}

impl Config {
    /// Whether the parameters go together.
    ///
    /// # Errors
    /// With the first that do not.
    pub fn check(&self) -> Result<(), Contradiction> {
        each!(self, params => params.check(), custom => Ok(()))
    }
    /// The file that is to be read before they are used, its path as written; the key is `file`.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        each!(self, params => params.file(), custom => None)
    }
    /// Takes the file's text in its place.
    ///
    /// # Errors
    /// With the first line that does not fit.
    pub fn take_file(&mut self, text: &str) -> Result<(), Misread> {
        each!(self, params => params.take_file(text), custom => Ok(()))
    }
}

impl AnyImpairment {
    /// Takes other parameters in mid-run; a channel stays in its state. The kind is the same, and so is whether packets may
    /// leave in another order than they came.
    pub fn change(&mut self, to: &Config) {
        let mut next = to.build();
        match (&mut next, &*self) {
            (Self::BernoulliLoss(next), Self::BernoulliLoss(before)) => next.follow(before),
            (Self::GilbertElliott(next), Self::GilbertElliott(before)) => next.follow(before),
            (Self::FourStateLoss(next), Self::FourStateLoss(before)) => next.follow(before),
            (Self::Jitter(next), Self::Jitter(before)) => next.follow(before),
            (Self::LossList(next), Self::LossList(before)) => next.follow(before),
            _ => {}
        }
        *self = next;
    }
}

impl Impairment for AnyImpairment {
    #[inline]
    fn judge(&mut self, now: Instant, packet: View, draw: &mut Draw) -> Verdict {
        each!(self, i => i.judge(now, packet, draw))
    }
    fn reorders(&self) -> bool {
        each!(self, i => i.reorders())
    }
}
