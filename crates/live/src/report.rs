//! What a run gives: summary, tables, traces.

pub mod summary;
pub mod trace;
