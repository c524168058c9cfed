//! Runs that can be stopped.

/// Whether to go on, as a progress report answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Go on.
    Continue,
    /// Stop here; the run has no result.
    Stop,
}
