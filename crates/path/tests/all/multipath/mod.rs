//! Gateways: splitters, restorers and the tunnel's header.

mod header;
mod numbers;
mod resend;
mod restore;
mod split;
mod support;
