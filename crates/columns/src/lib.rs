//! Tables in Arrow's memory layout, exported through the Arrow C stream interface without a copy.
//!
//! Source: Apache Arrow, *The Arrow C data interface* and *The Arrow C stream interface*.
//!
//! # Not implemented
//! - Import of Arrow: [`Column::plain`] serves readers without it.
//! - Nested, dictionary and time types. Times are floats whose unit is part of the column's name.

mod column;
mod stream;

pub use column::{Column, Plain};
pub use stream::Stream;

use std::sync::Arc;

/// Named columns of equal length.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Arc<[(Box<str>, Column)]>,
    rows: usize,
}

/// The columns of a table differ in length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnequalLengths {
    /// The first column of another length.
    pub column: String,
    /// Its length.
    pub length: usize,
    /// The length of the first column.
    pub expected: usize,
}

impl std::fmt::Display for UnequalLengths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "column {:?} has {} rows; {} were expected",
            self.column, self.length, self.expected
        )
    }
}

impl std::error::Error for UnequalLengths {}

impl Table {
    /// Makes a table.
    ///
    /// # Errors
    /// [`UnequalLengths`].
    pub fn new<'a>(
        columns: impl IntoIterator<Item = (&'a str, Column)>,
    ) -> Result<Self, UnequalLengths> {
        let columns: Arc<[(Box<str>, Column)]> = columns
            .into_iter()
            .map(|(name, column)| (name.into(), column))
            .collect();
        let rows = columns.first().map_or(0, |(_, column)| column.len());
        match columns.iter().find(|(_, column)| column.len() != rows) {
            Some((name, column)) => Err(UnequalLengths {
                column: name.to_string(),
                length: column.len(),
                expected: rows,
            }),
            None => Ok(Self { columns, rows }),
        }
    }

    /// The number of rows.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// A stream of one batch that holds all rows. It shares the table's memory.
    #[must_use]
    pub fn stream(&self) -> Stream {
        Stream::new(self.clone())
    }

    /// The columns with their names.
    #[must_use]
    pub fn columns(&self) -> &[(Box<str>, Column)] {
        &self.columns
    }
}
