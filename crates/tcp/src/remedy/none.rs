//! No remedy: the stack's threshold applies unchanged (RFC 5681 §3.2).
//!
//! It is the reference for the other remedies. A scenario also uses this name to disable a
//! profile's adaptive threshold.
//!
//! # Differs from Linux
//! - Linux raises the threshold with the reordering seen.
//!
//! # Not implemented
//! - Nothing.

use anabranch_core::registry::{Meta, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Init, Policy, RemedyParams};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "none",
    title: "No remedy",
    summary: "The stack's threshold is not changed: the baseline.",
    sources: &[Source {
        id: "RFC 5681",
        items: &["§3.2"],
    }],
};

/// No parameters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {}

impl RemedyParams for Params {}

/// A constant threshold.
#[derive(Debug)]
pub struct Unchanged {
    dupthresh: u32,
}

impl Unchanged {
    /// Starts at the stack's threshold.
    #[must_use]
    pub const fn new(_params: &Params, init: &Init) -> Self {
        Self {
            dupthresh: init.dupthresh,
        }
    }
}

impl Policy for Unchanged {
    fn dupthresh(&self) -> u32 {
        self.dupthresh
    }
}
