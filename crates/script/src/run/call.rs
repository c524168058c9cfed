//! Executes socket calls, and compares their results.

use anabranch_core::units::Duration;

use super::{Blocked, Runner, numbers};
use crate::{
    constants,
    error::{Error, Field, Position},
    syntax::{Call, Control, Expected, Message, Watched},
    target::{Answer, Request, Send},
};

impl Runner<'_> {
    /// Executes a call. Returns `false` if it would block and may; then it has had no other effect
    /// than to write a part.
    pub(super) fn call(
        &mut self,
        blocked: &mut Blocked,
        now: Duration,
        may_block: bool,
    ) -> Result<bool, Error> {
        let Blocked {
            at, call, expected, ..
        } = blocked.clone();
        match &call {
            Call::Poll { watched, timeout } => {
                return self.poll(blocked, watched, *timeout, now, may_block);
            }
            Call::EpollWait {
                epoll,
                expected,
                timeout,
            } => return self.epoll_wait(blocked, (*epoll, *timeout), *expected, now, may_block),
            _ => {}
        }
        let content;
        let request = match &call {
            Call::Socket => Request::Socket,
            Call::Bind(fd) => Request::Bind(self.handle(at, *fd)?),
            Call::Listen(fd) => Request::Listen(self.handle(at, *fd)?),
            Call::Accept(fd) => Request::Accept(self.handle(at, *fd)?),
            Call::Connect(fd) => Request::Connect(self.handle(at, *fd)?),
            Call::Read { fd, most, flags } => Request::Read(self.handle(at, *fd)?, *most, *flags),
            Call::ReadMessage {
                fd, most, flags, ..
            } => Request::ReadMessage(self.handle(at, *fd)?, *most, *flags),
            Call::Write {
                fd,
                octets,
                flags,
                from_null,
                to_nobody,
            } => {
                let handle = self.handle(at, *fd)?;
                if self.writer.replace(handle) != Some(handle) {
                    self.written = 0;
                }
                let left = octets - u32::try_from(blocked.written).expect("a part of it");
                content = numbers::stream(numbers::WRITTEN, self.written, left);
                Request::Send(Send {
                    handle,
                    octets: (!from_null).then_some(&content),
                    flags: *flags,
                    to_nobody: *to_nobody,
                    waits: may_block,
                })
            }
            Call::Close(fd) => Request::Close(self.handle(at, *fd)?),
            Call::ShutdownWrite(fd) => Request::ShutdownWrite(self.handle(at, *fd)?),
            Call::ShutdownRead(fd) => Request::ShutdownRead(self.handle(at, *fd)?),
            Call::ShutdownBoth(fd) => Request::ShutdownBoth(self.handle(at, *fd)?),
            Call::SetOption(fd, name, value) => {
                Request::SetOption(self.handle(at, *fd)?, name, value)
            }
            Call::GetOption(fd, name, _) => Request::GetOption(self.handle(at, *fd)?, name),
            Call::QueueSize(fd, queue, _) => Request::QueueSize(self.handle(at, *fd)?, *queue),
            Call::EpollCreate => Request::EpollCreate,
            Call::EpollControl {
                epoll,
                operation,
                fd,
                events,
            } => Request::EpollControl(
                self.handle(at, *epoll)?,
                *operation,
                self.handle(at, *fd)?,
                *events,
            ),
            Call::Poll { .. } | Call::EpollWait { .. } => unreachable!("dealt with above"),
            // No call blocks whose time has no end, whatever the flags.
            Call::Fcntl(fd) => return self.handle(at, *fd).map(|_| true),
        };
        let answer = self.target.call(now, request);
        let answer = answer.map_err(|message| self.error(at, message))?;
        self.note_connection();
        let would_block = match (&call, &answer) {
            (_, Answer::Error("EAGAIN" | "EINPROGRESS" | "EALREADY") | Answer::Started(_)) => true,
            (Call::Write { octets, .. }, Answer::Value(taken)) => {
                blocked.written + taken < i64::from(*octets)
            }
            _ => false,
        };
        if may_block && would_block {
            if let Answer::Value(taken) | Answer::Started(taken) = answer {
                blocked.written += taken;
                self.written += taken.unsigned_abs();
            }
            return Ok(false);
        }
        self.judge(&call, &expected, at, answer, blocked.written)?;
        Ok(true)
    }

    /// Whether a call that found nothing returns all the same: its time is over, or it may not wait.
    fn is_over(blocked: &Blocked, timeout: i64, now: Duration, may_block: bool) -> bool {
        let ends = u64::try_from(timeout)
            .ok()
            .map(|millis| blocked.began + Duration::from_millis(millis));
        !may_block || ends.is_some_and(|end| now >= end)
    }

    fn poll(
        &mut self,
        blocked: &Blocked,
        watched: &[Watched],
        timeout: i64,
        now: Duration,
        may_block: bool,
    ) -> Result<bool, Error> {
        let at = blocked.at;
        let mut found = Vec::new();
        for one in watched {
            let request = Request::Poll(self.handle(at, one.fd)?, one.events);
            let answer = self.target.call(now, request);
            found.push(match answer.map_err(|message| self.error(at, message))? {
                Answer::Value(events) => u32::try_from(events).unwrap_or(0),
                _ => 0,
            });
        }
        let count = found.iter().filter(|events| **events != 0).count();
        if count == 0 && !Self::is_over(blocked, timeout, now, may_block) {
            return Ok(false);
        }
        for (one, found) in watched.iter().zip(found) {
            if let Some(returned) = one.returned.filter(|returned| *returned != found) {
                let names = |bits| names_of(bits, "POLL");
                let (returned, found) = (names(returned), names(found));
                let fd = one.fd;
                let message = format!("expected the events {returned} of {fd}; there are {found}");
                return Err(self.returned(at, message, returned, found));
            }
        }
        let count = i64::try_from(count).expect("few descriptors");
        self.expect_value(at, &blocked.expected, count)?;
        Ok(true)
    }

    fn epoll_wait(
        &mut self,
        blocked: &Blocked,
        (epoll, timeout): (i64, i64),
        (events, fd): (u32, Option<i64>),
        now: Duration,
        may_block: bool,
    ) -> Result<bool, Error> {
        let at = blocked.at;
        let request = Request::EpollWait(self.handle(at, epoll)?);
        let answer = self.target.call(now, request);
        let found = match answer.map_err(|message| self.error(at, message))? {
            Answer::Event(found) => found,
            _ => None,
        };
        let Some((found, handle)) = found else {
            if !Self::is_over(blocked, timeout, now, may_block) {
                return Ok(false);
            }
            self.expect_value(at, &blocked.expected, 0)?;
            return Ok(true);
        };
        self.expect_value(at, &blocked.expected, 1)?;
        if found != events {
            let (events, found) = (names_of(events, "EPOLL"), names_of(found, "EPOLL"));
            let message = format!("expected the events {events}; there are {found}");
            return Err(self.returned(at, message, events, found));
        }
        if let Some(fd) = fd
            && self.handle(at, fd)? != handle
        {
            let message = format!("expected an event of {fd}; it is of another descriptor");
            return Err(self.returned(at, message, fd.to_string(), "another".to_owned()));
        }
        Ok(true)
    }

    fn expect_value(&self, at: Position, expected: &Expected, value: i64) -> Result<(), Error> {
        let wanted = match expected {
            Expected::Any => return Ok(()),
            Expected::Value(wanted) if *wanted == value => return Ok(()),
            Expected::Value(wanted) => wanted.to_string(),
            Expected::Error(name) => format!("-1 {name}"),
            Expected::AnyError => "-1".to_owned(),
        };
        let message = format!("expected {wanted}; the call returns {value}");
        Err(self.returned(at, message, wanted, value.to_string()))
    }

    /// Compares the flags and control messages of `recvmsg`.
    fn judge_message(
        &self,
        at: Position,
        expected: &Message,
        flags: u32,
        control: &[Control],
    ) -> Result<(), Error> {
        if let Some(wanted) = expected.flags.filter(|wanted| *wanted != flags) {
            let (wanted, flags) = (names_of(wanted, "MSG_"), names_of(flags, "MSG_"));
            let message = format!("expected the flags {wanted}; they are {flags}");
            return Err(self.returned(at, message, wanted, flags));
        }
        match &expected.control {
            Some(wanted) if wanted != control => {
                let text = |list: &[Control]| {
                    let all: Vec<String> = list.iter().map(ToString::to_string).collect();
                    format!("[{}]", all.join(", "))
                };
                let (wanted, control) = (text(wanted), text(control));
                let message = format!("expected the control messages {wanted}; they are {control}");
                Err(self.returned(at, message, wanted, control))
            }
            _ => Ok(()),
        }
    }

    /// Compares the result of a call, of which `earlier` octets were written before.
    fn judge(
        &mut self,
        call: &Call,
        expected: &Expected,
        at: Position,
        answer: Answer,
        earlier: i64,
    ) -> Result<(), Error> {
        let is_count = matches!(answer, Answer::Value(_));
        let value = match answer {
            Answer::Error(name) => {
                let told = match expected {
                    Expected::Any | Expected::AnyError => return Ok(()),
                    Expected::Error(expected) if expected == name => return Ok(()),
                    Expected::Error(expected) => format!("-1 {expected}"),
                    Expected::Value(expected) => expected.to_string(),
                };
                let message = format!("expected {told}; the call returns -1 {name}");
                return Err(self.returned(at, message, told, format!("-1 {name}")));
            }
            Answer::Octets(octets) => self.read_octets(at, call, &octets)?,
            Answer::Message(octets, flags, control) => {
                let read = self.read_octets(at, call, &octets)?;
                if let Call::ReadMessage { expected, .. } = call {
                    self.judge_message(at, expected, flags, &control)?;
                }
                read
            }
            Answer::Value(value) | Answer::Started(value) => value,
            Answer::Event(_) => 0,
        };
        if let (Call::Write { .. }, Ok(taken)) = (call, u64::try_from(value)) {
            self.written += taken;
        }
        if let (Call::Read { .. }, Ok(discarded)) = (call, u64::try_from(value))
            && is_count
        {
            self.read += discarded;
        }
        let measured = match call {
            Call::GetOption(_, name, wanted) => Some((name.as_str(), wanted)),
            Call::QueueSize(_, _, wanted) => Some(("the value", wanted)),
            _ => None,
        };
        if let Some((name, wanted)) = measured {
            // A number of 32 bits may be written without its sign.
            if (value ^ *wanted) & 0xffff_ffff != 0 {
                let message = format!("expected {name} to be {wanted}; it is {value}");
                return Err(self.returned(at, message, wanted.to_string(), value.to_string()));
            }
            return Ok(());
        }
        let value = value + earlier;
        let Expected::Value(wanted) = expected else {
            return match expected {
                Expected::Error(name) => {
                    let message = format!("expected -1 {name}; the call returns {value}");
                    Err(self.returned(at, message, format!("-1 {name}"), value.to_string()))
                }
                Expected::AnyError => {
                    let message = format!("expected -1; the call returns {value}");
                    Err(self.returned(at, message, "-1".to_owned(), value.to_string()))
                }
                _ => Ok(()),
            };
        };
        if matches!(call, Call::Socket | Call::Accept(_) | Call::EpollCreate) {
            self.handles.insert(*wanted, value);
        } else if value != *wanted {
            let message = format!("expected {wanted}; the call returns {value}");
            return Err(self.returned(at, message, wanted.to_string(), value.to_string()));
        }
        Ok(())
    }

    /// Checks octets that were read, and returns how many.
    fn read_octets(&mut self, at: Position, call: &Call, octets: &[u8]) -> Result<i64, Error> {
        let n = u32::try_from(octets.len()).expect("as many as asked for");
        if octets != numbers::stream(numbers::INJECTED, self.read, n) {
            let message = "the octets read are not those sent to the target";
            return Err(self.differs(at, message, Vec::new()));
        }
        let stay = matches!(call, Call::Read { flags, .. } | Call::ReadMessage { flags, .. }
            if flags & constants::MSG_PEEK != 0);
        if !stay {
            self.read += u64::from(n);
        }
        Ok(i64::from(n))
    }

    fn returned(&self, at: Position, message: String, expected: String, actual: String) -> Error {
        let fields = vec![Field::differing("returned value", expected, actual)];
        self.differs(at, message, fields)
    }
}

/// The names of flags that begin with `prefix`; `0` for none.
fn names_of(bits: u32, prefix: &str) -> String {
    let mut rest = i64::from(bits);
    let mut names = Vec::new();
    for name in constants::names(prefix) {
        let value = constants::value_of(name).unwrap_or(0);
        let is_flag = value.count_ones() == 1 && !name.starts_with("EPOLL_CTL");
        if is_flag && rest & value != 0 {
            rest &= !value;
            names.push(name.to_owned());
        }
    }
    if rest != 0 || names.is_empty() {
        names.push(format!("{rest:#x}").replace("0x0", "0"));
    }
    names.join("|")
}
