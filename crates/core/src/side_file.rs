//! Text files beside a scenario: lists of numbers and quantities, one or more to a line, `#` before comments.
//!
//! Reading the file is the caller's; here its text becomes values, and what is wrong with it gets a place.

use std::{borrow::Cow, ops::Range};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// What is wrong in a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misread {
    /// The bytes of the text that are wrong; empty at its end if something is missing.
    pub at: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What was expected.
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

/// The lines that say something, without comments and the blanks around, each with its place.
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
    fn lines_have_their_place() {
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
