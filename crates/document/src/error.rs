//! Errors in a document, with their positions.

use std::fmt;

mod fault;
mod nearest;
mod place;

use self::place::Excerpt;
pub use self::{
    fault::{Fault, Unknown},
    nearest::{choice, nearest, synonyms},
    place::{Place, Sources},
};

/// Largest number of errors reported at once.
pub const MOST: usize = 20;

/// Bad input: the position, the expected value, and the nearest valid name; also any further
/// errors.
///
/// [`Display`](fmt::Display) renders all of it, including the source lines with carets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The file, or `--set 'PATH=VALUE'` for a value from there.
    pub file: String,
    /// The line in the file, from 1; `None` outside a file.
    pub line: Option<u32>,
    /// The column in characters, from 1; `None` outside a file.
    pub column: Option<u32>,
    /// Description of the error, on one line.
    pub message: String,
    /// The expected value and the nearest valid name.
    pub help: Vec<String>,
    /// Boxed to keep results small.
    inner: Box<Inner>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    excerpt: Option<Excerpt>,
    place: Place,
    more: Vec<Error>,
}

impl Error {
    /// Combines errors into one, in this order; `None` if there are none.
    #[must_use]
    pub fn all(errors: Vec<Self>) -> Option<Self> {
        let mut rest = errors.into_iter();
        let mut first = rest.next()?;
        first.inner.more = rest.collect();
        Some(first)
    }

    /// Further errors: first invalid values, then contradictions between values.
    #[must_use]
    pub fn more(&self) -> &[Self] {
        &self.inner.more
    }

    /// Position in the document; for an error in another file, the position at which the document
    /// names that file.
    #[must_use]
    pub fn place(&self) -> Place {
        self.inner.place
    }

    /// Sets the position at which the document names the file of the error.
    #[must_use]
    pub fn in_file_named_at(mut self, place: Place) -> Self {
        self.inner.place = place;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)?;
        let number = self.line.map(|n| n.to_string()).unwrap_or_default();
        let gutter = " ".repeat(number.len());
        if let Some(excerpt) = &self.inner.excerpt {
            write!(f, "\n{gutter} |\n{number} | {}", excerpt.text)?;
            let indent = " ".repeat(excerpt.indent);
            write!(f, "\n{gutter} | {indent}{}", "^".repeat(excerpt.width))?;
        }
        for line in &self.help {
            write!(f, "\n{gutter} = {line}")?;
        }
        for error in self.more() {
            write!(f, "\n\n{error}")?;
        }
        match 1 + self.more().len() {
            1 => Ok(()),
            MOST => write!(f, "\n\n{MOST} errors, and perhaps more"),
            n => write!(f, "\n\n{n} errors"),
        }
    }
}

impl std::error::Error for Error {}
