//! Finds out from a capture what limits each TCP connection, and why each retransmission was sent.
//!
//! [`diagnose`] reads a capture once, in order. It rebuilds each direction of a connection as its sender saw it
//! ([`connection`]), decides for each retransmission whether it was needed ([`retransmission`]), gives each interval
//! of time to one limit ([`limit`]), names the cause of each pause ([`stall`]), models the path
//! ([`path`]) and sums up what stands out ([`finding`]). Memory does not grow with the capture: [`Bounds`] says what is kept.
//!
//! # Not implemented
//! - Reassembly of IP fragments: later fragments are passed over and counted.
//! - Multipath TCP: each subflow is a connection.
#![forbid(unsafe_code)]

pub mod connection;
mod counters;
pub mod finding;
pub mod limit;
mod order;
pub mod path;
pub mod report;
pub mod retransmission;
mod run;
mod segment;
mod sequence;
pub mod stall;
mod table;
mod time;
pub mod trace;

pub use report::Report;
pub use run::{Bounds, diagnose, trace};
pub use trace::Watch;
