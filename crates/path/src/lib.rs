//! Elements that packets pass: links, queues, impairments, link groups, middleboxes, multipath
//! gateways.
//!
//! Everything here is sans-I/O: `now` is an argument, packets come in and go out by value or by
//! handle, and the same code runs in the simulator, the live engine and the gateway.
#![forbid(unsafe_code)]

pub mod group;
pub mod heavy;
pub mod host;
pub mod impair;
pub mod link;
pub mod middlebox;
pub mod multipath;
pub mod queue;
mod report;
mod window;
