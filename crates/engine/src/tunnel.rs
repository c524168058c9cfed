//! The tunnel of `anabranch-gateway` in the simulator: each end of a gateway is one middlebox
//! around one [`Tunnel`](anabranch_gateway::tunnel::Tunnel).
//!
//! Packets enter the core as octets of IP, and its datagrams cross the links with the lengths that
//! they have on a wire. Their octets are passed apart from the links ([`crossing`]), because a
//! packet of the simulator has no field for them.
//!
//! # Not implemented
//! - ICMP to the sender of a packet that is too large: the packet is counted and dropped.
//! - Changes of addresses, and restarts of ends: the core's tests cover them.
//! - Duplicates of a datagram by a link: the datagram reaches the core once.

mod crossing;
mod end;
mod label;
mod packet;
mod seeded;

pub use end::{Ends, ends};
pub use label::Labels;
