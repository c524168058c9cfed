//! Congestion controls as eBPF programs: one file runs in the simulator and in the Linux kernel.
//!
//! A control is a C file in the style of the kernel's own examples: a `struct tcp_congestion_ops`
//! and its functions. [`native`] compiles it with the system's compiler against our headers and
//! runs it as a [`CongestionControl`](anabranch_congestion::CongestionControl). [`kernel`] compiles
//! it with clang and loads it into the kernel, where any program can select it.
//!
//! [`shipped`] lists the shipped controls, which are twins of the simulator's own controls.
//!
//! [`trace`] is a different kind of program, which traces the kernel's TCP, and [`aqm`] another, which
//! drops and marks the packets that leave by a device.

pub mod aqm;
pub mod compile;
mod error;
pub mod kernel;
mod loader;
pub mod native;
pub mod privilege;
mod scenario;
pub mod shipped;
pub mod source;
pub mod temporary;
pub mod trace;

pub use self::{
    error::Error,
    scenario::{entry, extension, schema, source_of},
    source::Source,
};
