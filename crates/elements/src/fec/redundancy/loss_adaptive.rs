//! placeholder

use anabranch_core::units::Instant;

use super::{Redundancy, Shape, View};
use crate::fec::params::Params;

/// See the module.
#[derive(Debug)]
pub struct LossAdaptive {
    most: u16,
}

impl LossAdaptive {
    /// x
    #[must_use]
    pub fn new(_params: &Params, most: u16) -> Self {
        Self { most }
    }
}

impl Redundancy for LossAdaptive {
    fn next_group(&mut self, view: &View) -> Shape {
        Shape {
            sources: view.cwnd.clamp(1, 10),
            redundant: self.most.min(1),
        }
    }
    fn on_sent(&mut self, _now: Instant, _retransmission: bool) {}
}
