//! Errors in a script or in the behaviour of its target, with their position.

use std::fmt;

/// A position in a script; both numbers count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

/// A message with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The script.
    pub file: String,
    /// Its position.
    pub at: Position,
    /// The problem, and the expected input.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column } = self.at;
        write!(f, "{}:{line}:{column}: {}", self.file, self.message)
    }
}

impl std::error::Error for Error {}

/// The known name closest to `given`, if at most a third of its letters differ.
pub(crate) fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let far = given.chars().count() / 3 + 1;
    known
        .iter()
        .map(|name| (distance(given, name), *name))
        .filter(|(distance, _)| *distance <= far)
        .min()
        .map(|(_, name)| name)
}

/// The edit distance: letters to insert, delete or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// ` (expected one of …; nearest: …)`, for messages about unknown names.
pub(crate) fn choices(given: &str, known: &[&str]) -> String {
    let hint = nearest(given, known).map_or(String::new(), |name| format!("; nearest is `{name}`"));
    format!("expected one of {}{hint}", known.join(", "))
}
