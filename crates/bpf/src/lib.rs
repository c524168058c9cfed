//! Congestion controls as eBPF programs: one file runs in the simulator and in the Linux kernel.
//!
//! A control is a C file in the style of the kernel's own examples, a `struct tcp_congestion_ops`
//! and its functions. [`native`] compiles it with the system's compiler against headers of our own and
//! runs it as a [`CongestionControl`](anabranch_congestion::CongestionControl); [`kernel`] compiles it
//! with clang and gives it to the kernel, where any program can choose it.
//!
//! [`shipped`] lists those that come along, twins of the simulator's own controls.
//!
//! [`trace`] is another kind of program: one that tells what the kernel's TCP does.

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
