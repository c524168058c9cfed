//! Tests of the live engine in network namespaces: delivery of packets, and the detection of wrong
//! systems by its audit.

#![cfg(target_os = "linux")]

mod common;
mod conservation;
mod contents;
mod kernel_flows;
mod own_end;
