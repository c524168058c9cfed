//! Results of a run: summary, tables, traces.

pub mod summary;
pub mod trace;
