//! Interfaces, their carriers and addresses, and a socket that becomes readable when these change.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::IpAddr,
    os::fd::{AsFd, BorrowedFd},
};

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::{ifaddrs::getifaddrs, net::if_::InterfaceFlags};
use rustix::io::Errno;

/// Multicast groups for changes of links and of addresses of both families (rtnetlink(7)).
const GROUPS: u32 = 0x1 | 0x10 | 0x100;

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Link {
    /// The interface index, which differs after the interface was deleted and created again.
    pub index: usize,
    /// Whether it is set up.
    pub is_up: bool,
    /// Whether it is up and has its carrier.
    pub is_running: bool,
    /// Its addresses.
    pub addresses: BTreeSet<IpAddr>,
}

/// The interfaces by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Links(pub BTreeMap<String, Link>);

impl Links {
    /// The interfaces as they are now.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn now() -> io::Result<Self> {
        let mut links = Self::default();
        for entry in getifaddrs()? {
            let link = links.0.entry(entry.interface_name).or_default();
            // The kernel clears IFF_RUNNING up to a second after IFF_LOWER_UP, and sets it only
            // when it sends again.
            let running =
                InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING | InterfaceFlags::IFF_LOWER_UP;
            link.is_running = entry.flags.contains(running);
            link.is_up = entry.flags.contains(InterfaceFlags::IFF_UP);
            let Some(address) = entry.address else {
                continue;
            };
            if let Some(hardware) = address.as_link_addr() {
                link.index = hardware.ifindex();
            }
            let v4 = address.as_sockaddr_in().map(|v4| IpAddr::from(v4.ip()));
            let v6 = address.as_sockaddr_in6().map(|v6| IpAddr::from(v6.ip()));
            link.addresses.extend(v4.or(v6));
        }
        Ok(links)
    }

    /// The interface that has an address.
    pub fn with(&self, address: IpAddr) -> Option<&Link> {
        let mut links = self.0.values();
        links.find(|link| link.addresses.contains(&address))
    }
}

/// A socket that becomes readable when an interface or an address changes. Changes are found by a
/// comparison of [`Links`], so that a lost notification has no effect after a later one.
pub struct Watch(Socket);

impl Watch {
    /// Starts to watch.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn new() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, GROUPS))?;
        socket.set_non_blocking(true)?;
        Ok(Self(socket))
    }

    /// Discards the notifications.
    pub fn drain(&self) {
        let mut buffer = Vec::with_capacity(1 << 14);
        loop {
            buffer.clear();
            match self.0.recv(&mut buffer, 0) {
                Ok(_) => {}
                // Notifications were lost; the comparison finds the changes.
                Err(error) if error.raw_os_error() == Some(Errno::NOBUFS.raw_os_error()) => {}
                Err(_) => return,
            }
        }
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
