//! A scenario as a network that runs: parse, resolve, compile; event queue; workloads; records.
//!
//! Generic over the clock: the simulator asks for the next event's time and jumps there, the live
//! engine waits for it.
#![forbid(unsafe_code)]

pub mod catalog;
pub mod event_queue;
pub mod network;
mod progress;
pub mod record;
pub mod scenario;
pub mod topology;
pub mod workload;

pub use progress::Progress;
