//! The parts of a path and of its ends: TCP, congestion controls, queues, impairments, links.
//!
//! Everything here is sans-I/O: `now` is an argument, packets come in and go out by value or by
//! handle, and the same code runs in the simulator, the live engine and the gateway.
#![forbid(unsafe_code)]

pub mod aggregation;
pub mod body;
pub mod cc;
pub mod component;
pub mod fec;
pub mod heavy;
pub mod host;
pub mod impair;
pub mod link;
pub mod middlebox;
pub mod multipath;
pub mod queue;
pub mod side_file;
pub mod tcp;
pub mod transport;
pub mod wire;
