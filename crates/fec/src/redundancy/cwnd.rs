//! Redundancy that follows the congestion window: a group is a window minus its redundant packets.
//!
//! Source: Sato, Koga and Ikenaga §3.2: the ratio is 1/(cwnd − 1), limited to 1/min(cwnd − 1,
//! fmax), and updated at each redundant packet. With several redundant packets per group, all of
//! them are subtracted from the window.

use super::{Redundancy, Shape, View};
use crate::params::Params;

/// See the module.
#[derive(Debug)]
pub struct Cwnd {
    fmax: u32,
    redundant: u16,
}

impl Cwnd {
    /// Creates the controller with the study's limit, if given.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self {
            fmax: params.most_sources(),
            redundant: params.redundant(),
        }
    }
}

impl Redundancy for Cwnd {
    fn next_group(&mut self, view: &View) -> Shape {
        let sources = view.cwnd.saturating_sub(u32::from(self.redundant));
        Shape {
            sources: sources.min(self.fmax).max(1),
            redundant: self.redundant,
        }
    }
}
