//! What is wrong with a document, and where.

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

/// The most errors that are reported at once.
pub const MOST: usize = 20;

/// Bad input: the place, what was expected, and the nearest valid name; the same of what else is wrong.
///
/// [`Display`](fmt::Display) renders all of it, the source lines with carets included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The file, or `--set 'PATH=VALUE'` for a value given there.
    pub file: String,
    /// The line in the file, from 1; `None` outside a file.
    pub line: Option<u32>,
    /// The column in characters, from 1; `None` outside a file.
    pub column: Option<u32>,
    /// What is wrong, on one line.
    pub message: String,
    /// What was expected and the nearest valid name.
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
    /// Errors as one, in this order; `None` of none.
    #[must_use]
    pub fn all(errors: Vec<Self>) -> Option<Self> {
        let mut rest = errors.into_iter();
        let mut first = rest.next()?;
        first.inner.more = rest.collect();
        Some(first)
    }

    /// What else is wrong: first values by themselves, then those that do not fit together.
    #[must_use]
    pub fn more(&self) -> &[Self] {
        &self.inner.more
    }

    /// Where it stands in the document; of an error in another file, where the document names that.
    #[must_use]
    pub fn place(&self) -> Place {
        self.inner.place
    }

    /// The same, of a file that the document names at this place.
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
