//! Impairments: effects of a path on single packets, without a queue or a clock.
//!
//! A new impairment is a file in `impair/` and a line in the registry below. An impairment from
//! outside the workspace implements [`Impairment`] and is stored as [`AnyImpairment::Boxed`].

use std::{fmt, sync::Arc};

use anabranch_core::{
    component, components,
    packet::Ecn,
    rng::Draw,
    units::{Duration, Instant},
};

pub use anabranch_core::{parameters::Contradiction, side_file::Misread};

/// Decision of an impairment for one packet; the link carries it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The packet is not affected.
    Pass,
    /// The packet is lost.
    Lose,
    /// The packet is delayed. With `may_overtake`, other packets may overtake it; otherwise later
    /// packets wait for it.
    Delay {
        /// The delay.
        by: Duration,
        /// Whether order may change.
        may_overtake: bool,
    },
    /// The packet arrives twice, the copy directly after the original.
    Duplicate,
    /// The packet arrives damaged: the link's far end detects it and drops the packet.
    Corrupt,
}

/// Properties of a packet that an impairment may use.
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

/// An impairment. Its random draws belong to the packet's number at this element, so the n-th
/// packet has the same outcome in every engine.
pub trait Impairment: fmt::Debug + Send {
    /// Decides the outcome of a packet that arrives at `now`. Packets are given in the order of
    /// their numbers, which is also the order of `now` unless an earlier impairment lets them
    /// overtake each other.
    fn judge(&mut self, now: Instant, packet: View, draw: &mut Draw) -> Verdict;
    /// Whether packets may leave in another order than they arrived.
    fn reorders(&self) -> bool {
        false
    }
}

/// Constructor of an impairment from outside the workspace.
pub type Factory = Arc<dyn Fn() -> Box<dyn Impairment> + Send + Sync>;

/// An impairment from outside the workspace, as stored in a scenario.
pub type Custom = component::Custom<Factory>;

/// Properties of the parameters of every built-in impairment.
pub trait ImpairParams: Default {
    /// Checks that the parameters are consistent.
    ///
    /// # Errors
    /// Names the first contradiction.
    fn check(&self) -> Result<(), Contradiction> {
        Ok(())
    }
    /// Path, as written, of the file to be read first; its key is `file`.
    fn file(&self) -> Option<&str> {
        None
    }
    /// Replaces the file's path by its contents.
    ///
    /// # Errors
    /// Names the first invalid line.
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
    /// Checks that the parameters are consistent.
    ///
    /// # Errors
    /// Names the first contradiction.
    pub fn check(&self) -> Result<(), Contradiction> {
        each!(self, params => params.check(), custom => Ok(()))
    }
    /// Path, as written, of the file to be read before the parameters are used; its key is `file`.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        each!(self, params => params.file(), custom => None)
    }
    /// Replaces the file's path by its contents.
    ///
    /// # Errors
    /// Names the first invalid line.
    pub fn take_file(&mut self, text: &str) -> Result<(), Misread> {
        each!(self, params => params.take_file(text), custom => Ok(()))
    }
}

impl AnyImpairment {
    /// Changes the parameters in mid-run; a channel keeps its state. `to` is of the same kind and
    /// has the same [`Impairment::reorders`].
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
