//! Runs that can be stopped.

/// The answer to a progress report: whether to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Continue.
    Continue,
    /// Stop; the run has no result.
    Stop,
}
