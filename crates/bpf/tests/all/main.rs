//! Congestion controls as eBPF programs: in the simulator, beside their twins in Rust, and in the kernel.

mod cubic_plus;
#[cfg(feature = "kernel")]
mod kernel;
mod simulator;
#[cfg(feature = "kernel")]
mod trace;
mod twins;
