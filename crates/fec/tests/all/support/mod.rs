//! What tests of error correction share.

pub mod any_redundancy;
pub mod net;
