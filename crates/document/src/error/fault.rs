//! Errors found while a value is read, in terms that require no knowledge of the program.

use std::{
    fmt::{self, Write},
    ops::{Deref, DerefMut},
};

use serde::de;

use super::{Place, choice};

/// An error found while a value is read; the innermost reader with a position adds it.
///
/// It is boxed, because every reader of a value returns it through all levels of the format.
#[derive(Debug, Clone)]
pub struct Fault(Box<Parts>);

/// The parts of a [`Fault`].
#[derive(Debug, Clone, Default)]
pub struct Parts {
    /// Position; `None` until a reader adds it.
    pub place: Option<Place>,
    /// Description of the error, on one line.
    pub message: String,
    /// The expected value.
    pub help: Vec<String>,
    /// Set for an invalid name; it determines the message.
    pub unknown: Option<Unknown>,
    /// A key is missing.
    pub is_missing: bool,
}

/// A name that is not among the valid names.
#[derive(Debug, Clone)]
pub struct Unknown {
    /// The noun for the name.
    pub noun: &'static str,
    /// The name.
    pub name: String,
    /// The valid names.
    pub expected: Vec<String>,
}

impl Fault {
    /// An error with only a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            message: message.into(),
            ..Parts::default()
        }))
    }

    /// The error for a missing required key.
    #[must_use]
    pub fn missing(key: &str) -> Self {
        let mut fault = Self::new(format!("the key `{key}` is missing here"));
        fault.is_missing = true;
        fault
    }

    /// Adds a line of help.
    #[must_use]
    pub fn help(mut self, line: impl Into<String>) -> Self {
        self.help.push(line.into());
        self
    }

    /// Sets the position, unless an inner reader has set it.
    #[must_use]
    #[cold]
    pub fn at(mut self, place: Place) -> Self {
        self.place.get_or_insert(place);
        self
    }

    /// The error for an invalid name.
    #[must_use]
    pub fn unknown(noun: &'static str, name: &str, expected: Vec<String>) -> Self {
        let mut fault = Self::new("");
        fault.unknown = Some(Unknown {
            noun,
            name: name.to_owned(),
            expected,
        });
        fault
    }

    /// Adds a word that was also valid.
    #[must_use]
    pub fn or(mut self, word: &str) -> Self {
        if let Some(unknown) = &mut self.unknown {
            unknown.expected.push(word.to_owned());
        } else if let Some(line) = self.help.first_mut()
            && !line.contains(&format!("\"{word}\""))
        {
            let _ = write!(line, ", or \"{word}\"");
        }
        self
    }

    pub(super) fn explain(self) -> (String, Vec<String>) {
        let parts = *self.0;
        let Some(unknown) = parts.unknown else {
            return (parts.message, parts.help);
        };
        let message = format!("unknown {} `{}`", unknown.noun, unknown.name);
        (message, choice(&unknown.name, &unknown.expected))
    }
}

impl Deref for Fault {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl DerefMut for Fault {
    fn deref_mut(&mut self) -> &mut Parts {
        &mut self.0
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.clone().explain().0)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    /// The text after the first `"; "` is help.
    fn custom<T: fmt::Display>(message: T) -> Self {
        let text = message.to_string();
        match text.split_once("; ") {
            Some((message, help)) => Self::new(message).help(help),
            None => Self::new(text),
        }
    }
    fn invalid_type(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let help = match instead(found, &expected.to_string()) {
            Some(meant) => format!("did you mean {meant}? {}", wanted(expected)),
            None => wanted(expected),
        };
        Self::new(format!("this is {}", describe(found))).help(help)
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
        Self::missing(name).help(format!("expected `{name} = …`"))
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

/// Suggests the meaning of a text in place of another type: the quoted number, the percentage, one
/// element of a list.
fn instead(found: de::Unexpected<'_>, expected: &str) -> Option<String> {
    let de::Unexpected::Str(text) = found else {
        return None;
    };
    let number = |text: &str| {
        let read: f64 = text.trim().parse().ok()?;
        read.is_finite().then_some(read)
    };
    match expected {
        "f32" | "f64" => match text.strip_suffix('%') {
            // Rounded, so that 0.7 % is not 0.006999999999999999.
            Some(share) => number(share).map(|share| ((share * 1e10).round() / 1e12).to_string()),
            None => number(text).map(|value| value.to_string()),
        },
        "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" | "a nonzero u32"
        | "a nonzero u64" | "a nonzero usize" => {
            let whole: i64 = text.trim().parse().ok()?;
            Some(whole.to_string())
        }
        "a sequence" => Some(format!("[{text:?}]")),
        _ => None,
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

#[cfg(test)]
mod tests {
    use serde::de::{Error as _, Unexpected};

    use super::Fault;

    fn help(text: &str, expected: &'static str) -> String {
        Fault::invalid_type(Unexpected::Str(text), &expected)
            .help
            .join(" ")
    }

    #[test]
    fn a_text_with_the_meaning_of_a_number_or_a_list_has_a_suggestion() {
        assert_eq!(help("0.7", "f64"), "did you mean 0.7? expected a number");
        assert_eq!(help("0.7%", "f64"), "did you mean 0.007? expected a number");
        assert_eq!(
            help("0.1 %", "f64"),
            "did you mean 0.001? expected a number"
        );
        assert_eq!(
            help("3", "u8"),
            "did you mean 3? expected a whole number from 0 to 255"
        );
        assert_eq!(
            help("isp1", "a sequence"),
            "did you mean [\"isp1\"]? expected a list"
        );
    }

    #[test]
    fn a_text_without_another_meaning_has_no_suggestion() {
        for (text, expected) in [("much", "f64"), ("inf", "f64"), ("", "u8"), ("3", "a map")] {
            assert!(!help(text, expected).contains("did you mean"), "{text}");
        }
    }
}
