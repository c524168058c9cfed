//! The core of a tunnel over several paths: handshake, sessions, paths, scheduling, order and
//! repair as a state machine.
//!
//! It has no clock, no socket and no source of randomness: `now`, datagrams and [`crypto::Entropy`]
//! are arguments. `docs/design/027-gateway-protocol.md` specifies the wire format and gives its
//! rationale.
#![forbid(unsafe_code)]

pub mod blocks;
pub mod crypto;
pub mod inner;
pub mod order;
pub mod path;
pub mod policy;
pub mod pool;
pub mod queue;
pub mod reception;
pub mod sources;
pub mod time;
pub mod tunnel;
pub mod wire;
