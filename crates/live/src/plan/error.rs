//! Errors of live runs.

use std::io;

use anabranch_core::system;

use super::refusal::Refusal;

/// The reason why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario contains a part that cannot run live.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The machine lacks a right or a feature.
    #[error("{what}: {}", system::words(.source))]
    Missing {
        /// The failed operation and its requirements.
        what: String,
        /// The remedy.
        help: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// Tracing of the kernel's TCP was required and is impossible here.
    #[error("the kernel's TCP cannot be traced: {0}")]
    Untraceable(String),
    /// An operation failed during the run.
    #[error("{what}: {}", system::words(.source))]
    Failed {
        /// The operation.
        what: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The progress report asked to stop, or the interrupt was raised.
    #[error("the run was stopped")]
    Stopped,
}

pub fn failed(what: &str, source: io::Error) -> Error {
    Error::Failed {
        what: what.to_owned(),
        source,
    }
}
