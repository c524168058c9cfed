//! Parses tokens into a [`Script`].

mod call;
mod command;
mod data;
mod packet;
mod unsupported;

use std::collections::BTreeMap;

use anabranch_core::units::Duration;

use self::command::Problem;
pub use self::command::init_scripts;

use crate::{
    error::{Cause, Error, Position, choices},
    lexer::{Token, tokens},
    syntax::{Action, Assertion, Comparison, Event, Operator, Script, Statement, Value, When},
};

/// The longest time in a script: a day, in picoseconds.
const LONGEST: u64 = 86_400 * 1_000_000_000_000;

/// Options of a script.
const OPTIONS: [&str; 4] = ["stack", "mtu", "tolerance_usecs", "cc"];

/// Addresses, on which the cookies of Fast Open depend.
const ADDRESSES: [&str; 2] = ["local_ip", "remote_ip"];

/// Options of packetdrill without effect here: addresses and ports, which scripts do not contain, and
/// packetdrill's own work.
const NO_EFFECT: [&str; 8] = [
    "bind_port",
    "connect_port",
    "gateway_ip",
    "netmask_ip",
    "non_fatal",
    "send_omit_free",
    "strict_segments",
    "tcp_ts_ecr_scaled",
];
/// Options of packetdrill that are accepted with this value.
const FIXED: [(&str, &str); 2] = [("ip_version", "ipv4"), ("tcp_ts_tick_usecs", "1000")];

/// Prefix of options that set a switch of the stack.
const SWITCH: &str = "transport.";

/// Parses a script without init scripts. `file` is its name, for messages.
///
/// # Errors
/// The first problem.
pub fn parse(text: &str, file: &str) -> Result<Script, Error> {
    parse_with(text, file, &BTreeMap::new())
}

/// Parses a script. `file` is its name, for messages; `files` has the texts of its
/// [`init_scripts`].
///
/// # Errors
/// The first problem.
pub fn parse_with(
    text: &str,
    file: &str,
    files: &BTreeMap<String, String>,
) -> Result<Script, Error> {
    let mut parser = Parser {
        tokens: tokens(text, file)?,
        next: 0,
        file,
        files,
        depth: 0,
        is_for_linux: false,
        has_timestamp_tick: false,
    };
    let mut options = Vec::new();
    while parser.take_sign("--") {
        options.extend(parser.option()?);
    }
    let mut events = Vec::new();
    while *parser.peek() != Token::End {
        events.push(parser.event()?);
    }
    if events.is_empty() {
        return Err(parser
            .error("the script is empty: expected an event, such as `+0 < S 0:0(0) win 1000`"));
    }
    if parser.is_for_linux {
        // Such a script is about Linux and its default control.
        let start = Position { line: 1, column: 1 };
        let linux = [
            ("stack", "linux"),
            ("cc", "cubic"),
            // The addresses for which packetdrill's scripts have cookies of Fast Open.
            ("local_ip", "192.168.0.1"),
            ("remote_ip", "192.0.2.1"),
        ];
        options.splice(
            0..0,
            linux.map(|(name, value)| (start, name.to_owned(), value.to_owned())),
        );
    }
    Ok(Script {
        file: file.to_owned(),
        options,
        events,
        is_for_linux: parser.is_for_linux,
        has_timestamp_tick: parser.has_timestamp_tick,
    })
}

pub(crate) struct Parser<'a> {
    tokens: Vec<(Position, Token)>,
    next: usize,
    file: &'a str,
    files: &'a BTreeMap<String, String>,
    /// Values around the next token.
    depth: u32,
    is_for_linux: bool,
    has_timestamp_tick: bool,
}

/// Values within one another, at most. Each takes a frame of the stack when it is parsed.
const MAX_DEPTH: u32 = 32;
/// Operators of an expression, at most.
const MAX_OPERATORS: u32 = 256;

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
    /// Parses a part of a value.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(format!("values are nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
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

    /// Parses the rest of an option, after `--`. `None` if it has no effect here.
    fn option(&mut self) -> Result<Option<(Position, String, String)>, Error> {
        let at = self.at();
        let name = self.word("the name of an option")?;
        let has_effect = !NO_EFFECT.contains(&&*name);
        let fixed = FIXED.iter().find(|(known, _)| *known == name);
        if ADDRESSES.contains(&&*name) {
            return self.address(at, name);
        }
        if !OPTIONS.contains(&&*name) && !name.starts_with(SWITCH) && has_effect && fixed.is_none()
        {
            let known = format!("{}, or `transport.` and a switch", choices(&name, &OPTIONS));
            return Err(if unsupported::OPTIONS.contains(&&*name) {
                let message = format!("packetdrill's option `--{name}` is not supported; {known}");
                self.unsupported(at, message)
            } else {
                self.error_at(at, format!("there is no option `--{name}`; {known}"))
            });
        }
        if !has_effect {
            if self.take_sign("=") {
                // Addresses have several tokens.
                while self.at().line == at.line && *self.peek() != Token::End {
                    self.advance();
                }
            }
            return Ok(None);
        }
        self.sign("=")?;
        let value_at = self.at();
        let value = match self.peek() {
            Token::Word(text) | Token::Number(text) => text.clone(),
            _ => return Err(self.expected("a value")),
        };
        self.advance();
        if let Some((_, accepted)) = fixed {
            if value != *accepted {
                let message = format!(
                    "packetdrill's `--{name}={value}` is not supported; expected {accepted}"
                );
                return Err(self.unsupported(value_at, message));
            }
            self.has_timestamp_tick |= name == "tcp_ts_tick_usecs";
            return Ok(None);
        }
        Ok(Some((at, name, value)))
    }

    /// Parses an address. An IPv6 address has no effect: packets are IPv4.
    fn address(
        &mut self,
        at: Position,
        name: String,
    ) -> Result<Option<(Position, String, String)>, Error> {
        self.sign("=")?;
        let value_at = self.at();
        let value = match self.peek() {
            Token::Word(text) | Token::Number(text) => text.clone(),
            _ => String::new(),
        };
        while self.at().line == at.line && *self.peek() != Token::End {
            self.advance();
        }
        if self.tokens[..self.next]
            .last()
            .is_some_and(|(_, last)| *last == Token::Sign(":"))
            || value.parse::<core::net::Ipv4Addr>().is_err() && value.contains('.')
        {
            return Err(self.error_at(value_at, format!("`{value}`: expected an address")));
        }
        let is_v4 = value.parse::<core::net::Ipv4Addr>().is_ok();
        Ok(is_v4.then_some((at, name, value)))
    }

    fn event(&mut self) -> Result<Event, Error> {
        let at = self.at();
        let when = self.when()?;
        let action = match self.peek() {
            Token::Sign("<") => {
                self.advance();
                if self.take_word("icmp") {
                    Action::InjectIcmp(self.icmp()?)
                } else {
                    Action::Inject(self.packet(true)?)
                }
            }
            Token::Sign(">") => {
                self.advance();
                Action::Expect(self.packet(false)?)
            }
            Token::Sign("%{") => {
                self.advance();
                Action::Code(self.statements()?)
            }
            Token::Command(text) => {
                let settings = command::settings(text, self.files).map_err(|told| match told {
                    Problem::Wrong(message) => self.error(message),
                    Problem::Unsupported(message) => self.unsupported(self.at(), message),
                })?;
                self.advance();
                Action::Command(settings)
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
        if matches!(when, When::Blocking(..)) && !matches!(action, Action::Call(..)) {
            return Err(self.error_at(at, "only a call takes time, from one time to another"));
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
            return self.duration_of_call(first);
        }
        if matches!(self.peek(), Token::Number(_)) {
            return Ok(When::At(self.time()?));
        }
        if matches!(self.peek(), Token::Command(_)) {
            self.is_for_linux = true;
            return Ok(When::After(Duration::ZERO));
        }
        Err(self.expected("a time, such as `+.1`, `0.1` or `*`"))
    }

    /// Parses the end of a call that takes time, `...` and a time, if it has one.
    fn duration_of_call(&mut self, first: Duration) -> Result<When, Error> {
        if !self.take_sign("...") {
            return Ok(When::After(first));
        }
        let at = self.at();
        let last = self.time()?;
        if last < first {
            return Err(self.error_at(at, "the call returns before it begins"));
        }
        Ok(When::Blocking(first, last))
    }

    /// Parses seconds exactly.
    fn time(&mut self) -> Result<Duration, Error> {
        let (at, text) = self.number_text("seconds")?;
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

    /// Parses assertions and assignments, after `%{`. Statements end at `;` and at the end of a line.
    fn statements(&mut self) -> Result<Vec<Statement>, Error> {
        let mut statements = Vec::new();
        let mut more = false;
        while !self.take_sign("}%") {
            if self.take_sign(";") {
                continue;
            }
            if self.take_word("print") {
                // A text for a person, which an assertion does not need.
                self.skip_statement()?;
                continue;
            }
            if let Some(assignment) = self.assignment()? {
                statements.push(assignment);
                continue;
            }
            if !(self.take_word("assert") || more && self.take_word("and")) {
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
            self.assertion(&mut statements)?;
            more = true;
            if self.is_word("or") {
                let message = "packetdrill's Python code (`or`) is not supported; \
                               expected `and`, `;` or `}%`";
                return Err(self.unsupported(self.at(), message.to_owned()));
            }
            if self.take_sign(",") {
                // In Python, this is the message of a failed assertion.
                if !matches!(
                    self.peek(),
                    Token::Text(_) | Token::Word(_) | Token::Sign("(" | "[")
                ) {
                    return Err(self.expected("the message, or its name"));
                }
                self.skip_statement()?;
            }
        }
        Ok(statements)
    }

    /// Parses `NAME = VALUE`, `NAME += VALUE` or `NAME -= VALUE`, if that follows.
    fn assignment(&mut self) -> Result<Option<Statement>, Error> {
        let at = self.at();
        let Token::Word(name) = self.peek().clone() else {
            return Ok(None);
        };
        let sign = |parser: &Self, place: usize| match parser.tokens.get(parser.next + place) {
            Some((_, Token::Sign(sign))) => *sign,
            _ => "",
        };
        let operator = match (sign(self, 1), sign(self, 2)) {
            ("=", _) => None,
            ("+", "=") => Some(Operator::Add),
            ("-", "=") => Some(Operator::Subtract),
            _ => return Ok(None),
        };
        for _ in 0..2 + usize::from(operator.is_some()) {
            self.advance();
        }
        let mut value = self.value()?;
        if let Some(operator) = operator {
            value = Value::Joined(operator, Box::new((Value::Name(name.clone()), value)));
        }
        Ok(Some(Statement::Assign(at, name, value)))
    }

    /// Skips the rest of a statement of Python.
    fn skip_statement(&mut self) -> Result<(), Error> {
        let line = self.tokens[self.next.saturating_sub(1)].0.line;
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Token::Sign("}%") => return Ok(()),
                Token::End => return Err(self.expected("`}%`")),
                Token::Sign(";") if depth == 0 => return Ok(()),
                _ if depth == 0 && self.at().line > line => return Ok(()),
                Token::Sign("(" | "[" | "{") => depth += 1,
                Token::Sign(")" | "]" | "}") => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.advance();
        }
    }

    /// Parses `VALUE OP VALUE` and, as in Python, `VALUE OP VALUE OP VALUE`.
    fn assertion(&mut self, statements: &mut Vec<Statement>) -> Result<(), Error> {
        let at = self.at();
        let signs = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::AtMost),
            (">=", Comparison::AtLeast),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let known = statements.len();
        let mut left = self.value()?;
        while let Some((_, comparison)) = signs.into_iter().find(|(sign, _)| self.take_sign(sign)) {
            let right = self.value()?;
            statements.push(Statement::Assert(Assertion {
                at,
                left,
                comparison,
                right: right.clone(),
            }));
            left = right;
        }
        if statements.len() == known {
            return Err(self.expected("one of ==, !=, <, <=, >, >="));
        }
        Ok(())
    }

    /// Parses a value: sums of products, with `&` and `|` last, as in Python.
    fn value(&mut self) -> Result<Value, Error> {
        const OPERATORS: [&[(&str, Operator)]; 4] = [
            &[("|", Operator::Or)],
            &[("&", Operator::And)],
            &[("+", Operator::Add), ("-", Operator::Subtract)],
            &[("*", Operator::Multiply), ("/", Operator::Divide)],
        ];
        self.joined(&OPERATORS)
    }

    fn joined(&mut self, operators: &[&[(&str, Operator)]]) -> Result<Value, Error> {
        let Some((first, rest)) = operators.split_first() else {
            return self.side();
        };
        let mut left = self.joined(rest)?;
        let mut count = 0;
        while let Some((_, operator)) = first.iter().find(|(sign, _)| self.is_sign(sign)) {
            count += 1;
            if count > MAX_OPERATORS {
                let message = format!("an expression has more than {MAX_OPERATORS} operators");
                return Err(self.error(message));
            }
            self.advance();
            let right = self.joined(rest)?;
            left = Value::Joined(*operator, Box::new((left, right)));
        }
        Ok(left)
    }

    fn side(&mut self) -> Result<Value, Error> {
        if self.take_sign("(") {
            let value = self.nested(Self::value)?;
            self.sign(")")?;
            return Ok(value);
        }
        if let Token::Word(word) = self.peek() {
            let word = word.clone();
            self.advance();
            return Ok(Value::Name(word));
        }
        self.signed("a field, such as `tcpi_snd_cwnd`, or a number")
            .map(Value::Number)
    }
}
