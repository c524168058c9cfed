//! The tunnel of `anabranch-gateway` in the simulator: each end of a gateway is one middlebox around one
//! [`Tunnel`](anabranch_gateway::tunnel::Tunnel).
//!
//! Packets enter the core as octets of IP, and its datagrams cross the links with the lengths that they have on a wire. Their octets
//! travel beside the links ([`crossing`]), because a packet of the simulator has no place for them.
//!
//! # Not implemented
//! - ICMP to the sender of a packet that is too large: the packet is counted and dropped.
//! - Addresses that change, and ends that restart: the core's own tests have them.
//! - A datagram that a link duplicated reaches the core once.

mod crossing;
mod end;
mod label;
mod packet;
mod seeded;

pub use end::{Ends, ends};
pub use label::Labels;
