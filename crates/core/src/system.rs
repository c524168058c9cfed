//! What the operating system says.

use std::fmt::Display;

/// The system's words of an error, wherever they stand in its text, without the number that Rust puts behind them.
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
    fn the_number_of_an_error_is_left_out() {
        let inner = "No such file or directory (os error 2)";
        assert_eq!(words(inner), "No such file or directory");
        assert_eq!(
            words(&format!("`x`: {inner}; try {inner}.")),
            "`x`: No such file or directory; try No such file or directory."
        );
    }

    #[test]
    fn what_is_no_number_of_an_error_stays() {
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
