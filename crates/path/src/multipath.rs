//! Gateways: one end distributes packets over several routes, the other end merges them.
//!
//! Each end is a [`Middlebox`](crate::middlebox::Middlebox). An [`Entrance`] has a splitter
//! ([`split`]), which chooses the route of the next packet. An [`Exit`] has a restorer
//! ([`restore`]), which decides when packets are forwarded. Both see only packets and the time, not
//! the network, so the same code can run on a real path. If a splitter or a restorer needs it, the
//! tunnel writes a [`header`] before each packet.
//!
//! Source: T. Hayashi et al., "Performance Evaluation of TCP Communication using Multiple Routes".
//!
//! # Not implemented
//! - Address translation by the gateway: packets carry no addresses here.
//! - Sessions: numbers begin at 0 with the gateway, and neither end restarts.

use anabranch_core::units::Instant;

mod duplicates;
mod entrance;
mod exit;
pub mod header;
mod kept;
mod meter;
mod order;
pub mod params;
mod peer;
pub mod restore;
pub mod split;

pub use crate::report::{
    Report, RestoreReport, SplitReport, TunnelPath, TunnelReceiver, TunnelReport, TunnelSender,
};
pub use duplicates::WINDOW as DUPLICATE_WINDOW;
pub use entrance::{Entrance, EntranceParts};
pub use exit::{Exit, ExitParts};
pub use meter::Meter;
pub use peer::Peer;

/// Reading of a gateway's clock: microseconds modulo 2^32.
#[expect(clippy::cast_possible_truncation, reason = "modulo 2^32")]
const fn micros(now: Instant) -> u32 {
    (now.as_picos() / 1_000_000) as u32
}
