//! Gateways: one end spreads packets over several routes, the other brings them together again.
//!
//! Each end is a [`Middlebox`](crate::middlebox::Middlebox): an [`Entrance`] asks a splitter
//! ([`split`]) which route the next packet takes, an [`Exit`] asks a restorer ([`restore`]) which
//! packets may go on now. Both see packets and the time, never the network, so the same code can
//! stand on a wire. Where a splitter or a restorer needs it, the tunnel writes a [`header`] before each packet.
//!
//! Source: T. Hayashi et al., "Performance Evaluation of TCP Communication using Multiple Routes".
//!
//! # Not implemented
//! - The addresses that a gateway translates: packets here carry none.
//! - Sessions: numbers begin at 0 with the gateway, and neither end is ever restarted.

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

/// The time as a gateway's clock tells it: microseconds, modulo 2^32.
#[expect(clippy::cast_possible_truncation, reason = "modulo 2^32")]
const fn micros(now: Instant) -> u32 {
    (now.as_picos() / 1_000_000) as u32
}
