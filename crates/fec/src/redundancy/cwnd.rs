//! Redundancy that follows the congestion window: a group is a window less its redundant packets.
//!
//! Source: Sato, Koga and Ikenaga §3.2: 1/(cwnd − 1), with a limit 1/min(cwnd − 1, fmax), updated each time a
//! redundant packet is sent. With more redundant packets per group, as many are taken off the window.

use super::{Redundancy, Shape, View};
use crate::params::Params;

/// See the module.
#[derive(Debug)]
pub struct Cwnd {
    fmax: u32,
    redundant: u16,
}

impl Cwnd {
    /// With the study's limit, if there is one.
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
