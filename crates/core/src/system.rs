//! Messages of the operating system.

use std::fmt::Display;

/// Returns the system's error messages within a text, without the error number that Rust appends.
#[must_use]
pub fn words(error: &(impl Display + ?Sized)) -> String {
    const BEFORE: &str = " (os error ";
    let text = error.to_string();
    let mut parts = text.split(BEFORE);
    let mut words = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
        match rest.strip_prefix(')') {
            Some(rest) if rest.len() + 1 < part.len() => words.push_str(rest),
            _ => words = words + BEFORE + part,
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn the_number_of_an_error_is_removed() {
        let inner = "No such file or directory (os error 2)";
        assert_eq!(words(inner), "No such file or directory");
        assert_eq!(
            words(&format!("`x`: {inner}; try {inner}.")),
            "`x`: No such file or directory; try No such file or directory."
        );
    }

    #[test]
    fn text_other_than_an_error_number_remains() {
        for text in [
            "a (b)",
            "a (os error )",
            "a (os error 2",
            "a (os error x)",
            "",
        ] {
            assert_eq!(words(text), text);
        }
    }
}
