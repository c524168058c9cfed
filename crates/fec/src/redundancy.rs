//! Redundancy controllers: the number of data packets and redundant packets of the next group.
//!
//! A controller sees departing packets, the peer's reports, the congestion window and the time, but
//! not the network. A new controller is a file in `redundancy/` and a variant of [`Choice`] and of
//! [`AnyRedundancy`] here.

pub mod cwnd;
pub mod fixed;
pub mod loss_adaptive;

use anabranch_core::units::Instant;

use super::params::{Choice, Params};

/// The shape of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Data packets; at least 1.
    pub sources: u32,
    /// Redundant packets; at least 1.
    pub redundant: u16,
}

/// The state that a controller sees when the first packet of a group is sent.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// The current time.
    pub now: Instant,
    /// The congestion window in whole packets.
    pub cwnd: u32,
}

/// A redundancy controller.
pub trait Redundancy {
    /// The shape of the next group.
    fn next_group(&mut self, view: &View) -> Shape;
    /// Handles a transmission of data or redundancy. A retransmission indicates a loss.
    fn on_sent(&mut self, _now: Instant, _retransmission: bool) {}
    /// Handles losses that only the peer's layer detected.
    fn on_hidden_losses(&mut self, _now: Instant, _losses: u32) {}
}

/// One of the controllers.
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
    /// Creates the controller that the parameters select. `most` is the code's maximum of redundant
    /// packets per group.
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
