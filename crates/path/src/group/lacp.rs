//! Link aggregation control protocol: messages between the ends of a group.
//!
//! Source: IEEE 802.1AX-2014 §6.4.

pub mod pdu;
pub mod port;

pub use pdu::{DecodeError, Information, Lacpdu, State};
pub use port::{LacpRate, Port, Role};
