//! Constant redundancy: a fixed number of redundant packets per group of fixed size.

use super::{Redundancy, Shape, View};
use crate::params::Params;

/// See the module.
#[derive(Debug)]
pub struct Fixed(Shape);

impl Fixed {
    /// Groups of `group` packets, at most `fmax`.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self(Shape {
            sources: params.group().min(params.most_sources()),
            redundant: params.redundant(),
        })
    }
}

impl Redundancy for Fixed {
    fn next_group(&mut self, _view: &View) -> Shape {
        self.0
    }
}
