//! Decisions without I/O: time and observations are arguments.

pub mod announce;
pub mod demand;
pub mod energy;
pub mod members;

/// Time since the daemon started.
pub type Time = std::time::Duration;
