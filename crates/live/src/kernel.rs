//! Namespaces, devices, clocks and priorities of the kernel. All unsafe code is here.

pub mod address;
pub mod clock;
pub mod descriptors;
pub mod exchange;
pub mod favour;
pub mod host;
pub mod namespace;
pub mod sys;
pub mod tun;
