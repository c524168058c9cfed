//! Refusals of a path's datagrams: by the kernel, and by routers, whose ICMP messages the kernel
//! keeps in the socket's error queue (`IP_RECVERR` of ip(7)).

use std::{
    collections::BTreeMap,
    io::IoSliceMut,
    net::{IpAddr, SocketAddr},
    os::fd::{AsRawFd, BorrowedFd},
    time::{Duration, Instant},
};

use nix::{
    libc,
    sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt},
};

/// The time for which a refusal counts. Silent paths are probed several times a second, but routers
/// limit their messages.
const AGE: Duration = Duration::from_secs(5);
/// The most destinations whose refusals are remembered.
const DESTINATIONS: usize = 64;
/// The most messages that are read in one turn.
const MESSAGES: usize = 256;
/// Octets of control messages with an error: the error, an address, and the options of datagrams.
const CONTROL: usize = 256;

/// The reason why a datagram was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The kernel did not send it because a rule of the local firewall forbids it.
    Firewall,
    /// A router forbids it.
    Prohibited(IpAddr),
    /// A router has no way to the address, or its next hop does not answer.
    Unreachable(IpAddr),
    /// The other end's host has no socket at this port.
    PortClosed(IpAddr),
}

impl Failure {
    /// The failure in an ICMP message (RFC 792, RFC 1812 §5.2.7.1, RFC 4443 §3.1).
    fn of(error: &libc::sock_extended_err, from: IpAddr) -> Option<Self> {
        match (error.ee_origin, error.ee_type, error.ee_code) {
            (libc::SO_EE_ORIGIN_ICMP, 3, 9 | 10 | 13)
            | (libc::SO_EE_ORIGIN_ICMP6, 1, 1 | 5 | 6) => Some(Self::Prohibited(from)),
            (libc::SO_EE_ORIGIN_ICMP, 3, 3) | (libc::SO_EE_ORIGIN_ICMP6, 1, 4) => {
                Some(Self::PortClosed(from))
            }
            // Fragmentation needed is no failure: the path's MTU is probed.
            (libc::SO_EE_ORIGIN_ICMP, 3, code) if code != 4 => Some(Self::Unreachable(from)),
            (libc::SO_EE_ORIGIN_ICMP, 11, _) | (libc::SO_EE_ORIGIN_ICMP6, 1 | 3, _) => {
                Some(Self::Unreachable(from))
            }
            _ => None,
        }
    }
}

/// The newest refusal of each destination of a socket.
#[derive(Debug, Default)]
pub struct Failures(BTreeMap<SocketAddr, (Failure, Instant)>);

impl Failures {
    /// The refusal of datagrams to an address, if it is recent.
    pub fn of(&self, to: SocketAddr) -> Option<Failure> {
        let (failure, at) = self.0.get(&to)?;
        (at.elapsed() < AGE).then_some(*failure)
    }

    fn add(&mut self, to: SocketAddr, failure: Failure) {
        if self.0.len() >= DESTINATIONS && !self.0.contains_key(&to) {
            self.0.retain(|_, (_, at)| at.elapsed() < AGE);
        }
        if self.0.len() < DESTINATIONS {
            self.0.insert(to, (failure, Instant::now()));
        }
    }

    /// Records an error of sendmsg.
    pub fn on_error(&mut self, to: SocketAddr, error: nix::Error) {
        if error == nix::Error::EPERM {
            self.add(to, Failure::Firewall);
        }
    }

    /// Reads the socket's error queue, which would keep it readable.
    pub fn read(&mut self, socket: BorrowedFd<'_>) {
        for _ in 0..MESSAGES {
            let mut octets = [0; 1];
            let mut slices = [IoSliceMut::new(&mut octets)];
            let mut control = [0; CONTROL];
            let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
            let message = recvmsg::<SockaddrStorage>(
                socket.as_raw_fd(),
                &mut slices,
                Some(&mut control),
                flags,
            );
            let Ok(message) = message else { return };
            let to = message.address.as_ref().and_then(super::socket::address);
            let (Some(to), Ok(controls)) = (to, message.cmsgs()) else {
                continue;
            };
            for control in controls {
                let (error, from) = match control {
                    ControlMessageOwned::Ipv4RecvErr(error, Some(from)) => {
                        let from = u32::from_be(from.sin_addr.s_addr);
                        (error, IpAddr::from(from.to_be_bytes()))
                    }
                    ControlMessageOwned::Ipv6RecvErr(error, Some(from)) => {
                        (error, IpAddr::from(from.sin6_addr.s6_addr).to_canonical())
                    }
                    _ => continue,
                };
                if let Some(failure) = Failure::of(&error, from) {
                    self.add(super::socket::unmapped(to), failure);
                }
            }
        }
    }
}

/// Has the kernel keep ICMP messages about the socket's datagrams. A kernel that refuses only costs
/// the operator the reason.
pub fn request_errors(socket: BorrowedFd<'_>, is_v6: bool) {
    let _ = setsockopt(&socket, sockopt::Ipv4RecvErr, &true);
    if is_v6 {
        let _ = setsockopt(&socket, sockopt::Ipv6RecvErr, &true);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};

    use nix::libc;

    use super::{DESTINATIONS, Failure, Failures};

    const ROUTER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    #[test]
    fn icmp_messages_have_their_meaning() {
        let failure = |ee_origin, ee_type, ee_code| {
            let error = libc::sock_extended_err {
                ee_errno: 0,
                ee_origin,
                ee_type,
                ee_code,
                ee_pad: 0,
                ee_info: 0,
                ee_data: 0,
            };
            Failure::of(&error, ROUTER)
        };
        let (v4, v6) = (libc::SO_EE_ORIGIN_ICMP, libc::SO_EE_ORIGIN_ICMP6);
        assert_eq!(failure(v4, 3, 13), Some(Failure::Prohibited(ROUTER)));
        assert_eq!(failure(v6, 1, 1), Some(Failure::Prohibited(ROUTER)));
        assert_eq!(failure(v4, 3, 3), Some(Failure::PortClosed(ROUTER)));
        assert_eq!(failure(v6, 1, 4), Some(Failure::PortClosed(ROUTER)));
        assert_eq!(failure(v4, 3, 0), Some(Failure::Unreachable(ROUTER)));
        assert_eq!(failure(v6, 1, 0), Some(Failure::Unreachable(ROUTER)));
        for (origin, kind, code) in [(v4, 3, 4), (v6, 2, 0), (libc::SO_EE_ORIGIN_LOCAL, 0, 0)] {
            assert_eq!(failure(origin, kind, code), None);
        }
    }

    #[test]
    fn remembered_destinations_are_bounded() {
        let mut failures = Failures::default();
        for port in 1..=2 * DESTINATIONS as u16 {
            failures.add(SocketAddr::new(ROUTER, port), Failure::Firewall);
        }
        assert_eq!(failures.0.len(), DESTINATIONS);
        let known = SocketAddr::new(ROUTER, 1);
        assert_eq!(failures.of(known), Some(Failure::Firewall));
    }
}
