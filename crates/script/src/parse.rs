//! Parses tokens into a [`Script`].

mod call;
mod packet;
mod unsupported;

use anabranch_core::units::Duration;

use crate::{
    error::{Cause, Error, Position, choices},
    lexer::{Token, tokens},
    syntax::{Action, Assertion, Comparison, Event, Script, Value, When},
};

/// The longest time in a script: a day, in picoseconds.
const LONGEST: u64 = 86_400 * 1_000_000_000_000;

/// Options of a script.
const OPTIONS: [&str; 4] = ["stack", "mtu", "tolerance_usecs", "cc"];

/// Prefix of options that set a switch of the stack.
const SWITCH: &str = "transport.";

/// Parses a script. `file` is its name, for messages.
///
/// # Errors
/// The first problem.
pub fn parse(text: &str, file: &str) -> Result<Script, Error> {
    let mut parser = Parser {
        tokens: tokens(text, file)?,
        next: 0,
        file,
    };
    let mut script = Script {
        file: file.to_owned(),
        options: Vec::new(),
        events: Vec::new(),
    };
    while parser.take_sign("--") {
        script.options.push(parser.option()?);
    }
    while *parser.peek() != Token::End {
        script.events.push(parser.event()?);
    }
    if script.events.is_empty() {
        return Err(parser
            .error("the script is empty: expected an event, such as `+0 < S 0:0(0) win 1000`"));
    }
    Ok(script)
}

pub(crate) struct Parser<'a> {
    tokens: Vec<(Position, Token)>,
    next: usize,
    file: &'a str,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].1
    }
    fn at(&self) -> Position {
        self.tokens[self.next].0
    }
    /// An error at the next token.
    fn error(&self, message: impl Into<String>) -> Error {
        self.error_at(self.at(), message)
    }
    fn error_at(&self, at: Position, message: impl Into<String>) -> Error {
        Error {
            file: self.file.to_owned(),
            at,
            message: message.into(),
            cause: Cause::Script,
        }
    }
    fn unsupported(&self, at: Position, message: String) -> Error {
        Error {
            cause: Cause::Unsupported,
            ..self.error_at(at, message)
        }
    }
    fn expected(&self, what: &str) -> Error {
        self.error(format!("expected {what}, found {}", self.peek().describe()))
    }
    fn advance(&mut self) {
        // The last token is the end, and remains.
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }
    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(found) if *found == sign)
    }
    fn take_sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.advance();
        }
        found
    }
    fn sign(&mut self, sign: &str) -> Result<(), Error> {
        if self.take_sign(sign) {
            Ok(())
        } else {
            Err(self.expected(&format!("`{sign}`")))
        }
    }
    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(found) if found == word)
    }
    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }
    fn word(&mut self, what: &str) -> Result<String, Error> {
        let Token::Word(word) = self.peek() else {
            return Err(self.expected(what));
        };
        let word = word.clone();
        self.advance();
        Ok(word)
    }
    fn number_text(&mut self, what: &str) -> Result<(Position, String), Error> {
        let Token::Number(text) = self.peek() else {
            return Err(self.expected(what));
        };
        let taken = (self.at(), text.clone());
        self.advance();
        Ok(taken)
    }
    /// Parses a whole number up to `most`.
    fn number(&mut self, what: &str, most: u64) -> Result<u64, Error> {
        let (at, text) = self.number_text(what)?;
        let parsed = match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => text.parse(),
        };
        match parsed {
            Ok(number) if number <= most => Ok(number),
            Ok(_) => Err(self.error_at(
                at,
                format!("`{text}` is too large: expected {what}, {most} at most"),
            )),
            Err(_) => {
                Err(self.error_at(at, format!("`{text}` is no whole number: expected {what}")))
            }
        }
    }
    fn number32(&mut self, what: &str) -> Result<u32, Error> {
        let number = self.number(what, u32::MAX.into())?;
        Ok(u32::try_from(number).expect("bounded"))
    }
    fn number16(&mut self, what: &str) -> Result<u16, Error> {
        let number = self.number(what, u16::MAX.into())?;
        Ok(u16::try_from(number).expect("bounded"))
    }
    fn number8(&mut self, what: &str) -> Result<u8, Error> {
        let number = self.number(what, u8::MAX.into())?;
        Ok(u8::try_from(number).expect("bounded"))
    }
    fn signed(&mut self, what: &str) -> Result<i64, Error> {
        let negative = self.take_sign("-");
        let number = self.number(what, i64::MAX.unsigned_abs())?;
        let number = i64::try_from(number).expect("bounded");
        Ok(if negative { -number } else { number })
    }

    /// Parses the rest of an option, after `--`.
    fn option(&mut self) -> Result<(Position, String, String), Error> {
        let at = self.at();
        let name = self.word("the name of an option")?;
        if !OPTIONS.contains(&name.as_str()) && !name.starts_with(SWITCH) {
            let known = format!("{}, or `transport.` and a switch", choices(&name, &OPTIONS));
            return Err(if unsupported::OPTIONS.contains(&name.as_str()) {
                let message = format!("packetdrill's option `--{name}` is not supported; {known}");
                self.unsupported(at, message)
            } else {
                self.error_at(at, format!("there is no option `--{name}`; {known}"))
            });
        }
        self.sign("=")?;
        let value = match self.peek() {
            Token::Word(text) | Token::Number(text) => text.clone(),
            _ => return Err(self.expected("a value")),
        };
        self.advance();
        Ok((at, name, value))
    }

    fn event(&mut self) -> Result<Event, Error> {
        let at = self.at();
        let when = self.when()?;
        let action = match self.peek() {
            Token::Sign("<") => {
                self.advance();
                Action::Inject(self.packet(true)?)
            }
            Token::Sign(">") => {
                self.advance();
                Action::Expect(self.packet(false)?)
            }
            Token::Sign("%{") => {
                self.advance();
                Action::Assert(self.assertions()?)
            }
            Token::Command(text) => {
                let (name, value) = sysctl(text).map_err(|message| match text.trim_start() {
                    // A mistake in the one command that exists.
                    text if text.starts_with("sysctl") => self.error(message),
                    _ => self.unsupported(
                        self.at(),
                        format!("packetdrill's commands are not supported; {message}"),
                    ),
                })?;
                self.advance();
                Action::Sysctl(name, value)
            }
            Token::Word(_) => {
                let (call, expected) = self.call()?;
                Action::Call(call, expected)
            }
            _ => {
                return Err(self.expected(
                    "`<`, `>`, a socket call, `%{ assert … }%` or a command in backquotes",
                ));
            }
        };
        if matches!(when, When::Any | When::Between(..)) && !matches!(action, Action::Expect(_)) {
            return Err(self.error_at(
                at,
                "only a packet that is expected (`>`) can come within a span of time",
            ));
        }
        Ok(Event { at, when, action })
    }

    fn when(&mut self) -> Result<When, Error> {
        if self.take_sign("*") {
            return Ok(When::Any);
        }
        if self.take_sign("+") {
            let first = self.time()?;
            if self.take_sign("~") {
                self.take_sign("+");
                let at = self.at();
                let last = self.time()?;
                if last < first {
                    return Err(self.error_at(at, "the span ends before it begins"));
                }
                return Ok(When::Between(first, last));
            }
            return Ok(When::After(first));
        }
        if matches!(self.peek(), Token::Number(_)) {
            return Ok(When::At(self.time()?));
        }
        if matches!(self.peek(), Token::Command(_)) {
            let message = "packetdrill's init scripts are not supported: a command needs a time, \
                           such as `0`, and is `sysctl -q NAME=NUMBER`";
            return Err(self.unsupported(self.at(), message.to_owned()));
        }
        Err(self.expected("a time, such as `+.1`, `0.1` or `*`"))
    }

    /// Parses seconds exactly.
    fn time(&mut self) -> Result<Duration, Error> {
        let (at, text) = self.number_text("seconds")?;
        if text.contains("...") {
            let message = format!(
                "packetdrill's blocking calls (`{text}`) are not supported: calls return at once"
            );
            return Err(self.unsupported(at, message));
        }
        let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        let whole = if whole.is_empty() { "0" } else { whole };
        let value = (digits(part) && part.len() <= 12)
            .then(|| format!("{whole}{part:0<12}").parse::<u64>().ok())
            .flatten();
        match value {
            Some(picos) if digits(whole) && picos <= LONGEST => Ok(Duration::from_picos(picos)),
            _ => Err(self.error_at(
                at,
                format!("`{text}` is no time: expected seconds, such as `0.25`, a day at most"),
            )),
        }
    }

    /// Parses assertions, after `%{`.
    fn assertions(&mut self) -> Result<Vec<Assertion>, Error> {
        let mut assertions = Vec::new();
        while !self.take_sign("}%") {
            if self.take_sign(";") {
                continue;
            }
            let more = !assertions.is_empty() && self.take_word("and");
            if !more && !self.take_word("assert") {
                if let Token::Word(word) = self.peek()
                    && unsupported::PYTHON.contains(&word.as_str())
                {
                    let message = format!(
                        "packetdrill's Python code (`{word}`) is not supported; \
                         expected `assert NAME == VALUE` or `}}%`"
                    );
                    return Err(self.unsupported(self.at(), message));
                }
                return Err(self.expected("`assert NAME == VALUE` or `}%`"));
            }
            assertions.push(self.assertion()?);
            if self.is_word("or") {
                let message = "packetdrill's Python code (`or`) is not supported; \
                               expected `and`, `;` or `}%`";
                return Err(self.unsupported(self.at(), message.to_owned()));
            }
            if self.take_sign(",") {
                // In Python, this is the message of a failed assertion.
                if matches!(self.peek(), Token::Text(_)) {
                    self.advance();
                } else {
                    self.word("the message, or its name")?;
                }
            }
        }
        Ok(assertions)
    }

    fn assertion(&mut self) -> Result<Assertion, Error> {
        let at = self.at();
        let name = self.word("a field, such as `tcpi_snd_cwnd`")?;
        let signs = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::AtMost),
            (">=", Comparison::AtLeast),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let Some((_, comparison)) = signs.into_iter().find(|(sign, _)| self.take_sign(sign)) else {
            return Err(self.expected("one of ==, !=, <, <=, >, >="));
        };
        let value = if let Token::Word(word) = self.peek() {
            let word = word.clone();
            self.advance();
            Value::Constant(word)
        } else {
            Value::Number(self.signed("a number or a constant")?)
        };
        Ok(Assertion {
            at,
            name,
            comparison,
            value,
        })
    }
}

/// `sysctl -q NAME=VALUE`
fn sysctl(text: &str) -> Result<(String, i64), String> {
    let expected = "expected `sysctl -q NAME=NUMBER`, the only command there is";
    let mut words = text.split_whitespace();
    if words.next() != Some("sysctl") {
        return Err(expected.to_owned());
    }
    let setting = match words.next() {
        Some("-q" | "-w") => words.next(),
        other => other,
    };
    let (name, value) = setting
        .and_then(|setting| setting.split_once('='))
        .ok_or(expected)?;
    match (value.parse(), words.next()) {
        (Ok(value), None) => Ok((name.to_owned(), value)),
        _ => Err(expected.to_owned()),
    }
}
