//! Queues.

mod aqm;
mod codel;
mod drr;
mod fq_codel;
mod laws;
mod pie;
mod preferential;
mod red;
mod share_red;
mod support;
mod threshold_mark;
