//! Shared code of the tests of error correction.

pub mod any_redundancy;
pub mod net;
