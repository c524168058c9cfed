//! The results of a run as declared: the schema of its summary, and its tables as columns.
//!
//! The Python module and the studio read the same tables under the same names.
#![forbid(unsafe_code)]

mod packed;
mod scalars;
mod tables;

pub use packed::{Cursor, Packets};
pub use scalars::{DeclaredColumn, definitions};
pub use tables::{Declared, Error, build, declared, packet_column, packet_columns, packet_table};
