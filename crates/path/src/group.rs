//! Link aggregation: several links between two nodes that work as one, and switch themselves off.
//!
//! Who owns what:
//!
//! - [`members`]: the sending ports of one direction. Who sends which packet next, what waits for a
//!   port of its own, which ports distribute, draw power or sleep. A served link with members asks
//!   them where it would otherwise look at its one transmitter (`link::served`).
//! - [`control`]: how many members there should be. One file per controller; each sees bytes and
//!   the time, nothing else.
//! - [`lacp`]: what the two ends tell each other: LACPDUs as octets, and the state machine of one
//!   port.
//! - [`group`]: both ends together. It takes a controller's number to the ports, their LACPDUs over the
//!   links, and ports to sleep and back.
//! - [`energy`]: what ports draw.
//!
//! Sources: IEEE 802.1AX-2014 §6 (distribution, collection, LACP); Y. Fukuda, KAKENHI 24700071 final
//! report, 2014 (members that are switched off by measured traffic).
//!
//! # Differs from Linux
//! - The bonding driver's `balance-rr` sends by turns over queues of the members' own; here one queue
//!   serves all members, and the lowest-numbered idle one sends.
//!
//! # Not implemented
//! - The marker protocol (IEEE 802.1AX-2014 §6.5). Both ends send over one group in order and know when
//!   a member has sent what it had, which is what a marker would ask.
//! - At most three LACPDUs in a second and port (§6.4.16): a controller with a shorter interval would have
//!   to wait.
//! - LACPDUs in captures and in the digest: what they do to packets is in both.

pub mod control;
pub mod energy;
pub mod lacp;
pub mod members;
pub mod overload;
pub mod switching;

pub use members::{Members, Spread};
pub use switching::Group;
