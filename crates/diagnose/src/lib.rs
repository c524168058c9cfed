//! Diagnoses captures: the limit of each TCP connection over time, and the reason for each
//! retransmission.
//!
//! [`diagnose`] reads a capture once, in order. It reconstructs each direction of a connection as
//! its sender saw it ([`connection`]), decides for each retransmission whether it was needed
//! ([`retransmission`]), attributes each interval of time to one limit ([`limit`]), names the cause
//! of each pause ([`report::Stall`]), models the path ([`path`]), reports findings ([`finding`]) and
//! names the next step ([`next`]). [`list`] also lists the segments. Memory does not grow with the capture: [`Bounds`] limits the stored data.
//!
//! # Not implemented
//! - Reassembly of IP fragments: fragments after the first are skipped and counted.
//! - Multipath TCP: each subflow is a connection.
#![forbid(unsafe_code)]

pub mod connection;
pub mod control;
mod entries;
mod fairness;
pub mod figures;
pub mod finding;
pub mod limit;
pub mod listing;
pub mod log;
pub mod next;
mod order;
pub mod path;
pub mod quic;
pub mod report;
pub mod retransmission;
mod run;
mod segment;
mod table;
mod term;
mod time;
pub mod trace;

pub use report::Report;
pub use run::{Bounds, diagnose, list, trace};
pub use trace::Watch;
