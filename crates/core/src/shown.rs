//! Escaping of names, file names and messages from outside, for output on a terminal.
//!
//! The same characters as in `python/anabranch/text/shown.py`.

use std::fmt::Write;

/// Returns `text` with every control character replaced by a visible one.
#[must_use]
pub fn plain(text: &str) -> String {
    text.chars().map(visible).collect()
}

/// Returns `text` for a terminal. Line ends and tabs remain; other control characters become
/// visible.
#[must_use]
pub fn terminal(text: &str) -> String {
    let shown = |c| match c {
        '\n' | '\t' => c,
        _ => visible(c),
    };
    text.chars().map(shown).collect()
}

/// Returns an equivalent JSON document without control characters, which occur only inside its
/// strings. JSON already escapes those below U+0020.
#[must_use]
pub fn printable_json(document: &str) -> String {
    let mut text = String::with_capacity(document.len());
    for c in document.chars() {
        if c < '\x20' || !is_control(c) {
            text.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text
}

/// C0, DEL and C1; line separators and direction marks, which reorder the text around them;
/// invisible marks.
fn is_control(c: char) -> bool {
    matches!(
        c,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{ffff}' | '\u{e0000}'..='\u{e007f}'
    )
}

fn visible(c: char) -> char {
    match c {
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\x7f' => '\u{2421}',
        _ if is_control(c) => '\u{fffd}',
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::{plain, printable_json, terminal};

    const NAME: &str = "a\x1b[31m\x07\r\u{9b}2J\u{202e}b\u{2069}\u{feff}\x7f";

    #[test]
    fn controls_become_visible() {
        assert_eq!(plain(NAME), "a␛[31m␇␍\u{fffd}2J\u{fffd}b\u{fffd}\u{fffd}␡");
        assert_eq!(plain("Zürich, 東京, 😀"), "Zürich, 東京, 😀");
    }

    #[test]
    fn a_terminal_has_lines_and_tabs() {
        assert_eq!(terminal("a\n\tb\r"), "a\n\tb␍");
        assert_eq!(plain("a\n"), "a␊");
    }

    #[test]
    fn an_escaped_json_document_reads_the_same() {
        let document = serde_json::json!({ "name": NAME, "tag": "\u{e0041}" }).to_string();
        let shown = printable_json(&document);
        assert_eq!(terminal(&shown), shown);
        let read: serde_json::Value = serde_json::from_str(&shown).expect("it is JSON");
        assert_eq!(read["name"], NAME);
        assert_eq!(read["tag"], "\u{e0041}");
    }
}
