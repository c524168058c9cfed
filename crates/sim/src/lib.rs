//! Virtual time: runs a model from its first event to its last, as fast as it can be computed.
#![forbid(unsafe_code)]

pub mod run;
pub mod samples;

pub use anabranch_model::Progress;
pub use run::{Error, Finished, Simulation};
pub use samples::{AckSample, FlowSample, GroupSample, LinkSample, Samples};
