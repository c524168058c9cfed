//! Splits text into tokens.

use crate::error::{Cause, Error, Position};

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// Letters, digits, `_`, `-` and `.` after a first letter or `_`.
    Word(String),
    /// Digits with at most one point, as written.
    Number(String),
    /// Between double quotes.
    Text(String),
    /// Between backquotes.
    Command(String),
    /// One of the signs, longest first.
    Sign(&'static str),
    /// Another character of Python code.
    Other(char),
    /// The end of the script.
    End,
}

impl Token {
    /// Describes the token in messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Word(text) | Self::Number(text) => format!("`{text}`"),
            Self::Text(text) => format!("\"{text}\""),
            Self::Command(_) => "a command".to_owned(),
            Self::Sign(sign) => format!("`{sign}`"),
            Self::Other(sign) => format!("`{sign}`"),
            Self::End => "the end of the script".to_owned(),
        }
    }
}

const SIGNS: [&str; 29] = [
    "...", "%{", "}%", "==", "!=", "<=", ">=", "--", "+", "-", "*", "~", "<", ">", "(", ")", "[",
    "]", "{", "}", ",", ":", ";", "=", ".", "|", "?", "/", "&",
];

/// The tokens of a whole script; the last one is [`Token::End`].
pub(crate) fn tokens(text: &str, file: &str) -> Result<Vec<(Position, Token)>, Error> {
    let mut lexer = Lexer {
        rest: text,
        at: Position { line: 1, column: 1 },
        file,
        in_code: false,
    };
    let mut tokens = Vec::new();
    loop {
        let next = lexer.next()?;
        let end = next.1 == Token::End;
        tokens.push(next);
        if end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    at: Position,
    file: &'a str,
    /// Between `%{` and `}%`.
    in_code: bool,
}

impl<'a> Lexer<'a> {
    fn error(&self, at: Position, message: impl Into<String>) -> Error {
        Error {
            file: self.file.to_owned(),
            at,
            message: message.into(),
            cause: Cause::Script,
        }
    }

    /// Removes `bytes` bytes from the front.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        for character in taken.chars() {
            if character == '\n' {
                self.at.line += 1;
                self.at.column = 1;
            } else {
                self.at.column += 1;
            }
        }
        self.rest = rest;
        taken
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        self.take(end)
    }

    fn skip_blanks(&mut self) -> Result<(), Error> {
        loop {
            self.take_while(char::is_whitespace);
            if self.rest.starts_with("//") || self.rest.starts_with('#') {
                self.take_while(|c| c != '\n');
            } else if self.rest.starts_with("/*") {
                let Some(end) = self.rest.find("*/") else {
                    return Err(self.error(self.at, "this comment has no end: expected `*/`"));
                };
                self.take(end + 2);
            } else if self.in_code && self.rest.starts_with("\\\n") {
                self.take(2);
            } else {
                return Ok(());
            }
        }
    }

    /// The rest of a text whose first character is `quote`.
    fn text(&mut self, at: Position, quote: char) -> Result<Token, Error> {
        let Some(end) = self.rest[1..].find([quote, '\n']) else {
            return Err(self.error(at, format!("this text has no end: expected `{quote}`")));
        };
        if self.rest[1 + end..].starts_with('\n') {
            let message = format!("this text has no end on its line: expected `{quote}`");
            return Err(self.error(at, message));
        }
        let text = self.take(end + 2);
        Ok(Token::Text(text[1..=end].to_owned()))
    }

    fn next(&mut self) -> Result<(Position, Token), Error> {
        self.skip_blanks()?;
        let at = self.at;
        let Some(first) = self.rest.chars().next() else {
            return Ok((at, Token::End));
        };
        let number = first.is_ascii_digit()
            || first == '.' && self.rest[1..].starts_with(|c: char| c.is_ascii_digit());
        let token = if number {
            // `0...0.1` is two numbers.
            let end = self
                .rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '.');
            let whole = &self.rest[..end.unwrap_or(self.rest.len())];
            let text = self.take(whole.find("...").unwrap_or(whole.len()));
            Token::Number(text.to_owned())
        } else if first.is_ascii_alphabetic() || first == '_' {
            Token::Word(
                self.take_while(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
                    .to_owned(),
            )
        } else if first == '"' || self.in_code && first == '\'' {
            self.text(at, first)?
        } else if first == '`' {
            let Some(end) = self.rest[1..].find('`') else {
                return Err(self.error(at, "this command has no end: expected a backquote"));
            };
            let text = self.take(end + 2);
            Token::Command(text[1..=end].to_owned())
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| self.rest.starts_with(sign)) {
            self.take(sign.len());
            match sign {
                "%{" => self.in_code = true,
                "}%" => self.in_code = false,
                _ => {}
            }
            Token::Sign(sign)
        } else if self.in_code {
            self.take(first.len_utf8());
            Token::Other(first)
        } else {
            return Err(self.error(at, format!("nothing in a script begins with `{first}`")));
        };
        Ok((at, token))
    }
}
