//! A scenario as a running network: compilation, event queue, topology, records, virtual time.
//!
//! [`network`] is generic over the clock: [`Simulation`] jumps to the time of the next event, and
//! the live engine waits for it.
#![forbid(unsafe_code)]

pub mod event_queue;
pub mod link_samples;
pub mod network;
mod octets;
mod progress;
pub mod record;
pub mod run;
pub mod samples;
pub mod summary;
pub mod topology;
pub mod tunnel;

pub use progress::Progress;
pub use run::{Error, Finished, Simulation, Underway};
pub use samples::{AckSample, FlowSample, GroupSample, LinkSample, Samples};
