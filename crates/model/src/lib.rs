//! Scenarios, and what the engine makes of them.
#![forbid(unsafe_code)]

pub mod scenario;
