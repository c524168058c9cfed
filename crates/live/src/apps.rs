//! Applications and programs at the ends, with real sockets.

pub mod application;
pub mod datagram;
pub mod limits;
pub mod marks;
pub mod program;
pub mod sampler;
pub mod socket;
pub mod stage;
pub mod stream;
pub mod transfers;
