//! What the kernel lends: namespaces, devices, clocks, priorities; all unsafe code.

pub mod address;
pub mod clock;
pub mod descriptors;
pub mod exchange;
pub mod favour;
pub mod host;
pub mod namespace;
pub mod sys;
pub mod tun;
