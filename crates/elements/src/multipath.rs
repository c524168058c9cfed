//! Gateways: one end spreads packets over several routes, the other brings them together again.
//!
//! Each end is a [`Middlebox`](crate::middlebox::Middlebox): an [`Entrance`] asks a splitter
//! ([`split`]) which route the next packet takes, an [`Exit`] asks a restorer ([`restore`]) which
//! packets may go on now. Both see packets and the time, never the network, so the same code can
//! stand on a wire.
//!
//! Source: T. Hayashi et al., "Performance Evaluation of TCP Communication using Multiple Routes".
//!
//! # Not implemented
//! - A header of the tunnel's own: its bytes count on the routes, but nothing is written in them.
//! - The addresses that a gateway translates: packets here carry none.

mod entrance;
mod exit;
pub mod restore;
pub mod split;

pub use entrance::Entrance;
pub use exit::Exit;
