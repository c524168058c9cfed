//! Requirements of a scenario on this machine, and the assignment of packets to flows.

pub mod controls;
pub mod defaults;
pub mod devices;
pub mod directory;
pub mod error;
pub mod frame;
pub mod hindrance;
pub mod hops;
pub mod names;
pub mod refusal;
pub mod settings;
pub mod sharing;
pub mod times;
