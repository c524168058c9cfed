//! Devices that exchange packets with hosts. Implementations other than TUN are possible through
//! [`Device`].

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
};

use anabranch_core::packet::{Direction, FlowId};
use rustix::io::Errno;

use crate::kernel::{
    namespace::Namespace,
    sys::{
        interface::{self, Offloads},
        packet,
    },
};

/// Packets that a device has lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drops {
    /// From the host to the engine.
    pub from_host: u64,
    /// From the engine to the host.
    pub to_host: u64,
}

/// Packets that a device has passed on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    /// From the host to the engine.
    pub from_host: u64,
    /// From the engine to the host.
    pub to_host: u64,
}

/// A host's link to the engine.
pub trait Device: std::fmt::Debug + Send + Sync {
    /// Sends a packet of this flow and direction to the host.
    fn send(&self, packet: &[u8], of: (FlowId, Direction)) -> io::Result<()>;
    /// Receives a packet from the host: its length, or `None` if there is none now.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>>;
    /// The descriptor to wait on.
    fn descriptor(&self) -> BorrowedFd<'_>;
    /// Packets lost between the device and the kernel.
    fn drops(&self) -> io::Result<Drops>;
    /// Packets that passed, if the kernel counts packets of this device separately.
    fn passed(&self) -> io::Result<Option<Passed>> {
        Ok(None)
    }
    /// Offloads on the host's side of the device.
    fn offloads(&self) -> io::Result<Offloads>;
    /// Octets before the IP packet.
    fn header(&self) -> usize {
        0
    }
}

/// A TUN device.
#[derive(Debug, Clone)]
pub struct Tun {
    file: Arc<File>,
    namespace: Namespace,
    name: Arc<str>,
}

impl Tun {
    pub fn new(file: File, namespace: Namespace, name: &str) -> Self {
        Self {
            file: Arc::new(file),
            namespace,
            name: name.into(),
        }
    }
}

impl Device for Tun {
    fn send(&self, packet: &[u8], _of: (FlowId, Direction)) -> io::Result<()> {
        (&*self.file).write(packet).map(drop)
    }
    fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&*self.file).read(buffer) {
            Ok(len) => Ok(Some(len)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
    fn drops(&self) -> io::Result<Drops> {
        Ok(self.namespace.device_counters(&self.name)?.1)
    }
    fn passed(&self) -> io::Result<Option<Passed>> {
        Ok(Some(self.namespace.device_counters(&self.name)?.0))
    }
    fn offloads(&self) -> io::Result<Offloads> {
        self.namespace.device_offloads(&self.name)
    }
}

/// Octets of an Ethernet header without tags.
const ETHERNET: usize = 14;

/// An interface of the machine: a packet socket receives every frame that arrives at it. Its
/// configuration is not changed.
#[derive(Debug)]
pub struct Interface {
    name: String,
    socket: OwnedFd,
}

impl Interface {
    /// # Errors
    /// If there is no interface of this name, or if this process may not open it.
    pub fn new(name: &str) -> io::Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            socket: packet::open(name)?,
        })
    }
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The identity of the interface, independent of its name.
    pub fn identity(&self) -> io::Result<interface::Identity> {
        interface::Interface::new(&self.name)?.identity()
    }
}

impl Device for Interface {
    fn send(&self, frame: &[u8], _of: (FlowId, Direction)) -> io::Result<()> {
        Ok(rustix::io::write(&self.socket, frame).map(drop)?)
    }
    fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.socket, buffer) {
            Ok(len) => Ok(Some(len)),
            // An interface that is down sends nothing.
            Err(Errno::WOULDBLOCK | Errno::NETDOWN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
    fn drops(&self) -> io::Result<Drops> {
        Ok(Drops {
            from_host: packet::drops(&self.socket)?,
            to_host: 0,
        })
    }
    fn offloads(&self) -> io::Result<Offloads> {
        Ok(interface::Interface::new(&self.name)?.offloads())
    }
    fn header(&self) -> usize {
        packet::OFFLOAD_HEADER + ETHERNET
    }
}
