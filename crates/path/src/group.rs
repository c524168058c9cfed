//! Link aggregation: several links between two nodes that act as one, with members that switch off
//! to save energy.
//!
//! Parts:
//!
//! - [`members`]: the sending ports of one direction. They choose the sender of the next packet,
//!   keep the lines of single ports, and know which ports distribute, draw power or sleep. A served
//!   link with members uses them instead of its single transmitter (`link::served`).
//! - [`control`]: the number of members that should be on. One file per controller; each sees only
//!   bytes and the time.
//! - [`lacp`]: messages between the two ends: LACPDUs as octets, and the state machine of a port.
//! - [`group`]: both ends together. It applies a controller's decision to the ports, carries their
//!   LACPDUs over the links, and puts ports to sleep and wakes them.
//! - [`energy`]: power consumption of ports.
//!
//! Sources: IEEE 802.1AX-2014 §6 (distribution, collection, LACP); Y. Fukuda, KAKENHI 24700071
//! final report, 2014 (members switched off by measured traffic).
//!
//! # Differs from Linux
//! - The bonding driver's `balance-rr` sends in turns over the members' separate queues; here one
//!   queue serves all members, and the idle member with the lowest number sends.
//!
//! # Not implemented
//! - The marker protocol (IEEE 802.1AX-2014 §6.5). A marker would find out when a member has sent
//!   its backlog; both ends know this because they belong to one group that sends in order.
//! - The limit of three LACPDUs per second and port (§6.4.16): a controller with a shorter interval
//!   would have to wait.
//! - LACPDUs in captures and in the digest; their effects on packets are in both.

pub mod control;
pub mod energy;
pub mod lacp;
pub mod members;
pub mod overload;
pub mod switching;

pub use members::{Members, Spread};
pub use switching::Group;
