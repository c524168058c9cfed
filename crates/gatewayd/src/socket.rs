//! UDP sockets.

use std::{
    io::{self, IoSliceMut},
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    time::{Duration, SystemTime},
};

use anabranch_core::system::words;
use nix::sys::{
    socket::{
        ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt,
        sockopt::{ReceiveTimestampns, UdpGroSegment},
    },
    time::TimeSpec,
};
use rustix::{
    io::Errno,
    net::sockopt::{
        Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
    },
};
use socket2::{Domain, Protocol, Socket, Type};

use crate::netlink::MARK;

/// Octets that wait in the kernel. It grants less where `net.core.rmem_max` and `net.core.wmem_max` are smaller.
const BUFFER: usize = 4 << 20;

/// The most that a datagram's stamp is believed to be old: the clock of the stamps may be set.
const OLDEST: Duration = Duration::from_secs(1);

/// Datagrams of one sender, one behind the other in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Octets of all of them.
    pub length: usize,
    /// Octets of each but the last, which may be shorter.
    pub segment: usize,
    /// Who sent them.
    pub from: SocketAddr,
    /// How long ago the kernel had them.
    pub age: Duration,
}

/// Where a socket is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// What an operator calls it.
    pub label: String,
    /// The interface that it is bound to.
    pub interface: Option<String>,
    /// The address and port. All of IPv6 is all of IPv4 as well, unless `only_v6`.
    pub address: SocketAddr,
    /// It does not take IPv4.
    pub only_v6: bool,
}

impl Bind {
    /// Whether it can send to this address.
    pub fn serves(&self, remote: SocketAddr) -> bool {
        let is_any_v6 = self.address.is_ipv6() && self.address.ip().is_unspecified();
        self.address.is_ipv4() == remote.is_ipv4() || (is_any_v6 && !self.only_v6)
    }

    /// Opens the socket, if its interface or address is there.
    ///
    /// # Errors
    /// If the port is in use, or the system refuses.
    pub fn open_if_there(&self) -> Result<Option<PathSocket>, String> {
        match PathSocket::open(self) {
            Ok(socket) => Ok(Some(socket)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(format!("{}: {}", self.label, words(&error))),
        }
    }
}

/// A socket of one way out.
pub struct PathSocket {
    socket: UdpSocket,
    is_v6: bool,
}

impl PathSocket {
    fn open(bind: &Bind) -> io::Result<Self> {
        let at = bind.address;
        let v4 = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), at.port());
        match Self::of(bind, at) {
            // A kernel without IPv6 has the other family alone.
            Err(error) if is_any(at) && is_without_v6(&error) => Self::of(bind, v4),
            opened => opened,
        }
    }

    fn of(bind: &Bind, at: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))?;
        if let Some(interface) = &bind.interface {
            socket.bind_device(Some(interface.as_bytes()))?;
        }
        // The tunnel's own datagrams stay out of a default route into the tunnel.
        socket.set_mark(MARK)?;
        // Datagrams are not fragmented, and the kernel's own idea of the path MTU does not count: RFC 8899 §3.
        set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)?;
        if at.is_ipv6() {
            socket.set_only_v6(bind.only_v6)?;
            set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::PROBE)?;
        }
        socket.set_recv_buffer_size(BUFFER)?;
        socket.set_send_buffer_size(BUFFER)?;
        socket.set_nonblocking(true)?;
        // Without stamps, the wait for the processor counts as the path's delay; without GRO there are more system calls.
        let _ = setsockopt(&socket, ReceiveTimestampns, &true);
        let _ = setsockopt(&socket, UdpGroSegment, &true);
        socket.bind(&at.into())?;
        Ok(Self {
            socket: socket.into(),
            is_v6: at.is_ipv6(),
        })
    }

    /// Takes datagrams that the kernel has put together, or one.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        let mut slices = [IoSliceMut::new(buffer)];
        let mut control = nix::cmsg_space!(TimeSpec, i32);
        let received = recvmsg::<SockaddrStorage>(
            self.socket.as_raw_fd(),
            &mut slices,
            Some(&mut control),
            MsgFlags::empty(),
        )?;
        let from = received.address.as_ref().and_then(address);
        let from = from.ok_or(io::ErrorKind::InvalidData)?;
        let (length, mut segment, mut age) = (received.bytes, received.bytes, Duration::ZERO);
        for message in received.cmsgs()? {
            match message {
                ControlMessageOwned::ScmTimestampns(stamp) => age = since(stamp),
                ControlMessageOwned::UdpGroSegments(size) => {
                    segment = usize::try_from(size).unwrap_or(length);
                }
                _ => {}
            }
        }
        Ok(Received {
            length,
            segment: segment.max(1),
            from: unmapped(from),
            age,
        })
    }

    /// Sends a datagram.
    pub fn send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        let to = match to {
            SocketAddr::V4(v4) if self.is_v6 => {
                SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port())
            }
            other => other,
        };
        self.socket.send_to(datagram, to).map(drop)
    }
}

impl AsFd for PathSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage
        .as_sockaddr_in()
        .map(|v4| SocketAddr::V4((*v4).into()));
    v4.or_else(|| {
        storage
            .as_sockaddr_in6()
            .map(|v6| SocketAddr::V6((*v6).into()))
    })
}

/// How long ago a stamp of the system's clock was made.
fn since(stamp: TimeSpec) -> Duration {
    let stamp = Duration::new(
        u64::try_from(stamp.tv_sec()).unwrap_or(0),
        u32::try_from(stamp.tv_nsec()).unwrap_or(0),
    );
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap_or_default().saturating_sub(stamp).min(OLDEST)
}

/// An IPv4 address as such, where an IPv6 socket shows it mapped.
fn unmapped(from: SocketAddr) -> SocketAddr {
    match from {
        SocketAddr::V6(v6) => v6
            .ip()
            .to_ipv4_mapped()
            .map_or(from, |v4| SocketAddr::new(v4.into(), v6.port())),
        SocketAddr::V4(_) => from,
    }
}

fn is_any(at: SocketAddr) -> bool {
    matches!(at.ip(), IpAddr::V6(address) if address.is_unspecified())
}

fn is_without_v6(error: &io::Error) -> bool {
    is_one_of(error, &[Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL])
}

/// Whether the interface or the address is not there.
fn is_absent(error: &io::Error) -> bool {
    is_one_of(error, &[Errno::NODEV, Errno::ADDRNOTAVAIL])
}

fn is_one_of(error: &io::Error, codes: &[Errno]) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    code.is_some_and(|code| codes.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::unmapped;

    #[test]
    fn mapped_addresses_are_shown_as_ipv4() {
        let shown = |text: &str| unmapped(text.parse().expect("an address")).to_string();
        assert_eq!(shown("[::ffff:192.0.2.1]:9"), "192.0.2.1:9");
        assert_eq!(shown("[2001:db8::1]:9"), "[2001:db8::1]:9");
        assert_eq!(shown("192.0.2.1:9"), "192.0.2.1:9");
    }
}
