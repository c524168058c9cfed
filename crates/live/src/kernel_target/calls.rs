//! Socket calls of behaviour scripts on a kernel.

use std::{
    io,
    net::SocketAddrV4,
    os::fd::OwnedFd,
    sync::mpsc::{RecvTimeoutError, channel},
    time::Duration,
};

use anabranch_script::{
    Answer, Control, EpollOperation, OptionValue, Queue, Request, Send,
    constants::{EPOLLONESHOT, MSG_FASTOPEN, MSG_NOSIGNAL, MSG_TRUNC},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, epoll, poll},
    io::Errno,
    net::{
        AddressFamily, Shutdown, SocketFlags, SocketType, accept_with, bind, connect, listen,
        shutdown, socket_with, sockopt,
    },
};

use super::{HOST, KernelTarget, PEER, PORTS, Socket, errno, options};
use crate::kernel::sys::{
    message::{self, Destination, Note},
    tcp_info::TcpInfo,
};

/// Longest wait for the result of a call that has returned in its thread.
const HANDOVER: Duration = Duration::from_millis(1);

impl KernelTarget {
    fn entry(&mut self, handle: i64) -> Result<&mut Socket, Errno> {
        let entry = usize::try_from(handle)
            .ok()
            .and_then(|handle| self.sockets.get_mut(handle));
        entry.filter(|entry| !entry.is_closed).ok_or(Errno::BADF)
    }

    fn socket(&self, handle: i64) -> Result<&OwnedFd, Errno> {
        let entry = usize::try_from(handle)
            .ok()
            .and_then(|handle| self.sockets.get(handle));
        let open = entry.filter(|entry| !entry.is_closed);
        open.and_then(|entry| entry.descriptor.as_ref())
            .ok_or(Errno::BADF)
    }

    fn add(&mut self, socket: OwnedFd) -> Answer {
        self.sockets.push(Socket {
            descriptor: Some(socket),
            ..Socket::default()
        });
        Answer::Value(i64::try_from(self.sockets.len() - 1).expect("few sockets"))
    }

    fn make(&mut self) -> Result<OwnedFd, Errno> {
        let socket = socket_with(
            AddressFamily::INET,
            SocketType::STREAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        sockopt::set_tcp_congestion(&socket, &self.congestion)?;
        Ok(socket)
    }

    /// A socket listens or connects: binds it, because scripts contain no addresses. A port distinguishes
    /// the connection from earlier ones: the peer's if it opens the connection, or the host's.
    fn begin(&mut self, handle: i64, listens: bool) -> Result<(), Errno> {
        if self.entry(handle)?.is_bound {
            return Ok(());
        }
        for entry in &mut self.sockets {
            if entry.is_closed {
                entry.descriptor = None;
            }
        }
        let step = u16::try_from(self.connections % 1000).expect("below 1000");
        let mut ports = PORTS;
        if listens {
            ports.source += step;
        } else {
            ports.destination += step;
        }
        let here = SocketAddrV4::new(self.addresses[HOST], ports.destination);
        bind(self.socket(handle)?, &here)?;
        self.connections += 1;
        self.ports = ports;
        let entry = self.entry(handle)?;
        entry.is_bound = true;
        entry.listens = listens;
        self.connection = usize::try_from(handle).ok();
        Ok(())
    }

    fn there(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.addresses[PEER], self.ports.source)
    }

    /// Carries out a call; the inner result is that of the kernel.
    pub(super) fn carry_out(
        &mut self,
        request: Request<'_>,
    ) -> Result<Result<Answer, Errno>, String> {
        if let Request::SetOption(handle, name, value) = request {
            return self.set_option(handle, name, value);
        }
        if let Request::GetOption(handle, name) = request {
            let (level, number) = options::number(name)?;
            let read = self.socket(handle).and_then(|socket| {
                message::option(socket, level, number).map_err(|error| errno(&error))
            });
            return Ok(read.map(|value| Answer::Value(value.into())));
        }
        Ok(self.ask(request))
    }

    fn ask(&mut self, request: Request<'_>) -> Result<Answer, Errno> {
        const DONE: Answer = Answer::Value(0);
        Ok(match request {
            Request::Socket => {
                let socket = self.make()?;
                self.add(socket)
            }
            Request::Listen(handle) => {
                self.begin(handle, true)?;
                listen(self.socket(handle)?, 8)?;
                DONE
            }
            Request::Connect(handle) => {
                self.begin(handle, false)?;
                connect(self.socket(handle)?, &self.there())?;
                DONE
            }
            Request::Accept(handle) => {
                let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
                let socket = accept_with(self.socket(handle)?, flags)?;
                self.connection = Some(self.sockets.len());
                let answer = self.add(socket);
                if let Some(entry) = self.sockets.last_mut() {
                    entry.is_bound = true;
                }
                answer
            }
            Request::Read(handle, most, flags) => {
                let received = self.take_message(handle, most, flags)?;
                if flags & MSG_TRUNC == 0 {
                    Answer::Octets(received.octets)
                } else {
                    Answer::Value(i64::try_from(received.octets.len()).expect("few octets"))
                }
            }
            Request::ReadMessage(handle, most, flags) => {
                let received = self.take_message(handle, most, flags)?;
                let control = received.notes.into_iter().filter_map(control_of).collect();
                let flags = u32::from_ne_bytes(received.flags.to_ne_bytes());
                Answer::Message(received.octets, flags, control)
            }
            Request::Send(send) => self.send(&send)?,
            Request::Close(handle) => self.close(handle)?,
            Request::Bind(handle) => {
                self.socket(handle)?;
                DONE
            }
            Request::ShutdownWrite(handle) => {
                shutdown(self.socket(handle)?, Shutdown::Write)?;
                DONE
            }
            Request::ShutdownRead(handle) => {
                shutdown(self.socket(handle)?, Shutdown::Read)?;
                DONE
            }
            Request::ShutdownBoth(handle) => {
                shutdown(self.socket(handle)?, Shutdown::Both)?;
                DONE
            }
            Request::QueueSize(handle, queue) => {
                let size = message::queue_size(self.socket(handle)?, queue == Queue::Received);
                Answer::Value(size.map_err(|error| errno(&error))?.into())
            }
            Request::Poll(handle, events) => {
                let events = PollFlags::from_bits_retain(i16::try_from(events).unwrap_or(i16::MAX));
                let mut watched = [PollFd::new(self.socket(handle)?, events)];
                poll(&mut watched, Some(&Timespec::default()))?;
                Answer::Value(watched[0].revents().bits().into())
            }
            Request::EpollCreate => {
                let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
                self.add(set)
            }
            Request::EpollControl(set, operation, handle, events) => {
                self.control_epoll(set, operation, handle, events)?;
                DONE
            }
            Request::EpollWait(set) => {
                let mut events = Vec::with_capacity(1);
                let none = Timespec::default();
                epoll::wait(
                    self.socket(set)?,
                    rustix::buffer::spare_capacity(&mut events),
                    Some(&none),
                )?;
                Answer::Event(events.first().map(|event| {
                    // The structure is packed.
                    let (flags, data) = (event.flags, event.data);
                    (flags.bits(), i64::try_from(data.u64()).unwrap_or(-1))
                }))
            }
            Request::GetOption(..) | Request::SetOption(..) => unreachable!("dealt with before"),
        })
    }

    fn control_epoll(
        &self,
        set: i64,
        operation: EpollOperation,
        handle: i64,
        events: u32,
    ) -> Result<(), Errno> {
        let (set, socket) = (self.socket(set)?, self.socket(handle)?);
        let data = epoll::EventData::new_u64(handle.unsigned_abs());
        debug_assert!(EPOLLONESHOT == epoll::EventFlags::ONESHOT.bits());
        let events = epoll::EventFlags::from_bits_retain(events);
        match operation {
            EpollOperation::Add => epoll::add(set, socket, data, events),
            EpollOperation::Modify => epoll::modify(set, socket, data, events),
            EpollOperation::Delete => epoll::delete(set, socket),
        }
    }

    fn take_message(&self, handle: i64, most: u32, flags: u32) -> Result<message::Received, Errno> {
        let flags = i32::from_ne_bytes(flags.to_ne_bytes());
        message::receive(self.socket(handle)?, most as usize, flags).map_err(|error| errno(&error))
    }

    /// Sends. A call that may block does so in a thread: the kernel acknowledges a SYN-ACK with the
    /// data of a writer that waits, and wakes a writer only once a third of the buffer is free.
    fn send(&mut self, send: &Send<'_>) -> Result<Answer, Errno> {
        let entry = self.entry(send.handle)?;
        if let Some(blocked) = &entry.blocked {
            // The thread may have been woken just now.
            return match blocked.recv_timeout(HANDOVER) {
                Err(RecvTimeoutError::Timeout) => Err(Errno::ALREADY),
                Err(RecvTimeoutError::Disconnected) => Err(Errno::INTR),
                Ok(result) => {
                    entry.blocked = None;
                    let octets = send.octets.unwrap_or_default().len();
                    debug_assert_eq!(octets, 0, "all octets have been handed over");
                    result
                        .map(|_| Answer::Value(0))
                        .map_err(|error| errno(&error))
                }
            };
        }
        let opens = send.flags & MSG_FASTOPEN != 0;
        if opens {
            self.begin(send.handle, false)?;
        }
        let to = match (opens, send.to_nobody) {
            (false, _) => Destination::Peer,
            (true, true) => Destination::Nobody,
            (true, false) => Destination::Address(self.there()),
        };
        let flags = i32::from_ne_bytes((send.flags | MSG_NOSIGNAL).to_ne_bytes());
        if send.waits && send.octets.is_some() {
            return self.send_in_thread(send, flags, to);
        }
        let socket = self.socket(send.handle)?;
        let octets = send.octets.ok_or(1);
        let taken = message::send_to(socket, octets, flags, to).map_err(|error| errno(&error))?;
        Ok(Answer::Value(i64::try_from(taken).expect("few octets")))
    }

    /// Whether the handshake of a connection is complete.
    fn is_connected(&self, handle: i64) -> bool {
        // SYN-SENT is 2, SYN-RECEIVED 3, and a closed socket 7 (`netinet/tcp.h`).
        let info = self
            .socket(handle)
            .ok()
            .and_then(|socket| TcpInfo::of(socket).ok());
        info.is_some_and(|info| !matches!(info.state, 2 | 3 | 7))
    }

    fn send_in_thread(
        &mut self,
        send: &Send<'_>,
        flags: i32,
        to: Destination,
    ) -> Result<Answer, Errno> {
        let socket = self.socket(send.handle)?;
        let copy = socket.try_clone().map_err(|error| errno(&error))?;
        rustix::io::ioctl_fionbio(socket, false)?;
        let octets = send.octets.unwrap_or_default().to_vec();
        let len = i64::try_from(octets.len()).expect("few octets");
        let (done, outcome) = channel();
        std::thread::spawn(move || {
            let result = message::send_to(&copy, Ok(&octets), flags, to);
            let result = result.and_then(|taken| {
                if taken == octets.len() {
                    Ok(taken)
                } else {
                    Err(io::Error::from_raw_os_error(libc::EAGAIN))
                }
            });
            // The thread that asked may have ended.
            let _ = rustix::io::ioctl_fionbio(&copy, true);
            let _ = done.send(result);
        });
        self.entry(send.handle)?.blocked = Some(outcome);
        Ok(Answer::Started(len))
    }

    /// Closes a socket. The connection's descriptor stays open, so that the kernel's counters can be
    /// read. Both directions are shut down instead; after all data was read, the peer sees no
    /// difference from `close`.
    fn close(&mut self, handle: i64) -> Result<Answer, Errno> {
        let socket = self.socket(handle)?;
        let unread = message::queue_size(socket, true).unwrap_or(0);
        let lingers = sockopt::socket_linger(socket).is_ok_and(|linger| linger.is_some());
        let is_open = self.is_connected(handle);
        let is_connection = usize::try_from(handle).is_ok_and(|h| self.connection == Some(h));
        let entry = self.entry(handle)?;
        entry.is_closed = true;
        if is_connection && is_open && !entry.listens && unread == 0 && !lingers {
            if let Some(socket) = &entry.descriptor {
                shutdown(socket, Shutdown::Both)?;
            }
        } else {
            entry.descriptor = None;
        }
        Ok(Answer::Value(0))
    }

    fn set_option(
        &self,
        handle: i64,
        name: &str,
        value: &OptionValue,
    ) -> Result<Result<Answer, Errno>, String> {
        let (level, number, octets) = match value {
            OptionValue::Number(value) => {
                let (level, number) = options::number(name)?;
                // A number without a sign, such as 0xffffffff, is the same octets.
                let unsigned = |value| u32::try_from(value).map(u32::cast_signed);
                let value = i32::try_from(*value)
                    .or_else(|_| unsigned(*value))
                    .map_err(|_| format!("{name}: {value} is no number of 32 bits"))?;
                (level, number, value.to_ne_bytes().to_vec())
            }
            OptionValue::Text(octets) => {
                let (level, number) = options::text(name)?;
                (level, number, octets.clone())
            }
            OptionValue::Linger(seconds) => {
                let on = i32::from(seconds.is_some());
                let seconds = i32::try_from(seconds.unwrap_or(0)).unwrap_or(i32::MAX);
                let octets = [on.to_ne_bytes(), seconds.to_ne_bytes()].concat();
                (libc::SOL_SOCKET, libc::SO_LINGER, octets)
            }
        };
        Ok(self.socket(handle).and_then(|socket| {
            message::set_option(socket, level, number, &octets)
                .map(|()| Answer::Value(0))
                .map_err(|error| errno(&error))
        }))
    }
}

fn control_of(note: Note) -> Option<Control> {
    match note {
        Note::Unread(octets) => Some(Control::Unread(octets.into())),
        Note::ZeroCopy {
            first,
            last,
            was_copied,
        } => Some(Control::ZeroCopy {
            first,
            last,
            was_copied,
        }),
        Note::Other(..) => None,
    }
}
