//! Queues.

mod aqm;
mod cake;
mod codel;
mod decisions;
mod drr;
mod dualpi2;
mod fq_codel;
mod laws;
mod pie;
mod preferential;
mod red;
mod share_red;
mod support;
mod threshold_mark;
