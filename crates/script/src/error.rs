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
    /// Whether the script or its target is wrong.
    pub cause: Cause,
}

/// The cause of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The script is wrong, or asks for a setting that the target does not have.
    Script,
    /// packetdrill accepts the script; this subset of its language does not.
    Unsupported,
    /// The target does not behave as the script expects. The fields of the two sides, if both are
    /// known.
    Target(Vec<Field>),
}

/// A field of an expected packet or result, and the same field of the actual one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// The expected value; empty if the script names none.
    pub expected: String,
    /// The actual value; empty if there is none.
    pub actual: String,
    /// Whether the two values contradict each other.
    pub differs: bool,
}

impl Field {
    /// A field whose two values differ.
    pub(crate) fn differing(
        name: &'static str,
        expected: impl Into<String>,
        actual: impl Into<String>,
    ) -> Self {
        Self {
            name,
            expected: expected.into(),
            actual: actual.into(),
            differs: true,
        }
    }
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
