//! TCP sockets: creation, options before they connect or listen, and reads and writes that return
//! soon.

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

/// Connections that may wait to be accepted: as many as the kernel permits (`net.core.somaxconn`).
const BACKLOG: i32 = 65_535;
/// Octets per write or read.
pub const CHUNK: usize = 128 << 10;

/// The longest wait of a call.
const MOMENT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: LOOK.subsec_nanos() as _,
};
const AT_ONCE: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

impl SocketSettings {
    /// Sets the options of a socket before it listens or connects.
    pub fn apply(&self, socket: &impl AsFd) -> io::Result<()> {
        Ok(self.try_on(socket)?)
    }

    /// Binds a socket to its local address before it connects.
    pub fn bind_local(&self, socket: &impl AsFd) -> io::Result<()> {
        self.local.map_or(Ok(()), |address| {
            Ok(bind(socket, &SocketAddr::new(address, 0))?)
        })
    }

    /// As [`Self::apply`], but an error names the option that the socket refused.
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
    /// Sets the bound of the receive window again, at each read. Linux (6.6 and later) discards it
    /// when it learns the memory size of packets. An unchanged bound costs nothing.
    pub fn hold_window(&self, socket: &impl AsFd) {
        if let Some(bytes) = self.window {
            // The socket accepted the bound before; only a closed connection refuses it.
            drop(tcp_info::bound_window(socket, bytes));
        }
    }
}

/// Sets the octet of the DSCP on a socket of either family. 0 is the default.
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

/// Prepares a socket for data: calls time out soon, and closing it leaves no state.
pub fn prepare(socket: &impl AsFd, settings: &SocketSettings) -> io::Result<()> {
    for timeout in [sockopt::Timeout::Recv, sockopt::Timeout::Send] {
        sockopt::set_socket_timeout(socket, timeout, Some(LOOK))?;
    }
    sockopt::set_tcp_nodelay(socket, !settings.nagle)?;
    Ok(sockopt::set_socket_linger(socket, Some(Pause::ZERO))?)
}

/// Opens a listening socket. Options that connections inherit are set first, because some apply
/// from the first packet on.
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

/// An established connection, and the error that ended it.
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

    /// The kind of an end other than by FIN, and the time at which a call first reported it.
    pub fn broken(&self) -> Option<(Ended, Instant)> {
        self.broken.get()
    }

    /// Whether this error of a call means that the connection has ended. Records the end.
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

/// The end of a connection that this error of a call reports; `None` if it has not ended. A call
/// that timed out returns `EAGAIN`, so `ETIMEDOUT` means that the kernel gave up.
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

/// Whether a call only timed out, or was interrupted.
pub fn is_late(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

/// Writes `bytes` bytes of `content`, and returns the number written.
///
/// Waits for room outside of writes: a write that timed out would be repeated, and every write
/// sends data that TCP had deferred. After the buffer was full, the next write waits until the
/// kernel reports room, which it does when a third is free, as for any blocking writer. An earlier
/// write would find room as soon as anything is acknowledged.
pub(crate) fn write_while(
    stream: &Connection,
    content: &mut Stream,
    bytes: u64,
    going: impl Fn() -> bool,
) -> io::Result<u64> {
    let mut chunk = vec![0; CHUNK.min(usize::try_from(bytes).unwrap_or(CHUNK))];
    let mut written = 0;
    // The range of the chunk that is filled and not yet written.
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
                // Filling an empty buffer takes a millisecond, in which no other thread would have
                // the processor.
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

/// Waits for a moment until the kernel reports room, or the end of the connection. Returns whether
/// it did.
fn has_room(stream: &TcpStream) -> io::Result<bool> {
    match poll(&mut [PollFd::new(stream, PollFlags::OUT)], Some(&MOMENT)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Writes up to `bytes` bytes without waiting, and returns the number written.
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

/// Reads up to `bytes` bytes, and returns their number.
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

/// Whether a connection was ended by the path or by the peer.
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
    fn errors_of_calls_map_to_ends_of_connections() {
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

    /// Detects options that are set only after a connection is accepted, or never.
    #[test]
    fn connections_inherit_the_options() {
        let listener = listen_at(here(0), &settings()).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let _client = TcpStream::connect(address).expect("it listens");
        let (stream, _) = listener.accept().expect("it is there");
        assert_eq!(sockopt::tcp_congestion(&stream).expect("set"), "reno");
        assert!(TcpInfo::of(&stream).expect("of TCP").snd_mss <= 700);
    }

    /// Detects a socket that listens before the inherited options are set.
    #[test]
    fn a_refused_option_prevents_listening() {
        let port = {
            let free = TcpListener::bind(here(0)).expect("a free port");
            free.local_addr().expect("bound").port()
        };
        let wrong = SocketSettings {
            congestion: Some("no-such-control".to_owned()),
            ..settings()
        };
        // The port is taken: if bind came first, it would fail before the options are set.
        let _taken = TcpListener::bind(here(port)).expect("still free");
        let error = listen_at(here(port), &wrong).expect_err("no such control");
        assert_ne!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
