//! Reasons why a command of the daemon fails.

/// The reason why a daemon ends early.
pub enum Failure {
    /// Bad input.
    Input(String),
    /// The system refuses.
    System(String),
}
