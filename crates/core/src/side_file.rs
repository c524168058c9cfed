//! Text files beside a scenario: lists of numbers and quantities, one or more per line, with `#`
//! before comments.
//!
//! The caller reads the file. This module locates the values and the errors in its text.

use std::{borrow::Cow, ops::Range};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// An error in a file, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misread {
    /// The erroneous bytes of the text; empty at its end if something is missing.
    pub at: Range<usize>,
    /// Description of the error.
    pub message: String,
    /// The expected value.
    pub expected: String,
}

impl Misread {
    /// An error at `at`.
    pub fn new(at: Range<usize>, message: impl Into<String>, expected: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
            expected: expected.into(),
        }
    }
}

/// The schema of a path to such a file.
pub struct FileName;

impl JsonSchema for FileName {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "FileName".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "x-type": "path" })
    }
}

/// The non-empty lines, without comments and surrounding blanks, each with its position.
pub fn lines(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    let mut start = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let at = start;
        start += line.len();
        let said = line.split('#').next().unwrap_or_default();
        let word = said.trim();
        let indent = said.len() - said.trim_start().len();
        (!word.is_empty()).then(|| (at + indent..at + indent + word.len(), word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_position() {
        let text = "# head\n 12\r\n\n\t3 4  # why\nlast";
        let all: Vec<_> = lines(text).collect();
        assert_eq!(
            all.iter().map(|(_, word)| *word).collect::<Vec<_>>(),
            ["12", "3 4", "last"]
        );
        for (at, word) in all {
            assert_eq!(&text[at], word);
        }
        assert_eq!(lines("# nothing\n\n").count(), 0);
    }
}
