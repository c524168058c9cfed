//! The live engine in network namespaces: what it hands on, to whom, and what its audit says of wrong systems.

#![cfg(target_os = "linux")]

mod common;
mod conservation;
mod contents;
mod kernel_flows;
mod own_end;
