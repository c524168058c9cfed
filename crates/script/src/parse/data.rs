//! Parses structures, lists and flags in the arguments of calls.

use super::Parser;
use crate::{
    constants,
    error::{Error, Position, nearest},
    lexer::Token,
};

/// A structure, a list or a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Data {
    /// `...`: any value.
    Any,
    /// A number, a constant, or several joined by `|`.
    Number(i64),
    /// Between double quotes.
    Text(String),
    /// `[…]`
    List(Vec<Data>),
    /// `{NAME=VALUE, …}`, `{VALUE, …}`
    Structure(Vec<(String, Data)>),
}

impl Data {
    /// The value of a member.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        let Self::Structure(members) = self else {
            return None;
        };
        let found = members.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    /// The number of a member.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        match self.member(name)? {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The elements of a list; none of another value.
    pub(super) fn elements(&self) -> &[Self] {
        match self {
            Self::List(elements) => elements,
            _ => &[],
        }
    }
}

impl Parser<'_> {
    /// Parses a value.
    pub(super) fn data(&mut self) -> Result<Data, Error> {
        if self.take_sign("...") {
            return Ok(Data::Any);
        }
        if let Token::Text(text) = self.peek() {
            let text = text.clone();
            self.advance();
            return Ok(Data::Text(text));
        }
        if self.take_sign("[") {
            return Ok(Data::List(self.listed("]", Self::data)?));
        }
        if self.take_sign("{") {
            return Ok(Data::Structure(self.listed("}", Self::member)?));
        }
        self.flags_of("").map(Data::Number)
    }

    /// Parses the elements of a list or the members of a structure, and the closing bracket.
    fn listed<T>(
        &mut self,
        end: &str,
        parse: impl Fn(&mut Self) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let mut parts = Vec::new();
        while !self.take_sign(end) {
            if !parts.is_empty() {
                self.sign(",")?;
            }
            parts.push(self.nested(&parse)?);
        }
        Ok(parts)
    }

    /// Parses a member: `NAME=VALUE`, `NAME(…)=VALUE`, or a value without a name.
    fn member(&mut self) -> Result<(String, Data), Error> {
        let named = matches!(self.peek(), Token::Word(_))
            && matches!(self.tokens[self.next + 1].1, Token::Sign("=" | "("));
        if !named {
            return Ok((String::new(), self.data()?));
        }
        let name = self.word("a member")?;
        if self.take_sign("(") {
            while !self.take_sign(")") {
                if *self.peek() == Token::End {
                    return Err(self.expected("`)`"));
                }
                self.advance();
            }
        }
        self.sign("=")?;
        Ok((name, self.data()?))
    }

    /// Parses numbers and constants joined by `|`. `prefix` selects the constants of a message.
    pub(super) fn flags_of(&mut self, prefix: &str) -> Result<i64, Error> {
        let mut value = 0;
        loop {
            let at = self.at();
            value |= if let Token::Word(name) = self.peek() {
                let name = name.clone();
                self.advance();
                constants::value_of(&name).ok_or_else(|| self.no_constant(at, &name, prefix))?
            } else {
                self.signed("a number or a constant")?
            };
            if !self.take_sign("|") {
                return Ok(value);
            }
        }
    }

    fn no_constant(&self, at: Position, name: &str, prefix: &str) -> Error {
        let known = constants::names(prefix);
        let mut message = format!("the constant `{name}` is not supported");
        if let Some(near) = nearest(name, &known) {
            message = format!("{message}; nearest is `{near}`");
        } else if !prefix.is_empty() {
            message = format!("{message}; expected some of {}", known.join(", "));
        }
        self.unsupported(at, message)
    }
}
