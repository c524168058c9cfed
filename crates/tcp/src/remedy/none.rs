//! No remedy: the threshold stays as the stack has it (RFC 5681 §3.2).
//!
//! The yardstick for the others, and the word by which a scenario turns a profile's adaptive
//! threshold off.
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
    summary: "The threshold stays as the stack has it: the yardstick.",
    sources: &[Source {
        id: "RFC 5681",
        items: &["§3.2"],
    }],
};

/// There is nothing to set.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {}

impl RemedyParams for Params {}

/// A threshold that stays.
#[derive(Debug)]
pub struct Unchanged {
    dupthresh: u32,
}

impl Unchanged {
    /// At the stack's threshold.
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
