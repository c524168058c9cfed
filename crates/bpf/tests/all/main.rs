//! Congestion controls as eBPF programs: in the simulator, beside their twins in Rust, and in the
//! kernel.

mod aqm;
mod cubic_plus;
mod division;
mod kernel;
mod simulator;
mod trace;
mod twins;
