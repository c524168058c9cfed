//! Socket calls of the simulated host.

use anabranch_tcp::{Role, State};

use super::{Descriptor, EndpointTarget, epoll::Epoll, instant, send_all, socket::Socket};
use crate::{
    constants::{MSG_FASTOPEN, POLLERR, POLLHUP},
    syntax::{EpollOperation, OptionValue, Queue},
    target::{Answer, Request, Send},
};

impl EndpointTarget {
    fn connect(&mut self, handle: i64) -> Result<Answer, &'static str> {
        let place = self.place(handle)?;
        let now = instant(self.now);
        let host = self.host();
        let (is_client, without) = (
            self.fast_open.is_client(),
            self.socket(handle)?.needs_no_cookie(),
        );
        let option = self.fast_open.client_option(without);
        let socket = self.socket(handle)?;
        match socket.state() {
            None if socket.is_deferred => Err("EISCONN"),
            None if is_client && socket.connects_fast() => {
                // The SYN waits for data if it may carry some (Linux: TCP_FASTOPEN_CONNECT).
                let may_carry = option.is_none_or(|option| !option.is_request());
                if may_carry {
                    socket.is_deferred = true;
                    return Ok(Answer::Value(0));
                }
                self.open_fast(
                    place,
                    &Send {
                        handle,
                        octets: Some(&[]),
                        flags: 0,
                        to_nobody: false,
                        waits: false,
                    },
                );
                Err("EINPROGRESS")
            }
            None => {
                self.begin(place, false);
                if let Some(socket) = self.at(place) {
                    socket.open(now, &host);
                }
                self.flush(place);
                Err("EINPROGRESS")
            }
            Some(state) if state.is_synchronized() => Ok(Answer::Value(0)),
            Some(_) => Err(match socket.get_option("SO_ERROR", false) {
                Ok(Answer::Value(111)) => "ECONNREFUSED",
                Ok(Answer::Value(110)) => "ETIMEDOUT",
                Ok(Answer::Value(113)) => "EHOSTUNREACH",
                Ok(Answer::Value(104)) => "ECONNRESET",
                _ if socket.state() == Some(State::Closed) => "ECONNABORTED",
                _ => "EALREADY",
            }),
        }
    }

    /// Opens a connection whose SYN may carry data. Returns how many octets it carries.
    fn open_fast(&mut self, place: usize, send: &Send<'_>) -> i64 {
        let now = instant(self.now);
        let host = self.host();
        self.begin(place, false);
        let mss = self.fast_open.mss();
        let without = self
            .at(place)
            .is_some_and(|socket| socket.needs_no_cookie());
        let option = self.fast_open.client_option(without);
        let Some(socket) = self.at(place) else {
            return 0;
        };
        socket.is_deferred = false;
        let taken = socket.open_fast(now, &host, (option, mss), send);
        self.flush(place);
        taken
    }

    fn send(&mut self, send: &Send<'_>) -> Result<Answer, &'static str> {
        let place = self.place(send.handle)?;
        let is_client = self.fast_open.is_client();
        let socket = self.socket(send.handle)?;
        let opens = send.flags & MSG_FASTOPEN != 0;
        if opens && (send.to_nobody || !is_client) && socket.state().is_none() {
            return Err("EOPNOTSUPP");
        }
        if socket.is_deferred || opens && socket.state().is_none() && !socket.listens {
            if send.octets.is_none() {
                return Err("EFAULT");
            }
            let taken = self.open_fast(place, send);
            return match (send.waits, taken) {
                (true, taken) => Ok(Answer::Started(taken)),
                (false, 0) => Err("EINPROGRESS"),
                (false, taken) => Ok(Answer::Value(taken)),
            };
        }
        if matches!(socket.state(), Some(State::SynSent | State::SynReceived)) && !socket.is_early()
        {
            return Err(if opens { "EALREADY" } else { "EAGAIN" });
        }
        let now = instant(self.now);
        let since_start = self.now;
        let version = self.towards.0;
        let lowat = self.host.notsent_lowat;
        let Descriptor::Socket(socket) = &mut self.descriptors[place] else {
            return Err("ENOTSOCK");
        };
        let towards = (version, socket.ports);
        let packets = &mut self.sent;
        Ok(socket.send(send, lowat, |end| {
            send_all(end, now, towards, since_start, packets);
        }))
    }

    fn accept(&mut self, handle: i64) -> Result<Answer, &'static str> {
        let place = self.place(handle)?;
        let socket = self.socket(handle)?;
        if !socket.listens {
            return Err("EINVAL");
        }
        if !socket.was_open {
            return Err("EAGAIN");
        }
        let accepted = socket.accept();
        let is_current = self.current == Some(place);
        let answer = self.add(Descriptor::Socket(Box::new(accepted)));
        if is_current {
            self.current = Some(self.descriptors.len() - 1);
        }
        Ok(answer)
    }

    fn set_option(
        &mut self,
        handle: i64,
        name: &str,
        value: &OptionValue,
    ) -> Result<Result<Answer, &'static str>, String> {
        let host = self.host();
        let is_client = self.fast_open.is_client();
        let is_announced = matches!(value, OptionValue::Number(number)
            if self.announced.iter().any(|(known, set)| known == name && set == number));
        let place = match self.place(handle) {
            Ok(place) => place,
            Err(error) => return Ok(Err(error)),
        };
        let Some(socket) = self.at(place) else {
            return Ok(Err("ENOTSOCK"));
        };
        if name == "TCP_FASTOPEN_CONNECT" && !is_client {
            return Ok(Err("EOPNOTSUPP"));
        }
        if name == "TCP_FASTOPEN_CONNECT" && socket.state().is_some() {
            return Ok(Err("EINVAL"));
        }
        let answer = socket.set_option(name, value, is_announced)?;
        // The next connection takes over the options of its listener.
        if socket.listens && socket.state() == Some(State::Listen) {
            socket.make(Role::Passive, &host);
            self.permit_fast_open(place);
        }
        self.flush(place);
        if let Some(socket) = self.at(place) {
            socket.hold_again();
        }
        Ok(Ok(answer))
    }

    fn close(&mut self, handle: i64) -> Result<Answer, &'static str> {
        let place = self.place(handle)?;
        let now = instant(self.now);
        if let Descriptor::Socket(socket) = &mut self.descriptors[place] {
            socket.close(now);
        }
        for descriptor in &mut self.descriptors {
            if let Descriptor::Epoll(epoll) = descriptor {
                epoll.forget(handle);
            }
        }
        Ok(Answer::Value(0))
    }

    fn epoll_control(
        &mut self,
        epoll: i64,
        operation: EpollOperation,
        handle: i64,
        events: u32,
    ) -> Result<Answer, &'static str> {
        let interest = events & 0xffff | POLLERR | POLLHUP;
        let socket = self.socket(handle)?;
        let mask = socket.events(interest);
        socket.note_waiter(interest);
        self.epoll(epoll)?
            .control(operation, handle, events, mask)?;
        Ok(Answer::Value(0))
    }

    fn epoll_wait(&mut self, epoll: i64) -> Result<Answer, &'static str> {
        let mut set = std::mem::take(self.epoll(epoll)?);
        let found = set.wait(|handle, interest| {
            let place = usize::try_from(handle).unwrap_or(usize::MAX);
            match self.descriptors.get(place) {
                Some(Descriptor::Socket(socket)) => socket.events(interest),
                _ => 0,
            }
        });
        *self.epoll(epoll)? = set;
        if let Some((_, handle)) = found {
            self.socket(handle)?.note_waiter(u32::MAX);
        }
        Ok(Answer::Event(found))
    }

    pub(super) fn carry_out(
        &mut self,
        request: Request<'_>,
    ) -> Result<Result<Answer, &'static str>, String> {
        let now = instant(self.now);
        let result = match request {
            Request::Socket => {
                let mut socket = Socket::new();
                for (name, value) in &self.announced {
                    socket.set_option(name, &OptionValue::Number(*value), false)?;
                }
                Ok(self.add(Descriptor::Socket(Box::new(socket))))
            }
            Request::Bind(handle) => self.socket(handle).map(|_| Answer::Value(0)),
            Request::SetOption(handle, name, value) => {
                return self.set_option(handle, name, value);
            }
            Request::GetOption(handle, name) => {
                let nagle = self.host.settings.nagle;
                match self.socket(handle) {
                    Ok(socket) => return socket.get_option(name, nagle).map(Ok),
                    Err(error) => Err(error),
                }
            }
            Request::Listen(handle) => {
                let host = self.host();
                match self.place(handle) {
                    Ok(place) => {
                        self.begin(place, true);
                        if let Some(socket) = self.at(place) {
                            socket.make(Role::Passive, &host);
                        }
                        self.permit_fast_open(place);
                        Ok(Answer::Value(0))
                    }
                    Err(error) => Err(error),
                }
            }
            Request::Connect(handle) => self.connect(handle),
            Request::Accept(handle) => self.accept(handle),
            Request::Read(handle, most, flags) => self
                .socket(handle)
                .map(|socket| socket.read(now, most, flags)),
            Request::ReadMessage(handle, most, flags) => self
                .socket(handle)
                .map(|socket| socket.read_message(now, most, flags)),
            Request::Send(send) => self.send(&send),
            Request::Close(handle) => self.close(handle),
            Request::ShutdownWrite(handle) => self
                .socket(handle)
                .map(|socket| socket.shut_down(false, true)),
            Request::ShutdownRead(handle) => self
                .socket(handle)
                .map(|socket| socket.shut_down(true, false)),
            Request::ShutdownBoth(handle) => self
                .socket(handle)
                .map(|socket| socket.shut_down(true, true)),
            Request::QueueSize(handle, queue) => self
                .socket(handle)
                .map(|socket| Answer::Value(socket.queue_size(queue == Queue::Received))),
            Request::Poll(handle, interest) => self.socket(handle).map(|socket| {
                let events = socket.events(interest);
                socket.note_waiter(interest);
                Answer::Value(i64::from(events))
            }),
            Request::EpollCreate => Ok(self.add(Descriptor::Epoll(Epoll::default()))),
            Request::EpollControl(epoll, operation, handle, events) => {
                self.epoll_control(epoll, operation, handle, events)
            }
            Request::EpollWait(epoll) => self.epoll_wait(epoll),
        };
        Ok(result)
    }
}
