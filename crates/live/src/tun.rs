//! Where packets come from and go to. Other ways to move them than TUN devices fit behind [`Device`].

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
};

/// A host's link to the engine.
pub trait Device: std::fmt::Debug + Send + Sync {
    /// Gives a packet to the host.
    fn send(&self, packet: &[u8]) -> io::Result<()>;
    /// Takes a packet from the host: its length, or `None` if there is none now.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>>;
    /// What to wait on.
    fn descriptor(&self) -> BorrowedFd<'_>;
}

/// A TUN device.
#[derive(Debug, Clone)]
pub struct Tun {
    file: Arc<File>,
}

impl Tun {
    pub fn new(file: File) -> Self {
        Self {
            file: Arc::new(file),
        }
    }
}

impl Device for Tun {
    fn send(&self, packet: &[u8]) -> io::Result<()> {
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
}
