//! Parses socket calls.

use super::{Parser, unsupported};
use crate::{
    error::{Error, choices},
    lexer::Token,
    syntax::{Call, Expected},
};

const CALLS: [&str; 14] = [
    "socket",
    "bind",
    "listen",
    "accept",
    "connect",
    "read",
    "write",
    "close",
    "shutdown",
    "setsockopt",
    "getsockopt",
    "send",
    "sendto",
    "fcntl",
];

impl Parser<'_> {
    /// `NAME(…) = RESULT`
    pub(super) fn call(&mut self) -> Result<(Call, Expected), Error> {
        let at = self.at();
        let name = self.word("a socket call")?;
        if !CALLS.contains(&name.as_str()) {
            let known = choices(&name, &CALLS);
            return Err(if unsupported::CALLS.contains(&name.as_str()) {
                let message = format!("packetdrill's call `{name}` is not supported; {known}");
                self.unsupported(at, message)
            } else {
                self.error_at(at, format!("there is no call `{name}`; {known}"))
            });
        }
        self.sign("(")?;
        let call = if name == "socket" {
            self.skip_arguments()?;
            Call::Socket
        } else {
            let descriptor = self.signed("a descriptor")?;
            self.call_on(&name, descriptor)?
        };
        self.sign(")")?;
        self.sign("=")?;
        let expected = self.result()?;
        Ok((call, expected))
    }

    fn call_on(&mut self, name: &str, descriptor: i64) -> Result<Call, Error> {
        Ok(match name {
            "read" | "write" | "send" | "sendto" => {
                self.sign(",")?;
                self.sign("...")?;
                self.sign(",")?;
                // A gigabyte is more than any script needs.
                let n = self.number("how many octets", 1 << 30)?;
                let n = u32::try_from(n).expect("bounded");
                if name == "read" {
                    return Ok(Call::Read(descriptor, n));
                }
                if name != "write" {
                    self.sign(",")?;
                    let at = self.at();
                    let flags = if let Token::Word(word) = self.peek() {
                        word.clone()
                    } else {
                        self.number("flags", 0)?.to_string()
                    };
                    if !matches!(&*flags, "0" | "MSG_NOSIGNAL" | "MSG_DONTWAIT") {
                        let message =
                            format!("packetdrill's flag `{flags}` is not supported; expected 0");
                        return Err(self.unsupported(at, message));
                    }
                    self.skip_arguments()?;
                }
                Call::Write(descriptor, n)
            }
            "getsockopt" => {
                self.sign(",")?;
                self.word("a level, such as `SOL_TCP`")?;
                self.sign(",")?;
                let option = self.word("an option, such as `TCP_MAXSEG`")?;
                self.sign(",")?;
                if matches!(self.peek(), Token::Text(_)) || self.is_sign("{") {
                    let message = format!(
                        "packetdrill's texts and structures as values of {option} are not \
                         supported; expected a number, such as `[1]`"
                    );
                    return Err(self.unsupported(self.at(), message));
                }
                self.sign("[")?;
                let value = self.signed("its value")?;
                self.sign("]")?;
                self.skip_arguments()?;
                Call::GetOption(descriptor, option, value)
            }
            "setsockopt" => {
                self.sign(",")?;
                self.word("a level, such as `SOL_TCP`")?;
                self.sign(",")?;
                let option = self.word("an option, such as `TCP_NODELAY`")?;
                self.sign(",")?;
                if matches!(self.peek(), Token::Text(_)) || self.is_sign("{") {
                    let hint = if option == "TCP_CONGESTION" {
                        "`--cc=NAME` selects the congestion control"
                    } else {
                        "expected a number, such as `[1]`"
                    };
                    let message = format!(
                        "packetdrill's texts and structures as values of {option} are not \
                         supported; {hint}"
                    );
                    return Err(self.unsupported(self.at(), message));
                }
                self.sign("[")?;
                let value = self.signed("its value")?;
                self.sign("]")?;
                self.sign(",")?;
                self.number("the size of the value", 64)?;
                Call::SetOption(descriptor, option, value)
            }
            "shutdown" => {
                self.sign(",")?;
                let at = self.at();
                match &*self.word("`SHUT_WR`, `SHUT_RD` or `SHUT_RDWR`")? {
                    "SHUT_WR" => Call::ShutdownWrite(descriptor),
                    "SHUT_RD" => Call::ShutdownRead(descriptor),
                    "SHUT_RDWR" => Call::ShutdownBoth(descriptor),
                    how => {
                        let message = format!("`{how}`: expected SHUT_WR, SHUT_RD or SHUT_RDWR");
                        return Err(self.error_at(at, message));
                    }
                }
            }
            _ => {
                self.skip_arguments()?;
                match name {
                    "bind" => Call::Bind(descriptor),
                    "listen" => Call::Listen(descriptor),
                    "accept" => Call::Accept(descriptor),
                    "connect" => Call::Connect(descriptor),
                    "close" => Call::Close(descriptor),
                    _ => Call::Fcntl(descriptor),
                }
            }
        })
    }

    /// Skips arguments without effect: addresses, backlogs, flags.
    fn skip_arguments(&mut self) -> Result<(), Error> {
        loop {
            match self.peek() {
                Token::Sign(")") => return Ok(()),
                Token::Sign("..." | "," | "|") | Token::Word(_) | Token::Number(_) => {
                    self.advance();
                }
                // A number in brackets, such as the size of an option.
                Token::Sign("[") if matches!(self.tokens[self.next + 1].1, Token::Number(_)) => {
                    self.advance();
                    self.advance();
                    self.sign("]")?;
                }
                Token::Sign("{" | "[") | Token::Text(_) => {
                    let message = "packetdrill's structures and texts as arguments are not \
                                   supported: expected `...`";
                    return Err(self.unsupported(self.at(), message.to_owned()));
                }
                _ => return Err(self.expected("an argument or `)`")),
            }
        }
    }

    fn result(&mut self) -> Result<Expected, Error> {
        if self.take_sign("?") {
            return Ok(Expected::Any);
        }
        let value = self.signed("the return value of the call, or `?`")?;
        let name = if value == -1 {
            Some(self.word("the name of the error, such as `EAGAIN`")?)
        } else {
            None
        };
        if self.take_sign("(") {
            while !self.take_sign(")") {
                if *self.peek() == Token::End {
                    return Err(self.expected("`)`"));
                }
                self.advance();
            }
        }
        Ok(name.map_or(Expected::Value(value), Expected::Error))
    }
}
