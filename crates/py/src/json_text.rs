//! JSON as Python's `json.dumps(value, indent=2)` writes it.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

/// Writes a value with two spaces per level, and a newline at the end.
pub fn indented(value: &impl Serialize) -> serde_json::Result<String> {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(
        &mut text,
        Indented::default(),
    ))?;
    text.push(b'\n');
    String::from_utf8(text).map_err(serde::ser::Error::custom)
}

/// The layout of [`PrettyFormatter`], with numbers as Python's `repr` writes them.
#[derive(Default)]
struct Indented(PrettyFormatter<'static>);

impl Formatter for Indented {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let mut text = Vec::new();
        CompactFormatter.write_f64(&mut text, value)?;
        if value == 0.0 || (1e-4..1e16).contains(&value.abs()) {
            return writer.write_all(&text);
        }
        let text = String::from_utf8_lossy(&text);
        let unsigned = text.trim_start_matches('-');
        let (mantissa, exponent) = unsigned.split_once('e').unwrap_or((unsigned, "0"));
        let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = [whole, part].concat();
        let leading = digits.len() - digits.trim_start_matches('0').len();
        let place = |length: usize| i64::try_from(length).unwrap_or_default();
        let exponent = exponent.parse().unwrap_or(0) + place(whole.len()) - place(leading) - 1;
        let (first, rest) = digits[leading..].split_at(1);
        let rest = rest.trim_end_matches('0');
        let point = if rest.is_empty() { "" } else { "." };
        // The exponent has a sign and two digits or more.
        let sign = if value < 0.0 { "-" } else { "" };
        write!(writer, "{sign}{first}{point}{rest}e{exponent:+03}")
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_and_empty_lists_have_the_form_of_python() {
        let value = json!({"numbers": [1e-5, -1.5e-7, 0.0001, 5.0, 1e15, 1e16, 1.25e300, -0.0, 0.676_155_090_332_031_2], "none": [], "map": {}});
        let expected = "{\n  \"numbers\": [\n    1e-05,\n    -1.5e-07,\n    0.0001,\n    5.0,\n    1000000000000000.0,\n    1e+16,\n    1.25e+300,\n    -0.0,\n    0.6761550903320312\n  ],\n  \"none\": [],\n  \"map\": {}\n}\n";
        assert_eq!(indented(&value).expect("it is JSON"), expected);
    }
}
