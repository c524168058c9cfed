//! The sockets of TCP: how they are made, what they are told before they connect or listen, and how their streams are written and read
//! so that nobody waits for long.

use std::{
    cell::Cell,
    io::{self, Read},
    net::{SocketAddr, TcpListener, TcpStream},
    ops::Deref,
    os::fd::AsFd,
    time::Duration as Pause,
};

use anabranch_core::units::Instant;
use anabranch_engine::network::Ended;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{
        AddressFamily, SendFlags, SocketFlags, SocketType, bind, listen, send, socket_with, sockopt,
    },
};

use crate::{
    apps::{
        stage::{LOOK, Stage},
        stream::{Check, Stream},
    },
    kernel::{clock::Clock, sys::tcp_info},
    plan::settings::{OptionError, SocketOption, SocketSettings},
};

/// Connections that may wait to be taken: as many as the kernel permits (`net.core.somaxconn`).
const BACKLOG: i32 = 65_535;
/// Written or read at once.
pub const CHUNK: usize = 128 << 10;

/// Nobody waits for longer.
const MOMENT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: LOOK.subsec_nanos() as _,
};
const AT_ONCE: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

impl SocketSettings {
    /// Before a socket listens or connects.
    pub fn apply(&self, socket: &impl AsFd) -> io::Result<()> {
        Ok(self.try_on(socket)?)
    }

    /// Before a socket connects: where it connects from.
    pub fn bind_local(&self, socket: &impl AsFd) -> io::Result<()> {
        self.local.map_or(Ok(()), |address| {
            Ok(bind(socket, &SocketAddr::new(address, 0))?)
        })
    }

    /// The same, with which option it was that the socket would not have.
    pub fn try_on(&self, socket: &impl AsFd) -> Result<(), OptionError> {
        let failed = |option| move |source| OptionError { option, source };
        if let Some(congestion) = &self.congestion {
            sockopt::set_tcp_congestion(socket, congestion)
                .map_err(io::Error::from)
                .map_err(failed(SocketOption::Congestion))?;
        }
        set_class(socket, self.class).map_err(failed(SocketOption::Class))?;
        tcp_info::set_max_segment(socket, self.max_segment)
            .map_err(failed(SocketOption::MaxSegment))?;
        self.window.map_or(Ok(()), |bytes| {
            tcp_info::set_window(socket, bytes).map_err(failed(SocketOption::Window))
        })
    }
}

impl SocketSettings {
    /// Linux (6.6 and later) forgets the bound of a window when it learns how large packets are in memory, so it is told again with every
    /// read. It costs nothing where it has not changed.
    pub fn hold_window(&self, socket: &impl AsFd) {
        if let Some(bytes) = self.window {
            // It was taken before; a connection that is gone has none.
            drop(tcp_info::bound_window(socket, bytes));
        }
    }
}

/// The octet of the DSCP, of a socket of either family. 0 is what a socket has anyway.
pub fn set_class(socket: &impl AsFd, class: u8) -> io::Result<()> {
    if class == 0 {
        return Ok(());
    }
    match sockopt::socket_domain(socket)? {
        AddressFamily::INET6 => sockopt::set_ipv6_tclass(socket, class.into())?,
        _ => sockopt::set_ip_tos(socket, class)?,
    }
    Ok(())
}

/// A socket that carries data: no call on it waits for long, and closing it leaves nothing behind.
pub fn prepare(socket: &impl AsFd, settings: &SocketSettings) -> io::Result<()> {
    for timeout in [sockopt::Timeout::Recv, sockopt::Timeout::Send] {
        sockopt::set_socket_timeout(socket, timeout, Some(LOOK))?;
    }
    sockopt::set_tcp_nodelay(socket, !settings.nagle)?;
    Ok(sockopt::set_socket_linger(socket, Some(Pause::ZERO))?)
}

/// A socket that listens. What connections inherit is set before one can come: some of it counts from the first packet on.
pub fn listen_at(address: SocketAddr, settings: &SocketSettings) -> io::Result<TcpListener> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(family(address), SocketType::STREAM, flags, None)?;
    settings.apply(&socket)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}

pub const fn family(address: SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}

pub(crate) fn accept(listener: &TcpListener, stage: &Stage) -> io::Result<Option<TcpStream>> {
    while !stage.is_over() {
        let mut waiting = [PollFd::new(listener, PollFlags::IN)];
        match poll(&mut waiting, Some(&MOMENT)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return listener.accept().map(|(stream, _)| Some(stream)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// A connection that stood, and what broke it off.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    clock: Clock,
    broken: Cell<Option<(Ended, Instant)>>,
}

impl Connection {
    pub const fn new(stream: TcpStream, clock: Clock) -> Self {
        let broken = Cell::new(None);
        Self {
            stream,
            clock,
            broken,
        }
    }

    /// How it ended other than by FIN, and when a call first said so.
    pub fn broken(&self) -> Option<(Ended, Instant)> {
        self.broken.get()
    }

    /// Whether this error of a call means that the connection is gone, which is noted.
    fn is_broken_by(&self, error: &io::Error) -> bool {
        let ended = ending(error);
        if let Some(ended) = ended
            && self.broken.get().is_none()
        {
            self.broken.set(Some((ended, self.clock.now())));
        }
        ended.is_some()
    }
}

impl Deref for Connection {
    type Target = TcpStream;
    fn deref(&self) -> &TcpStream {
        &self.stream
    }
}

/// How a connection has ended of which a call returns this error; `None` if it has not. A call that took too long
/// returns `EAGAIN`, so `ETIMEDOUT` is the kernel's giving up.
pub fn ending(error: &io::Error) -> Option<Ended> {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable,
        NetworkUnreachable, TimedOut,
    };
    match error.kind() {
        ConnectionRefused => Some(Ended::Refused),
        TimedOut | HostUnreachable | NetworkUnreachable => Some(Ended::GaveUp),
        BrokenPipe | ConnectionAborted | ConnectionReset => Some(Ended::Reset),
        _ => None,
    }
}

/// Whether a call only took too long, or was interrupted.
pub fn is_late(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

/// Writes `bytes` bytes of `content`, and says how many were. Room is waited for outside of writes: one that ended by a time-out would be
/// made again, and every write sends what TCP had let wait for more. A full buffer takes nothing until the kernel reports room, which it
/// does once a third is free, as for any program that blocks in writing: a write before that would find room as soon as anything is
/// acknowledged.
pub(crate) fn write_while(
    stream: &Connection,
    content: &mut Stream,
    bytes: u64,
    going: impl Fn() -> bool,
) -> io::Result<u64> {
    let mut chunk = vec![0; CHUNK.min(usize::try_from(bytes).unwrap_or(CHUNK))];
    let mut written = 0;
    // Octets of the chunk that are made and not yet taken.
    let mut made = 0..0;
    while written < bytes && going() {
        if made.is_empty() {
            content.peek(&mut chunk);
            made = 0..chunk.len();
        }
        let part = made
            .len()
            .min(usize::try_from(bytes - written).unwrap_or(CHUNK));
        match send(&**stream, &chunk[made.start..made.start + part], AT_ONCE) {
            Ok(n) => {
                written += n as u64;
                made.start += n;
                content.advance(n as u64);
                // An empty buffer takes a millisecond to fill, for which no other writer or reader would have the processor.
                if written < bytes {
                    std::thread::yield_now();
                }
            }
            Err(Errno::AGAIN) => while going() && !has_room(stream)? {},
            Err(Errno::INTR) => {}
            Err(error) if stream.is_broken_by(&error.into()) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(written)
}

/// Waits for a moment until the kernel reports room, or the end of the connection. Whether it has.
fn has_room(stream: &TcpStream) -> io::Result<bool> {
    match poll(&mut [PollFd::new(stream, PollFlags::OUT)], Some(&MOMENT)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Writes as much of `bytes` bytes as the socket takes at once, and says how much that was.
pub(crate) fn write_now(stream: &Connection, content: &mut Stream, bytes: u64) -> io::Result<u64> {
    let mut chunk = vec![0; CHUNK.min(usize::try_from(bytes).unwrap_or(CHUNK))];
    let mut written = 0;
    while written < bytes {
        let left = usize::try_from(bytes - written).unwrap_or(CHUNK);
        let part = left.min(chunk.len());
        content.peek(&mut chunk[..part]);
        match send(&**stream, &chunk[..part], AT_ONCE) {
            Ok(n) => {
                written += n as u64;
                content.advance(n as u64);
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(error) if stream.is_broken_by(&error.into()) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(written)
}

/// Reads up to `bytes` bytes, and says how many there were.
pub(crate) fn read_while(
    stream: &Connection,
    content: &mut Check,
    bytes: u64,
    going: impl Fn() -> bool,
) -> io::Result<u64> {
    let mut chunk = vec![0; CHUNK];
    let mut read = 0;
    while read < bytes && going() {
        let part = chunk
            .len()
            .min(usize::try_from(bytes - read).unwrap_or(CHUNK));
        match (&**stream).read(&mut chunk[..part]) {
            Ok(0) => break,
            Ok(n) => {
                content.take(&chunk[..n]);
                read += n as u64;
            }
            Err(error) if stream.is_broken_by(&error) => break,
            Err(error) if is_late(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// Whether the path ended a connection: it gave up, or the peer did.
pub fn is_lost(error: &io::Error) -> bool {
    ending(error).is_some()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::kernel::sys::tcp_info::TcpInfo;

    fn settings() -> SocketSettings {
        SocketSettings {
            congestion: Some("reno".to_owned()),
            max_segment: 700,
            window: None,
            nagle: false,
            local: None,
            class: 46 << 2,
        }
    }

    fn here(port: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port).into()
    }

    #[test]
    fn errors_of_calls_say_how_a_connection_ended() {
        let of = |errno: Errno| ending(&errno.into());
        assert_eq!(of(Errno::TIMEDOUT), Some(Ended::GaveUp));
        assert_eq!(of(Errno::HOSTUNREACH), Some(Ended::GaveUp));
        assert_eq!(of(Errno::CONNREFUSED), Some(Ended::Refused));
        assert_eq!(of(Errno::CONNRESET), Some(Ended::Reset));
        assert_eq!(of(Errno::PIPE), Some(Ended::Reset));
        for still_there in [Errno::AGAIN, Errno::INTR, Errno::INPROGRESS, Errno::ALREADY] {
            assert_eq!(of(still_there), None);
        }
    }

    /// Fails for settings that are made of the listening socket when a connection is there, or of nobody.
    #[test]
    fn connections_inherit_what_is_set() {
        let listener = listen_at(here(0), &settings()).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let _client = TcpStream::connect(address).expect("it listens");
        let (stream, _) = listener.accept().expect("it is there");
        assert_eq!(sockopt::tcp_congestion(&stream).expect("set"), "reno");
        assert!(TcpInfo::of(&stream).expect("of TCP").snd_mss <= 700);
    }

    /// Fails for a socket that can be reached before it has been told what its connections inherit.
    #[test]
    fn what_cannot_be_set_never_listens() {
        let port = {
            let free = TcpListener::bind(here(0)).expect("a free port");
            free.local_addr().expect("bound").port()
        };
        let wrong = SocketSettings {
            congestion: Some("no-such-control".to_owned()),
            ..settings()
        };
        // Taken by another: who binds first does not come to the settings.
        let _taken = TcpListener::bind(here(port)).expect("still free");
        let error = listen_at(here(port), &wrong).expect_err("no such control");
        assert_ne!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
