//! Why there is no result.

use std::io;

use anabranch_core::system;

use super::refusal::Refusal;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario asks for what cannot run live.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The machine does not let us.
    #[error("{what}: {}", system::words(.source))]
    Missing {
        /// What was tried, and what it needs.
        what: String,
        /// What would help.
        help: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// What the kernel's TCP does cannot be traced here, and was to be.
    #[error("the kernel's TCP cannot be traced: {0}")]
    Untraceable(String),
    /// Something failed in mid-run.
    #[error("{what}: {}", system::words(.source))]
    Failed {
        /// What.
        what: String,
        /// What the kernel said.
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
