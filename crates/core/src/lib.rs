//! Shared foundation of all layers of Anabranch: units, time, packets, random streams,
//! self-description of components, and the digest of observations. No clock, no I/O, no threads.
#![forbid(unsafe_code)]

pub mod body;
pub mod component;
pub mod digest;
pub mod histogram;
pub mod interrupt;
pub mod math;
pub mod packet;
pub mod parameters;
pub mod registry;
pub mod reordering;
pub mod ring;
pub mod rng;
pub mod shown;
pub mod side_file;
pub mod system;
pub mod trace;
pub mod trail;
pub mod tunnel;
pub mod units;
