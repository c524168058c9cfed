//! Laws and examples of whole runs, a module for each topic. They are one program because linking one for each took longer
//! than running them.

mod applications;
mod bbr3;
mod bonding;
mod buffers;
mod conservation;
mod counters;
mod determinism;
mod ecn;
mod failover;
mod fec;
mod fec_adaptive;
mod fec_adaptive_share;
mod gateway;
mod golden;
mod group;
mod impairments;
mod interrupt;
mod invariants;
mod link_down;
mod ncr;
mod open_loop;
mod opening;
mod processing;
mod queue_identity;
mod queues_delay;
mod seams;
mod short_flows;
mod support;
mod tables;
mod taps;
mod trace;
mod tunnel;
mod udp;
mod why;
mod windows;
