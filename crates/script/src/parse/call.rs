//! Parses socket calls.

use super::{Parser, data::Data, unsupported};
use crate::{
    constants,
    error::{Error, Position, choices},
    lexer::Token,
    syntax::{Call, Control, EpollOperation, Expected, Message, OptionValue, Queue, Watched},
};

const CALLS: [&str; 27] = [
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
    "sendmsg",
    "writev",
    "recv",
    "recvfrom",
    "recvmsg",
    "readv",
    "poll",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
    "ioctl",
    "accept4",
];

/// A gigabyte is more than any script needs.
const MOST: u64 = 1 << 30;

/// Flags that a call accepts; others are not supported.
const SENT: [&str; 7] = [
    "MSG_DONTWAIT",
    "MSG_EOR",
    "MSG_NOSIGNAL",
    "MSG_MORE",
    "MSG_ZEROCOPY",
    "MSG_FASTOPEN",
    "MSG_ERRQUEUE",
];
const RECEIVED: [&str; 6] = [
    "MSG_DONTWAIT",
    "MSG_PEEK",
    "MSG_TRUNC",
    "MSG_WAITALL",
    "MSG_NOSIGNAL",
    "MSG_ERRQUEUE",
];

/// `SO_EE_ORIGIN_ZEROCOPY`
const ZEROCOPY: i64 = 5;

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
        let call = match &*name {
            "socket" => {
                self.skip_arguments()?;
                Call::Socket
            }
            "epoll_create" | "epoll_create1" => {
                self.skip_arguments()?;
                Call::EpollCreate
            }
            "poll" => self.poll()?,
            _ => {
                let descriptor = self.signed("a descriptor")?;
                self.call_on(&name, descriptor)?
            }
        };
        self.sign(")")?;
        self.sign("=")?;
        let expected = self.result()?;
        Ok((call, expected))
    }

    #[expect(clippy::too_many_lines, reason = "a table of calls")]
    fn call_on(&mut self, name: &str, fd: i64) -> Result<Call, Error> {
        Ok(match name {
            "read" | "recv" | "recvfrom" => {
                self.sign(",")?;
                let to_null = self.take_word("NULL");
                if !to_null {
                    self.sign("...")?;
                }
                self.sign(",")?;
                let most = self.size()?;
                let flags = if name == "read" {
                    0
                } else {
                    self.sign(",")?;
                    self.message_flags(&RECEIVED)?
                };
                self.skip_arguments()?;
                if to_null {
                    let message = "reading to `NULL` is not supported: expected `...`";
                    return Err(self.unsupported(self.at(), message.to_owned()));
                }
                Call::Read { fd, most, flags }
            }
            "write" | "send" | "sendto" => {
                self.sign(",")?;
                let from_null = self.take_word("NULL");
                if !from_null {
                    self.sign("...")?;
                }
                self.sign(",")?;
                let octets = self.size()?;
                let (mut flags, mut to_nobody) = (0, false);
                if name != "write" {
                    self.sign(",")?;
                    flags = self.message_flags(&SENT)?;
                    to_nobody = self.take_sign(",") && self.take_word("AF_UNSPEC");
                    self.skip_arguments()?;
                }
                Call::Write {
                    fd,
                    octets,
                    flags,
                    from_null,
                    to_nobody,
                }
            }
            "writev" | "readv" => {
                self.sign(",")?;
                let at = self.at();
                let buffers = self.data()?;
                let octets = self.octets_of(at, &buffers)?;
                self.skip_arguments()?;
                if name == "readv" {
                    return Ok(Call::Read {
                        fd,
                        most: octets,
                        flags: 0,
                    });
                }
                write_of(fd, octets, 0)
            }
            "sendmsg" | "recvmsg" => self.message(name == "sendmsg", fd)?,
            "getsockopt" => {
                let option = self.option_name("TCP_MAXSEG")?;
                if matches!(self.peek(), Token::Text(_)) || self.is_sign("{") {
                    let message = format!(
                        "packetdrill's texts and structures as values of {option} are not \
                         supported; expected a number, such as `[1]`"
                    );
                    return Err(self.unsupported(self.at(), message));
                }
                self.sign("[")?;
                let value = self.flags_of("")?;
                self.sign("]")?;
                self.skip_arguments()?;
                Call::GetOption(fd, option, value)
            }
            "setsockopt" => {
                let option = self.option_name("TCP_NODELAY")?;
                let value = self.option_value(&option)?;
                self.sign(",")?;
                let size = self.number("the size of the value", 256)?;
                let value = match value {
                    OptionValue::Text(mut text) => {
                        text.truncate(usize::try_from(size).unwrap_or(usize::MAX));
                        OptionValue::Text(text)
                    }
                    other => other,
                };
                Call::SetOption(fd, option, value)
            }
            "shutdown" => {
                self.sign(",")?;
                let at = self.at();
                match &*self.word("`SHUT_WR`, `SHUT_RD` or `SHUT_RDWR`")? {
                    "SHUT_WR" => Call::ShutdownWrite(fd),
                    "SHUT_RD" => Call::ShutdownRead(fd),
                    "SHUT_RDWR" => Call::ShutdownBoth(fd),
                    how => {
                        let message = format!("`{how}`: expected SHUT_WR, SHUT_RD or SHUT_RDWR");
                        return Err(self.error_at(at, message));
                    }
                }
            }
            "ioctl" => self.ioctl(fd)?,
            "epoll_ctl" => self.epoll_control(fd)?,
            "epoll_wait" => self.epoll_wait(fd)?,
            _ => {
                self.skip_arguments()?;
                match name {
                    "bind" => Call::Bind(fd),
                    "listen" => Call::Listen(fd),
                    "accept" | "accept4" => Call::Accept(fd),
                    "connect" => Call::Connect(fd),
                    "close" => Call::Close(fd),
                    _ => Call::Fcntl(fd),
                }
            }
        })
    }

    fn size(&mut self) -> Result<u32, Error> {
        let n = self.number("how many octets", MOST)?;
        Ok(u32::try_from(n).expect("bounded"))
    }

    fn option_name(&mut self, example: &str) -> Result<String, Error> {
        self.sign(",")?;
        if matches!(self.peek(), Token::Number(_)) {
            self.advance();
        } else {
            self.word("a level, such as `SOL_TCP`")?;
        }
        self.sign(",")?;
        let option = self.word(&format!("an option, such as `{example}`"))?;
        self.sign(",")?;
        Ok(option)
    }

    fn option_value(&mut self, option: &str) -> Result<OptionValue, Error> {
        let at = self.at();
        if let Token::Text(text) = self.peek() {
            let octets = octets_of_text(text);
            self.advance();
            return octets
                .map(OptionValue::Text)
                .ok_or_else(|| self.error_at(at, "expected text, with octets such as `\\x1f`"));
        }
        if self.is_sign("{") {
            let value = self.data()?;
            if let Some(on) = value.number("onoff") {
                let seconds = value.number("linger").unwrap_or(0);
                let seconds = u32::try_from(seconds).unwrap_or(0);
                return Ok(OptionValue::Linger((on != 0).then_some(seconds)));
            }
            let message = format!(
                "packetdrill's structures as values of {option} are not supported; expected a \
                 number, such as `[1]`"
            );
            return Err(self.unsupported(at, message));
        }
        self.sign("[")?;
        let value = self.flags_of("")?;
        self.sign("]")?;
        Ok(OptionValue::Number(value))
    }

    /// Parses `MSG_…` joined by `|`, or a number.
    fn message_flags(&mut self, accepted: &[&str]) -> Result<u32, Error> {
        let at = self.at();
        let flags = self.flags_of("MSG_")?;
        let known = accepted.iter().filter_map(|name| constants::value_of(name));
        let rest = known.fold(flags, |rest, flag| rest & !flag);
        if rest != 0 {
            let message = format!(
                "packetdrill's flags {rest:#x} of this call are not supported; expected some of {}",
                accepted.join(", ")
            );
            return Err(self.unsupported(at, message));
        }
        Ok(u32::try_from(flags).expect("a sum of flags"))
    }

    /// The octets of all buffers: `[{..., n}, …]`.
    fn octets_of(&self, at: Position, buffers: &Data) -> Result<u32, Error> {
        let mut sum = 0_u64;
        for buffer in buffers.elements() {
            let size = match buffer {
                Data::Structure(members) => match members.last() {
                    Some((_, Data::Number(size))) => u64::try_from(*size).ok(),
                    _ => None,
                },
                _ => None,
            };
            sum += size.ok_or_else(|| {
                self.error_at(
                    at,
                    "expected buffers with their sizes, such as `[{..., 1000}]`",
                )
            })?;
        }
        match u32::try_from(sum) {
            Ok(octets) if sum <= MOST => Ok(octets),
            _ => Err(self.error_at(at, format!("expected {MOST} octets at most"))),
        }
    }

    /// Parses `{msg_name(…)=…, msg_iov(n)=[{..., n}, …], msg_flags=…}, FLAGS`.
    fn message(&mut self, sends: bool, fd: i64) -> Result<Call, Error> {
        self.sign(",")?;
        let at = self.at();
        let header = self.data()?;
        let octets = match header.member("msg_iov") {
            Some(buffers) => self.octets_of(at, buffers)?,
            None => return Err(self.error_at(at, "expected `msg_iov(n)=[{..., size}]`")),
        };
        self.sign(",")?;
        let flags = self.message_flags(if sends { &SENT } else { &RECEIVED })?;
        if sends {
            if header.member("msg_control").is_some() {
                let message = "packetdrill's control messages of `sendmsg` are not supported";
                return Err(self.unsupported(at, message.to_owned()));
            }
            return Ok(write_of(fd, octets, flags));
        }
        let control = match header.member("msg_control") {
            None | Some(Data::Any) => None,
            Some(list) => {
                let messages = list.elements().iter();
                Some(
                    messages
                        .map(|one| self.control(at, one))
                        .collect::<Result<_, _>>()?,
                )
            }
        };
        let returned = header.number("msg_flags");
        let expected = Message {
            flags: returned.and_then(|flags| u32::try_from(flags).ok()),
            control,
        };
        Ok(Call::ReadMessage {
            fd,
            most: octets,
            flags,
            expected,
        })
    }

    fn control(&self, at: Position, message: &Data) -> Result<Control, Error> {
        let data = message.member("cmsg_data");
        let kind = message.number("cmsg_type");
        if kind == constants::value_of("TCP_CM_INQ")
            && let Some(Data::Number(octets)) = data
        {
            return Ok(Control::Unread(*octets));
        }
        if let Some(error) = data
            && error.number("ee_origin") == Some(ZEROCOPY)
        {
            let number = |name| {
                let number = error.number(name).unwrap_or(0);
                u32::try_from(number).unwrap_or(0)
            };
            return Ok(Control::ZeroCopy {
                first: number("ee_info"),
                last: number("ee_data"),
                was_copied: number("ee_code") == 1,
            });
        }
        let message = "packetdrill's control messages other than TCP_CM_INQ and \
                       SO_EE_ORIGIN_ZEROCOPY are not supported";
        Err(self.unsupported(at, message.to_owned()))
    }

    /// Parses `[{fd=…, events=…, revents=…}, …], n, timeout`.
    fn poll(&mut self) -> Result<Call, Error> {
        let at = self.at();
        let list = self.data()?;
        let bits = |number: i64| u32::try_from(number).ok();
        let watched: Option<Vec<Watched>> = list
            .elements()
            .iter()
            .map(|one| {
                Some(Watched {
                    fd: one.number("fd")?,
                    events: bits(one.number("events")?)?,
                    returned: one.number("revents").and_then(bits),
                })
            })
            .collect();
        let watched = watched
            .filter(|watched| !watched.is_empty())
            .ok_or_else(|| {
                self.error_at(at, "expected `[{fd=3, events=POLLIN, revents=POLLIN}]`")
            })?;
        self.sign(",")?;
        self.number("how many descriptors", MOST)?;
        self.sign(",")?;
        let timeout = self.signed("milliseconds")?;
        Ok(Call::Poll { watched, timeout })
    }

    fn epoll_control(&mut self, epoll: i64) -> Result<Call, Error> {
        self.sign(",")?;
        let at = self.at();
        let operation = match &*self.word("EPOLL_CTL_ADD, EPOLL_CTL_MOD or EPOLL_CTL_DEL")? {
            "EPOLL_CTL_ADD" => EpollOperation::Add,
            "EPOLL_CTL_MOD" => EpollOperation::Modify,
            "EPOLL_CTL_DEL" => EpollOperation::Delete,
            other => {
                let known = ["EPOLL_CTL_ADD", "EPOLL_CTL_MOD", "EPOLL_CTL_DEL"];
                let message = format!("`{other}`: {}", choices(other, &known));
                return Err(self.error_at(at, message));
            }
        };
        self.sign(",")?;
        let fd = self.signed("a descriptor")?;
        let mut events = 0;
        if self.take_sign(",") {
            let at = self.at();
            let event = self.data()?;
            events = self.events(at, &event)?.unwrap_or(0);
        }
        Ok(Call::EpollControl {
            epoll,
            operation,
            fd,
            events,
        })
    }

    fn epoll_wait(&mut self, epoll: i64) -> Result<Call, Error> {
        self.sign(",")?;
        let at = self.at();
        let event = self.data()?;
        let event = event.elements().first().cloned().unwrap_or(event);
        let events = self.events(at, &event)?.unwrap_or(0);
        let expected = (events, event.number("fd"));
        self.sign(",")?;
        self.number("how many events", MOST)?;
        self.sign(",")?;
        let timeout = self.signed("milliseconds")?;
        Ok(Call::EpollWait {
            epoll,
            expected,
            timeout,
        })
    }

    /// The events of `{events=…, fd=…}`; `None` for `...`.
    fn events(&self, at: Position, event: &Data) -> Result<Option<u32>, Error> {
        if *event == Data::Any {
            return Ok(None);
        }
        let events = event.number("events");
        let events = events.and_then(|events| u32::try_from(events).ok());
        let events =
            events.ok_or_else(|| self.error_at(at, "expected `{events=EPOLLIN, fd=4}`"))?;
        Ok(Some(events))
    }

    fn ioctl(&mut self, fd: i64) -> Result<Call, Error> {
        self.sign(",")?;
        let at = self.at();
        let name = self.word("`SIOCINQ` or `SIOCOUTQ`")?;
        let queue = match &*name {
            "SIOCINQ" | "FIONREAD" => Queue::Received,
            "SIOCOUTQ" | "TIOCOUTQ" => Queue::Sent,
            _ => {
                let known = choices(&name, &["SIOCINQ", "FIONREAD", "SIOCOUTQ", "TIOCOUTQ"]);
                let message = format!("packetdrill's `{name}` is not supported; {known}");
                return Err(self.unsupported(at, message));
            }
        };
        self.sign(",")?;
        self.sign("[")?;
        let value = self.signed("its value")?;
        self.sign("]")?;
        Ok(Call::QueueSize(fd, queue, value))
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
        let mut name = None;
        if value == -1
            && let Token::Word(word) = self.peek()
        {
            name = Some(word.clone());
            self.advance();
        }
        if self.take_sign("(") {
            while !self.take_sign(")") {
                if *self.peek() == Token::End {
                    return Err(self.expected("`)`"));
                }
                self.advance();
            }
        }
        Ok(match (value, name) {
            (_, Some(name)) => Expected::Error(name),
            (-1, None) => Expected::AnyError,
            (value, None) => Expected::Value(value),
        })
    }
}

const fn write_of(fd: i64, octets: u32, flags: u32) -> Call {
    Call::Write {
        fd,
        octets,
        flags,
        from_null: false,
        to_nobody: false,
    }
}

/// The octets of a text, in which `\xHH` is one; `None` for another escape.
fn octets_of_text(text: &str) -> Option<Vec<u8>> {
    let mut octets = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'\\' {
            octets.push(*first);
            rest = after;
            continue;
        }
        let (digits, after) = after.strip_prefix(b"x")?.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        octets.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    Some(octets)
}
