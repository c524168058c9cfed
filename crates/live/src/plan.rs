//! What a scenario asks of this machine, and whose packet is whose.

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
