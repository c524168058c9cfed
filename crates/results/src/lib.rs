//! The results of a run as declared: the schema of its summary, and its tables as columns.
//!
//! The Python module and the studio read the same tables under the same names. Without the feature
//! `schema` the tables `flows` and `links` lack the figures of the summary.
#![forbid(unsafe_code)]

mod packed;
mod scalars;
mod tables;

pub use packed::{Cursor, Packets};
pub use scalars::DeclaredColumn;
#[cfg(feature = "schema")]
pub use scalars::definitions;
pub use tables::{
    Declared, Error, build, build_underway, declared, packet_column, packet_columns, packet_table,
};
