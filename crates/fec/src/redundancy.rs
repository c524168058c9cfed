//! Redundancy controllers: how many packets the next group has, and how many redundant ones it gets.
//!
//! A controller sees what leaves, what the peer reports, the congestion window and the time; never the network. Adding one is a
//! file in `redundancy/`, and here a variant of [`Choice`] and of [`AnyRedundancy`] with its arms.

pub mod cwnd;
pub mod fixed;
pub mod loss_adaptive;

use anabranch_core::units::Instant;

use super::params::{Choice, Params};

/// A group to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Data packets; at least 1.
    pub sources: u32,
    /// Redundant packets; at least 1.
    pub redundant: u16,
}

/// What a controller may know when the first packet of a group leaves.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// When.
    pub now: Instant,
    /// Whole packets that the congestion window has room for.
    pub cwnd: u32,
}

/// A controller.
pub trait Redundancy {
    /// The shape of the next group.
    fn next_group(&mut self, view: &View) -> Shape;
    /// A packet left, data or redundancy. Data that is retransmitted tells of a loss.
    fn on_sent(&mut self, _now: Instant, _retransmission: bool) {}
    /// The peer reports losses that only the layer saw.
    fn on_hidden_losses(&mut self, _now: Instant, _losses: u32) {}
}

/// Any of them at work.
#[derive(Debug)]
pub enum AnyRedundancy {
    /// See [`cwnd`].
    Cwnd(cwnd::Cwnd),
    /// See [`fixed`].
    Fixed(fixed::Fixed),
    /// See [`loss_adaptive`].
    LossAdaptive(Box<loss_adaptive::LossAdaptive>),
}

impl AnyRedundancy {
    /// The one that the parameters ask for; `most` is the most redundant packets that the code makes of a
    /// group.
    #[must_use]
    pub fn new(params: &Params, most: u16) -> Self {
        match params.redundancy() {
            Choice::Cwnd => Self::Cwnd(cwnd::Cwnd::new(params)),
            Choice::Fixed => Self::Fixed(fixed::Fixed::new(params)),
            Choice::LossAdaptive => {
                Self::LossAdaptive(Box::new(loss_adaptive::LossAdaptive::new(params, most)))
            }
        }
    }
}

macro_rules! each {
    ($value:expr, $one:ident => $body:expr) => {
        match $value {
            Self::Cwnd($one) => $body,
            Self::Fixed($one) => $body,
            Self::LossAdaptive($one) => $body,
        }
    };
}

impl Redundancy for AnyRedundancy {
    fn next_group(&mut self, view: &View) -> Shape {
        each!(self, one => one.next_group(view))
    }
    fn on_sent(&mut self, now: Instant, retransmission: bool) {
        each!(self, one => one.on_sent(now, retransmission));
    }
    fn on_hidden_losses(&mut self, now: Instant, losses: u32) {
        each!(self, one => one.on_hidden_losses(now, losses));
    }
}
