//! UDP sockets.

use std::{
    collections::BTreeSet,
    io::{self, IoSlice, IoSliceMut},
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    time::{Duration, SystemTime},
};

use anabranch_core::{packet::Ecn, system::words};
use nix::{
    libc,
    sys::{
        socket::{
            ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg,
            setsockopt,
            sockopt::{RcvBufForce, ReceiveTimestampns, SndBufForce, UdpGroSegment},
        },
        time::TimeSpec,
    },
};
use rustix::{
    io::Errno,
    net::sockopt::{
        Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ip_recvtos,
        set_ipv6_mtu_discover, set_ipv6_recvtclass,
    },
};
use socket2::{Domain, Protocol, Socket, Type};

use crate::{
    failure::{self, Failure, Failures},
    links::{Link, Links},
    netlink::MARK,
};

/// Octets that may wait in the kernel while the gateway waits for the processor: 100 ms at 300 Mbit/s.
/// `net.core.rmem_max` and `net.core.wmem_max`, usually 208 KiB, would be 3 ms of full datagrams.
const BUFFER: usize = 4 << 20;

/// The greatest accepted age of a datagram's timestamp, because the clock of the timestamps may be
/// set.
const OLDEST: Duration = Duration::from_secs(1);

/// Octets of control messages with datagrams: timestamp, size and traffic class.
const CONTROL: usize = 128;

/// The most destinations without GSO that are remembered.
const DESTINATIONS: usize = 64;

/// Consecutive datagrams of one sender in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Total octets.
    pub length: usize,
    /// Octets of each datagram; the last may be shorter.
    pub segment: usize,
    /// The sender's address.
    pub from: SocketAddr,
    /// The time since the kernel received them.
    pub age: Duration,
    /// The ECN field of each.
    pub ecn: Ecn,
}

/// Properties of sent datagrams other than their destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// The ECN field of each.
    pub ecn: Ecn,
    /// Whether the other end has reported datagrams of this path, so that the next hop is known to
    /// be reachable (`MSG_CONFIRM` of send(2)). Otherwise the kernel probes the next hop now and
    /// then. If a probe fails during an outage, the kernel gives the next hop up and repeats the
    /// request only once per second.
    pub is_confirmed: bool,
    /// Whether the datagram must be sent alone, not as a part of a batch.
    pub is_alone: bool,
}

/// The binding of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// The name for messages.
    pub label: String,
    /// The interface that it is bound to.
    pub interface: Option<String>,
    /// The address and port. The unspecified IPv6 address includes IPv4, unless `only_v6`.
    pub address: SocketAddr,
    /// Whether the socket refuses IPv4.
    pub only_v6: bool,
    /// Whether ICMP messages are kept as reasons. A socket that only listens has none: anyone could
    /// send it messages.
    pub reports_errors: bool,
}

impl Bind {
    /// Whether the socket can send to this address.
    pub fn serves(&self, remote: SocketAddr) -> bool {
        let is_any_v6 = self.address.is_ipv6() && self.address.ip().is_unspecified();
        self.address.is_ipv4() == remote.is_ipv4() || (is_any_v6 && !self.only_v6)
    }

    /// Whether the socket is bound to neither an interface nor an address.
    pub fn is_any(&self) -> bool {
        self.interface.is_none() && self.address.ip().is_unspecified()
    }

    /// The interface to which the socket is bound, or which has its address.
    pub fn link<'a>(&self, links: &'a Links) -> Option<&'a Link> {
        match &self.interface {
            Some(name) => links.0.get(name),
            None => links.with(self.address.ip()),
        }
    }

    /// The name and state of the interface of [`Self::link`].
    pub fn named_link<'a>(&self, links: &'a Links) -> Option<(&'a str, &'a Link)> {
        let mut all = links.0.iter();
        let is_own = |(name, link): &(&String, &Link)| match &self.interface {
            Some(interface) => *name == interface,
            None => link.addresses.contains(&self.address.ip()),
        };
        all.find(is_own).map(|(name, link)| (name.as_str(), link))
    }

    /// Whether a socket with one binding can replace a socket with the other.
    pub fn is_same(&self, other: &Self) -> bool {
        let bound = |bind: &Self| (bind.interface.clone(), bind.address, bind.only_v6);
        bound(self) == bound(other)
    }

    /// Opens the socket. Returns `None` if its interface or address is absent.
    ///
    /// # Errors
    /// If the port is in use, or the system refuses.
    pub fn open_if_there(&self) -> Result<Option<PathSocket>, String> {
        match PathSocket::open(self, Some(MARK)) {
            Ok(socket) => Ok(Some(socket)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(format!("{}: {}", self.label, words(&error))),
        }
    }
}

#[cfg(test)]
impl Bind {
    /// Opens without a mark, which requires a capability that tests may lack.
    fn open_without_mark(&self) -> io::Result<PathSocket> {
        PathSocket::open(self, None)
    }
}

/// The socket of a path.
pub struct PathSocket {
    socket: UdpSocket,
    is_v6: bool,
    /// Destinations for which the kernel refused GSO.
    without_gso: BTreeSet<SocketAddr>,
    /// Refusals of datagrams, for the operator.
    failures: Failures,
    reports_errors: bool,
}

impl PathSocket {
    fn open(bind: &Bind, mark: Option<u32>) -> io::Result<Self> {
        let at = bind.address;
        let v4 = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), at.port());
        match Self::of(bind, at, mark) {
            // A kernel without IPv6 supports only IPv4.
            Err(error) if is_any(at) && is_without_v6(&error) => Self::of(bind, v4, mark),
            opened => opened,
        }
    }

    fn of(bind: &Bind, at: SocketAddr, mark: Option<u32>) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))?;
        if let Some(interface) = &bind.interface {
            socket.bind_device(Some(interface.as_bytes()))?;
        }
        // The mark keeps the tunnel's datagrams out of a default route into the tunnel.
        if let Some(mark) = mark {
            socket.set_mark(mark)?;
        }
        // Datagrams are not fragmented, and the kernel's path MTU is ignored (RFC 8899 §3).
        set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)?;
        if at.is_ipv6() {
            socket.set_only_v6(bind.only_v6)?;
            set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::PROBE)?;
        }
        // Beyond the system's limits with CAP_NET_ADMIN, and up to them without.
        if setsockopt(&socket, RcvBufForce, &BUFFER).is_err() {
            socket.set_recv_buffer_size(BUFFER)?;
        }
        if setsockopt(&socket, SndBufForce, &BUFFER).is_err() {
            socket.set_send_buffer_size(BUFFER)?;
        }
        socket.set_nonblocking(true)?;
        // Without timestamps, the wait for the processor counts as path delay; without GRO there
        // are more system calls.
        let _ = setsockopt(&socket, ReceiveTimestampns, &true);
        let _ = setsockopt(&socket, UdpGroSegment, &true);
        // Without these options ECN marks are not received. A socket of both families needs both
        // options.
        let _ = set_ip_recvtos(&socket, true);
        if at.is_ipv6() {
            let _ = set_ipv6_recvtclass(&socket, true);
        }
        if bind.reports_errors {
            failure::request_errors(socket.as_fd(), at.is_ipv6());
        }
        socket.bind(&at.into())?;
        Ok(Self {
            socket: socket.into(),
            is_v6: at.is_ipv6(),
            without_gso: BTreeSet::new(),
            failures: Failures::default(),
            reports_errors: bind.reports_errors,
        })
    }

    /// Receives one datagram, or several merged by the kernel.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        let mut slices = [IoSliceMut::new(buffer)];
        let mut control = [0; CONTROL];
        let received = recvmsg::<SockaddrStorage>(
            self.socket.as_raw_fd(),
            &mut slices,
            Some(&mut control),
            MsgFlags::empty(),
        )?;
        let from = received.address.as_ref().and_then(address);
        let from = from.ok_or(io::ErrorKind::InvalidData)?;
        let (length, mut segment, mut age) = (received.bytes, received.bytes, Duration::ZERO);
        let mut ecn = Ecn::NotEct;
        for message in received.cmsgs()? {
            match message {
                ControlMessageOwned::ScmTimestampns(stamp) => age = since(stamp),
                ControlMessageOwned::Ipv4Tos(class) => ecn = Ecn::from_bits(class),
                ControlMessageOwned::Ipv6TClass(class) => {
                    ecn = Ecn::from_bits(u8::try_from(class).unwrap_or(0));
                }
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
            ecn,
        })
    }

    /// Sends datagrams of one size; the last may be shorter. Returns the number that the kernel
    /// refused.
    pub fn send(&mut self, datagrams: &[u8], segment: usize, to: SocketAddr, marks: Marks) -> u64 {
        let count = datagrams.chunks(segment.max(1)).count() as u64;
        let is_many = count > 1 && !self.without_gso.contains(&to);
        if is_many {
            match self.send_again(datagrams, Some(segment), to, marks) {
                Ok(()) => return 0,
                Err(error) if is_refusal(error) => {}
                Err(error) => {
                    self.failures.on_error(to, error);
                    return count;
                }
            }
        }
        let mut failed = 0;
        for datagram in datagrams.chunks(segment.max(1)) {
            if let Err(error) = self.send_again(datagram, None, to, marks) {
                self.failures.on_error(to, error);
                failed += 1;
            }
        }
        // If one of them is too large by itself, GSO is not the cause.
        if is_many && failed == 0 {
            if self.without_gso.len() == DESTINATIONS {
                self.without_gso.clear();
            }
            self.without_gso.insert(to);
        }
        failed
    }

    /// The recent refusal of datagrams to an address.
    pub fn failure(&self, to: SocketAddr) -> Option<Failure> {
        self.failures.of(to)
    }

    /// Reads the ICMP messages about the socket's datagrams.
    pub fn read_errors(&mut self) {
        self.failures.read(self.socket.as_fd());
    }

    /// Sends, once more if a call may have failed because of an ICMP message about an earlier
    /// datagram: the kernel then reports that error once, and sends nothing.
    fn send_again(
        &self,
        octets: &[u8],
        segment: Option<usize>,
        to: SocketAddr,
        marks: Marks,
    ) -> nix::Result<()> {
        use nix::Error as E;
        match self.send_once(octets, segment, to, marks) {
            Err(error)
                if self.reports_errors
                    && ![E::EAGAIN, E::EPERM, E::EINVAL, E::ENOBUFS].contains(&error) =>
            {
                self.send_once(octets, segment, to, marks)
            }
            sent => sent,
        }
    }

    fn send_once(
        &self,
        octets: &[u8],
        segment: Option<usize>,
        to: SocketAddr,
        marks: Marks,
    ) -> nix::Result<()> {
        let (field, class) = (marks.ecn as u8, i32::from(marks.ecn as u8));
        let ecn = marks.ecn.is_capable().then_some(match to {
            SocketAddr::V4(_) => ControlMessage::Ipv4Tos(&field),
            SocketAddr::V6(_) => ControlMessage::Ipv6TClass(&class),
        });
        let to = match to {
            SocketAddr::V4(v4) if self.is_v6 => {
                SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port())
            }
            other => other,
        };
        let segment = segment.map(u16::try_from).transpose();
        let segment = segment.map_err(|_| nix::Error::EMSGSIZE)?;
        let segment = segment.as_ref().map(ControlMessage::UdpGsoSegments);
        let flags = if marks.is_confirmed {
            MsgFlags::from_bits_retain(libc::MSG_CONFIRM)
        } else {
            MsgFlags::empty()
        };
        match (segment, ecn) {
            (Some(segment), Some(ecn)) => self.send_with(octets, &[segment, ecn], flags, to),
            (segment, ecn) => self.send_with(octets, segment.or(ecn).as_slice(), flags, to),
        }
    }

    fn send_with(
        &self,
        octets: &[u8],
        control: &[ControlMessage<'_>],
        flags: MsgFlags,
        to: SocketAddr,
    ) -> nix::Result<()> {
        sendmsg(
            self.socket.as_raw_fd(),
            &[IoSlice::new(octets)],
            control,
            flags,
            Some(&SockaddrStorage::from(to)),
        )
        .map(drop)
    }
}

impl AsFd for PathSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

pub fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage
        .as_sockaddr_in()
        .map(|v4| SocketAddr::V4((*v4).into()));
    v4.or_else(|| {
        storage
            .as_sockaddr_in6()
            .map(|v6| SocketAddr::V6((*v6).into()))
    })
}

/// The age of a timestamp of the system's clock.
fn since(stamp: TimeSpec) -> Duration {
    let stamp = Duration::new(
        u64::try_from(stamp.tv_sec()).unwrap_or(0),
        u32::try_from(stamp.tv_nsec()).unwrap_or(0),
    );
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap_or_default().saturating_sub(stamp).min(OLDEST)
}

/// The IPv4 address, if an IPv6 socket reports it as a mapped one.
pub fn unmapped(from: SocketAddr) -> SocketAddr {
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

/// Whether the kernel, or the interface's driver, cannot split merged datagrams.
fn is_refusal(error: nix::Error) -> bool {
    use nix::Error as E;
    [E::EMSGSIZE, E::EINVAL, E::EIO, E::EOPNOTSUPP].contains(&error)
}

/// Whether the interface or the address is absent.
fn is_absent(error: &io::Error) -> bool {
    is_one_of(error, &[Errno::NODEV, Errno::ADDRNOTAVAIL])
}

fn is_one_of(error: &io::Error, codes: &[Errno]) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    code.is_some_and(|code| codes.contains(&code))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use anabranch_core::packet::Ecn;

    use super::{Bind, Marks, PathSocket, unmapped};

    fn sockets() -> (PathSocket, UdpSocket) {
        let bind = Bind {
            label: String::new(),
            interface: None,
            address: "127.0.0.1:0".parse().expect("an address"),
            only_v6: false,
            reports_errors: true,
        };
        let socket = bind.open_without_mark().expect("loopback is there");
        (socket, UdpSocket::bind("127.0.0.1:0").expect("it is free"))
    }

    /// An oversized datagram, as a path MTU probe may be, must cost the others neither delivery nor
    /// GSO.
    #[test]
    fn a_batch_with_an_oversized_datagram_delivers_the_others() {
        let (mut socket, there) = sockets();
        let to = there.local_addr().expect("it is bound");
        let larger = vec![8; 65_520];
        assert_eq!(socket.send(&larger, 65_510, to, Marks::default()), 1);
        assert!(!socket.without_gso.contains(&to));
        assert_eq!(there.recv(&mut [0; 100]).expect("it comes"), 10);
    }

    #[test]
    fn datagrams_of_one_size_arrive_separately() {
        let (mut socket, there) = sockets();
        let to = there.local_addr().expect("it is bound");
        let octets: Vec<u8> = (0..250).collect();
        assert_eq!(socket.send(&octets, 100, to, Marks::default()), 0);
        let mut buffer = [0; 1_000];
        for part in octets.chunks(100) {
            let length = there.recv(&mut buffer).expect("it comes");
            assert_eq!(&buffer[..length], part);
        }
    }

    /// The datagrams of 50 ms at 300 Mbit/s wait for a gateway that has no processor.
    #[test]
    fn a_burst_waits_in_the_kernel() {
        const COUNT: usize = 1_300;
        let (socket, there) = sockets();
        if super::setsockopt(&there, super::RcvBufForce, &super::BUFFER).is_err() {
            eprintln!("SKIPPED: CAP_NET_ADMIN is needed");
            return;
        }
        let to = socket.socket.local_addr().expect("it is bound");
        for _ in 0..COUNT {
            there.send_to(&[1; 1_472], to).expect("it is sent");
        }
        let mut buffer = vec![0; 1 << 16];
        let mut octets = 0;
        while let Ok(received) = socket.receive(&mut buffer) {
            octets += received.length;
        }
        assert_eq!(octets, COUNT * 1_472);
    }

    #[test]
    fn merged_datagrams_have_their_sizes_and_an_age() {
        let (socket, there) = sockets();
        let to = socket.socket.local_addr().expect("it is bound");
        let receive = || {
            there.send_to(&[1; 100], to).expect("it is sent");
            std::thread::sleep(std::time::Duration::from_millis(20));
            let received = socket.receive(&mut [0; 1_000]).expect("it is there");
            assert_eq!((received.length, received.segment), (100, 100));
            received.age.as_millis()
        };
        // The kernel begins to add timestamps shortly after the first socket has requested them.
        assert!((0..100).any(|_| receive() >= 20));
    }

    #[test]
    fn datagrams_keep_their_ecn_field() {
        let [(mut here, _), (there, _)] = [sockets(), sockets()];
        let to = there.socket.local_addr().expect("it is bound");
        for ecn in [Ecn::Ect0, Ecn::NotEct, Ecn::Ce, Ecn::Ect1] {
            let is_confirmed = ecn == Ecn::Ce;
            let marks = Marks {
                ecn,
                is_confirmed,
                ..Marks::default()
            };
            for count in [1, 3] {
                assert_eq!(here.send(&vec![1; count * 100], 100, to, marks), 0);
                let mut length = 0;
                while length < count * 100 {
                    let received = there.receive(&mut [0; 1_000]).expect("it is there");
                    assert_eq!(received.ecn, ecn);
                    length += received.length;
                }
            }
        }
    }

    #[test]
    fn mapped_addresses_are_shown_as_ipv4() {
        let shown = |text: &str| unmapped(text.parse().expect("an address")).to_string();
        assert_eq!(shown("[::ffff:192.0.2.1]:9"), "192.0.2.1:9");
        assert_eq!(shown("[2001:db8::1]:9"), "[2001:db8::1]:9");
        assert_eq!(shown("192.0.2.1:9"), "192.0.2.1:9");
    }
}
