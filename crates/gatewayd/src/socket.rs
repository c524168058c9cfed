//! UDP sockets, one for each way out.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    os::fd::{AsFd, BorrowedFd},
};

use anabranch_core::system::words;
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use socket2::{Domain, Protocol, Socket, Type};

use crate::config::Config;

/// Octets that wait in the kernel. It grants less where `net.core.rmem_max` and `net.core.wmem_max` are smaller.
const BUFFER: usize = 4 << 20;

/// A socket of one way out.
pub struct PathSocket {
    socket: UdpSocket,
    is_v6: bool,
}

/// One socket for each configured path, or one that leaves by the system's routes.
///
/// # Errors
/// A message that names the path's interface.
pub fn open(config: &Config) -> Result<Vec<PathSocket>, String> {
    let port = config.tunnel.listen.unwrap_or(0);
    let failed = |at: &str, error: &io::Error| format!("{at}: {}", words(error));
    if config.path.is_empty() {
        let at = format!("UDP port {port}");
        return Ok(vec![
            PathSocket::open(None, port).map_err(|error| failed(&at, &error))?,
        ]);
    }
    let ways = config.path.0.iter().map(|(name, way)| {
        let interface = &way.interface.0;
        PathSocket::open(Some(interface), port)
            .map_err(|error| failed(&format!("path {name}: {interface}"), &error))
    });
    ways.collect()
}

impl PathSocket {
    fn open(interface: Option<&str>, port: u16) -> io::Result<Self> {
        // A kernel without IPv6 has the other family alone.
        Self::of(Domain::IPV6, interface, port).or_else(|error| match error.raw_os_error() {
            Some(code) if is_without_v6(code) => Self::of(Domain::IPV4, interface, port),
            _ => Err(error),
        })
    }

    fn of(domain: Domain, interface: Option<&str>, port: u16) -> io::Result<Self> {
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        let is_v6 = domain == Domain::IPV6;
        if let Some(interface) = interface {
            socket.bind_device(Some(interface.as_bytes()))?;
        }
        // Datagrams are not fragmented, and the kernel's own idea of the path MTU does not count: RFC 8899 §3.
        set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)?;
        let any: IpAddr = if is_v6 {
            socket.set_only_v6(false)?;
            set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::PROBE)?;
            Ipv6Addr::UNSPECIFIED.into()
        } else {
            Ipv4Addr::UNSPECIFIED.into()
        };
        socket.set_recv_buffer_size(BUFFER)?;
        socket.set_send_buffer_size(BUFFER)?;
        socket.set_nonblocking(true)?;
        socket.bind(&SocketAddr::new(any, port).into())?;
        let socket = socket.into();
        Ok(Self { socket, is_v6 })
    }

    /// Takes a datagram, and who sent it.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let (length, from) = self.socket.recv_from(buffer)?;
        Ok((length, unmapped(from)))
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

fn is_without_v6(code: i32) -> bool {
    use rustix::io::Errno;
    [Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL].contains(&Errno::from_raw_os_error(code))
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
