//! The loop that moves packets through the network in real time, and its audit.

pub mod audit;
pub mod connections;
pub mod conservation;
pub mod driver;
pub mod end;
pub mod endpoint;
pub mod play;
pub mod router;
