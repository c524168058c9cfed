//! Laws and examples of whole runs, a module for each topic. They are one program because linking one for each took longer
//! than running them.

mod applications;
mod bbr3;
mod buffers;
mod common;
mod conservation;
mod counters;
mod determinism;
mod ecn;
mod failover;
mod fec;
mod gateway;
mod golden;
mod group;
mod impairments;
mod interrupt;
mod invariants;
mod link_down;
#[path = "common/logged.rs"]
mod logged;
mod ncr;
mod open_loop;
mod opening;
mod processing;
mod queue_identity;
mod queues_delay;
mod short_flows;
mod taps;
mod trace;
mod udp;
mod why;
mod windows;
