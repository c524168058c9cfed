//! What is wrong with a scenario, and where.

use std::fmt;

mod fault;
mod nearest;
mod place;

pub use self::nearest::nearest;
use self::place::Excerpt;
pub(super) use self::{
    fault::Fault,
    nearest::choice,
    place::{Place, Sources},
};

/// Bad input: one message that names the place, what was expected, and the nearest valid name.
///
/// [`Display`](fmt::Display) renders all of it, the source line with a caret included.
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
    excerpt: Option<Box<Excerpt>>,
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
        if let Some(excerpt) = &self.excerpt {
            write!(f, "\n{gutter} |\n{number} | {}", excerpt.text)?;
            let indent = " ".repeat(excerpt.indent);
            write!(f, "\n{gutter} | {indent}{}", "^".repeat(excerpt.width))?;
        }
        for line in &self.help {
            write!(f, "\n{gutter} = {line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
