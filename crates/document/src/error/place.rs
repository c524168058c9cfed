//! Positions in the texts of a scenario, and the display of a source line.

use std::{ops::Range, sync::Arc};

use super::{Error, Fault, Inner};

/// Largest number of characters of a source line in an error.
const EXCERPT: usize = 100;

/// A range of bytes in one of the texts of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// 0 for the file; then the overrides.
    pub source: u32,
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Place {
    /// A range of bytes of a source.
    ///
    /// # Panics
    /// If the range exceeds 4 GiB: the size limit of documents is far lower.
    #[must_use]
    pub fn new(source: u32, range: Range<usize>) -> Self {
        let small = |n: usize| u32::try_from(n).expect("texts are below the size limit");
        Self {
            source,
            start: small(range.start),
            end: small(range.end),
        }
    }
}

impl Place {
    /// Whether it is in the file, not in an override.
    #[must_use]
    pub fn is_in_file(self) -> bool {
        self.source == 0
    }
}

/// The texts of a scenario: the file, followed by the `--set` overrides.
#[derive(Debug, Clone)]
pub struct Sources(Vec<Source>);

#[derive(Debug, Clone)]
struct Source {
    name: String,
    text: Arc<str>,
    is_file: bool,
}

impl Sources {
    /// The sources with only the file.
    #[must_use]
    pub fn new(file: &str, text: &str) -> Self {
        Self(vec![Source {
            name: file.to_owned(),
            text: text.into(),
            is_file: true,
        }])
    }

    /// Adds the text of a `--set` and returns its number.
    ///
    /// # Panics
    /// At 2^32 texts.
    pub fn add_set(&mut self, text: &str) -> u32 {
        let name = format!("--set '{}'", clean(text, 0..text.len()).text);
        self.0.push(Source {
            name,
            text: text.into(),
            is_file: false,
        });
        u32::try_from(self.0.len() - 1).expect("fewer than 2^32 command-line arguments")
    }

    /// The file's name.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.0[0].name
    }

    /// Returns the error at `place`.
    pub fn error(&self, place: Place, message: impl Into<String>, help: Vec<String>) -> Error {
        let source = &self.0[place.source as usize];
        let text = &*source.text;
        let start = floor_char_boundary(text, place.start as usize);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let end = floor_char_boundary(text, (place.end as usize).clamp(start, line_end));
        let line = text[line_start..line_end].trim_end_matches('\r');
        let position = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let line_number = 1 + text[..line_start].bytes().filter(|b| *b == b'\n').count();
        let column = 1 + text[line_start..start].chars().count();
        let from = (start - line_start).min(line.len());
        let to = (end - line_start).min(line.len());
        Error {
            file: source.name.clone(),
            line: source.is_file.then_some(position(line_number)),
            column: source.is_file.then_some(position(column)),
            message: one_line(&message.into()),
            help: help.into_iter().map(|line| one_line(&line)).collect(),
            inner: Box::new(Inner {
                excerpt: (!line.trim().is_empty()).then(|| clean(line, from..to)),
                place,
                more: Vec::new(),
            }),
        }
    }

    /// Returns the error for a fault; `otherwise` is its position if it has none.
    #[must_use]
    pub fn fault(&self, fault: Fault, otherwise: Place) -> Error {
        let place = fault.place.unwrap_or(otherwise);
        let (message, help) = fault.explain();
        self.error(place, message, help)
    }
}

impl Sources {
    /// Returns the error for all faults, at least one.
    #[must_use]
    pub fn faults(&self, faults: Vec<Fault>, otherwise: Place) -> Error {
        let errors = faults.into_iter().map(|fault| self.fault(fault, otherwise));
        Error::all(errors.collect()).unwrap_or_else(|| self.error(otherwise, "", Vec::new()))
    }
}

fn floor_char_boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at)
        .rev()
        .find(|i| text.is_char_boundary(*i))
        .unwrap_or(0)
}

/// Makes a message one line without control characters, because a message quotes input.
fn one_line(message: &str) -> String {
    let mut line: String = message
        .chars()
        .take(400)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if line.len() < message.len() && message.chars().count() > 400 {
        line.push('…');
    }
    line
}

/// An excerpt of the line around `marked` of at most [`EXCERPT`] characters, with control
/// characters replaced.
fn clean(line: &str, marked: Range<usize>) -> Excerpt {
    let before = line[..marked.start].chars().count();
    let width = line[marked.clone()].chars().count();
    let skip = if before > EXCERPT * 2 / 3 {
        before - EXCERPT / 3
    } else {
        0
    };
    let mut text = String::new();
    if skip > 0 {
        text.push('…');
    }
    let mut rest = line.chars().skip(skip);
    text.extend(rest.by_ref().take(EXCERPT).map(|c| match c {
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }));
    if rest.next().is_some() {
        text.push('…');
    }
    let indent = before - skip + usize::from(skip > 0);
    let room = text.chars().count().saturating_sub(indent);
    Excerpt {
        text,
        indent,
        width: width.clamp(1, room.max(1)),
    }
}

/// A source line as shown in an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Excerpt {
    pub text: String,
    /// Number of blanks before the caret.
    pub indent: usize,
    pub width: usize,
}
