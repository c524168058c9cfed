//! What is wrong with a scenario, and where.

use std::{fmt, ops::Range, sync::Arc};

use serde::de;

/// The most characters of a source line that an error shows.
const EXCERPT: usize = 100;

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

#[derive(Debug, Clone, PartialEq, Eq)]
struct Excerpt {
    text: String,
    /// Blanks before the caret.
    indent: usize,
    width: usize,
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

/// A range of bytes in one of the texts that make up a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub source: u32,
    pub start: u32,
    pub end: u32,
}

impl Place {
    /// # Panics
    /// If the range is beyond 4 GiB, which [`super::MAX_BYTES`] rules out.
    pub(super) fn new(source: u32, range: Range<usize>) -> Self {
        let small = |n: usize| u32::try_from(n).expect("texts are below the size limit");
        Self {
            source,
            start: small(range.start),
            end: small(range.end),
        }
    }
}

impl Place {
    pub(super) fn is_in_file(self) -> bool {
        self.source == 0
    }
}

/// The texts that make up a scenario: the file, then what `--set` gave.
#[derive(Debug, Clone)]
pub(super) struct Sources(Vec<Source>);

#[derive(Debug, Clone)]
struct Source {
    name: String,
    text: Arc<str>,
    is_file: bool,
}

impl Sources {
    pub(super) fn new(file: &str, text: &str) -> Self {
        Self(vec![Source {
            name: file.to_owned(),
            text: text.into(),
            is_file: true,
        }])
    }

    /// Adds the text of a `--set` and returns its number.
    pub(super) fn add_set(&mut self, text: &str) -> u32 {
        let name = format!("--set '{}'", clean(text, 0..text.len()).text);
        self.0.push(Source {
            name,
            text: text.into(),
            is_file: false,
        });
        u32::try_from(self.0.len() - 1).expect("fewer than 2^32 command-line arguments")
    }

    pub(super) fn file(&self) -> &str {
        &self.0[0].name
    }

    /// The error at `place`.
    pub(super) fn error(
        &self,
        place: Place,
        message: impl Into<String>,
        help: Vec<String>,
    ) -> Error {
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
            excerpt: (!line.trim().is_empty()).then(|| Box::new(clean(line, from..to))),
        }
    }

    /// The same for a fault found while reading values.
    pub(super) fn fault(&self, fault: Fault, otherwise: Place) -> Error {
        let place = fault.place.unwrap_or(otherwise);
        let (message, help) = fault.explain();
        self.error(place, message, help)
    }
}

fn floor_char_boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at)
        .rev()
        .find(|i| text.is_char_boundary(*i))
        .unwrap_or(0)
}

/// A message quotes input, and input may hold anything.
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

/// The line around `marked`, control characters replaced, at most [`EXCERPT`] characters.
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

/// What reading a value found wrong; the innermost reader that knows the place adds it.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    pub place: Option<Place>,
    pub message: String,
    pub help: Vec<String>,
    pub unknown: Option<Box<Unknown>>,
}

/// A name that is not among those possible where it stands.
#[derive(Debug, Clone)]
pub(super) struct Unknown {
    pub noun: &'static str,
    pub name: String,
    pub expected: Vec<String>,
}

impl Fault {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            place: None,
            message: message.into(),
            help: Vec::new(),
            unknown: None,
        }
    }

    pub(super) fn help(mut self, line: impl Into<String>) -> Self {
        self.help.push(line.into());
        self
    }

    pub(super) fn at(mut self, place: Place) -> Self {
        self.place.get_or_insert(place);
        self
    }

    pub(super) fn unknown(noun: &'static str, name: &str, expected: Vec<String>) -> Self {
        Self {
            unknown: Some(Box::new(Unknown {
                noun,
                name: name.to_owned(),
                expected,
            })),
            ..Self::new("")
        }
    }

    fn explain(self) -> (String, Vec<String>) {
        let Some(unknown) = self.unknown else {
            return (self.message, self.help);
        };
        let message = format!("unknown {} `{}`", unknown.noun, unknown.name);
        (message, choice(&unknown.name, &unknown.expected))
    }
}

/// The help for a wrong name: those possible, and the nearest of them.
pub(super) fn choice<S: AsRef<str>>(wrong: &str, possible: &[S]) -> Vec<String> {
    const SHOWN: usize = 24;
    let mut names: Vec<_> = possible
        .iter()
        .take(SHOWN)
        .map(|s| format!("`{}`", s.as_ref()))
        .collect();
    if possible.len() > SHOWN {
        names.push(format!("… ({} in all)", possible.len()));
    }
    let mut help = vec![match names.len() {
        0 => "there are none to choose from".to_owned(),
        1 => format!("expected {}", names[0]),
        _ => format!("expected one of {}", names.join(", ")),
    }];
    if let Some(near) = nearest(wrong, possible) {
        help.push(format!("did you mean `{near}`?"));
    }
    help
}

/// The nearest of `possible`, if any is near enough to be meant.
pub(super) fn nearest<'a, S: AsRef<str>>(wrong: &str, possible: &'a [S]) -> Option<&'a str> {
    const LONGEST: usize = 64;
    let letters = |s: &str| -> Vec<char> { s.to_lowercase().replace('_', "-").chars().collect() };
    if wrong.len() > LONGEST {
        return None;
    }
    let wrong = letters(wrong);
    possible
        .iter()
        .map(AsRef::as_ref)
        .filter(|name| name.len() <= LONGEST)
        .map(|name| {
            let name_letters = letters(name);
            let longer = name_letters.len().max(wrong.len());
            (edits(&wrong, &name_letters), longer, name)
        })
        .filter(|(edits, longer, _)| *edits <= (longer / 3).max(1) && edits < longer)
        .min_by_key(|(edits, _, _)| *edits)
        .map(|(_, _, name)| name)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
fn edits(a: &[char], b: &[char]) -> usize {
    let mut two_back = vec![0; b.len() + 1];
    let mut back: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replace = back[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replace.min(back[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(two_back[j - 2] + 1);
            }
        }
        two_back = std::mem::replace(&mut back, row);
    }
    back[b.len()]
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.clone().explain().0)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    /// What follows the first `"; "` is help.
    fn custom<T: fmt::Display>(message: T) -> Self {
        let text = message.to_string();
        match text.split_once("; ") {
            Some((message, help)) => Self::new(message).help(help),
            None => Self::new(text),
        }
    }
    fn invalid_type(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::new(format!("this is {}", describe(found))).help(wanted(expected))
    }
    fn invalid_value(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::new(format!("{} does not fit here", describe(found))).help(wanted(expected))
    }
    fn invalid_length(length: usize, expected: &dyn de::Expected) -> Self {
        let plural = if length == 1 { "" } else { "s" };
        Self::new(format!("this list has {length} element{plural}")).help(wanted(expected))
    }
    fn unknown_field(name: &str, expected: &'static [&'static str]) -> Self {
        Self::unknown(
            "key",
            name,
            expected.iter().map(ToString::to_string).collect(),
        )
    }
    fn unknown_variant(name: &str, expected: &'static [&'static str]) -> Self {
        Self::unknown(
            "name",
            name,
            expected.iter().map(ToString::to_string).collect(),
        )
    }
    fn missing_field(name: &'static str) -> Self {
        Self::new(format!("the key `{name}` is missing here"))
            .help(format!("expected `{name} = …`"))
    }
}

fn describe(found: de::Unexpected<'_>) -> String {
    use de::Unexpected as U;
    match found {
        U::Bool(value) => format!("the boolean `{value}`"),
        U::Unsigned(value) => format!("the number `{value}`"),
        U::Signed(value) => format!("the number `{value}`"),
        U::Float(value) => format!("the number `{value}`"),
        U::Str(text) => format!("the text {text:?}"),
        U::Seq => "a list".to_owned(),
        U::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}

fn wanted(expected: &dyn de::Expected) -> String {
    let text = expected.to_string();
    // TOML's integers end at 2^63 - 1.
    let whole = |from: u32, bits: u32| {
        let largest = u64::MAX >> (64 - bits.min(63));
        format!("a whole number from {from} to {largest}")
    };
    let plain = match text.as_str() {
        "u8" => whole(0, 8),
        "u16" => whole(0, 16),
        "u32" => whole(0, 32),
        "u64" | "usize" => whole(0, 64),
        "a nonzero u32" => whole(1, 32),
        "a nonzero u64" | "a nonzero usize" => whole(1, 64),
        "i32" | "i64" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "`true` or `false`".to_owned(),
        "a string" => "a text in quotation marks".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        "an array of length 2" => "a list of 2 elements".to_owned(),
        _ => match text.strip_prefix("struct ") {
            Some(_) => "a table".to_owned(),
            None => text,
        },
    };
    format!("expected {plain}")
}
