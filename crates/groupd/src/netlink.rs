//! Requests to the kernel by rtnetlink(7): interfaces, counters, queues and filters.

pub mod attributes;
mod filter;
mod link;

use std::io;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use rustix::io::Errno;

pub use link::{BondLink, Link, Options, Totals};

use attributes::{number_u16, number_u32};

const REQUEST: u16 = 1;
const ACK: u16 = 4;
/// Without this flag, the kernel answers a request for a queue to the listeners of its group only.
const ECHO: u16 = 8;
const DUMP: u16 = 0x300;
const CREATE: u16 = 0x400;
const EXCLUSIVE: u16 = 0x200;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const HEADER: usize = 16;

/// An answer: its type, and its octets after the header.
type Answer = (u16, Vec<u8>);

/// A socket for requests.
pub struct Netlink {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

/// Size of the largest datagram of a list: the kernel's limit is 32 KiB.
const DATAGRAM: usize = 64 << 10;

impl Netlink {
    /// Opens a socket.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn new() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self {
            socket,
            sequence: 0,
            buffer: Vec::with_capacity(DATAGRAM),
        })
    }

    fn send(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let length = u32::try_from(HEADER + body.len()).map_err(io::Error::other)?;
        let mut octets = length.to_ne_bytes().to_vec();
        octets.extend(kind.to_ne_bytes());
        octets.extend((REQUEST | flags).to_ne_bytes());
        octets.extend(self.sequence.to_ne_bytes());
        octets.extend(0_u32.to_ne_bytes());
        octets.extend(body);
        self.socket.send(&octets, 0).map(drop)
    }

    /// Sends a request for a change.
    fn change(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        self.send(kind, ACK | flags, body)?;
        self.answers(false).map(drop)
    }

    /// Sends a request for one item.
    fn get(&mut self, kind: u16, body: &[u8]) -> io::Result<Vec<u8>> {
        self.send(kind, 0, body)?;
        let first = self.answers(false)?.into_iter().next();
        first
            .map(|(_, octets)| octets)
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Sends a request for one item that the kernel may leave out.
    fn get_if_any(&mut self, kind: u16, body: &[u8]) -> io::Result<Option<Vec<u8>>> {
        self.send(kind, ACK | ECHO, body)?;
        let first = self.answers(true)?.into_iter().next();
        Ok(first.map(|(_, octets)| octets))
    }

    /// Sends a request for a list.
    fn list(&mut self, kind: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        self.send(kind, DUMP, body)?;
        let answers = self.answers(true)?;
        Ok(answers.into_iter().map(|(_, octets)| octets).collect())
    }

    /// Receives the answers to the last request, up to the message that ends them if there is one.
    fn answers(&mut self, has_end: bool) -> io::Result<Vec<Answer>> {
        let mut found = Vec::new();
        loop {
            self.buffer.clear();
            self.socket.recv(&mut self.buffer, 0)?;
            for (sequence, kind, body) in messages(&self.buffer) {
                if sequence != self.sequence {
                    continue;
                }
                match kind {
                    ERROR => {
                        let code = number_u32(body).unwrap_or(0).cast_signed();
                        if code != 0 {
                            return Err(io::Error::from_raw_os_error(-code));
                        }
                        return Ok(found);
                    }
                    DONE => return Ok(found),
                    kind => found.push((kind, body.to_vec())),
                }
            }
            if !has_end && !found.is_empty() {
                return Ok(found);
            }
        }
    }
}

/// The item, or `None` if there is no such interface.
///
/// # Errors
/// All others.
pub fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(item) => Ok(Some(item)),
        Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The messages in a datagram: sequence number, type and octets after the header.
fn messages(octets: &[u8]) -> impl Iterator<Item = (u32, u16, &[u8])> {
    let mut rest = octets;
    std::iter::from_fn(move || {
        let length = usize::try_from(number_u32(rest)?).ok()?;
        let kind = number_u16(rest.get(4..)?)?;
        let sequence = number_u32(rest.get(8..)?)?;
        let body = rest.get(HEADER..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((sequence, kind, body))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::messages;

    proptest! {
        #[test]
        fn any_datagram_is_read_without_a_panic(octets in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(messages(&octets).count() <= octets.len() / 16 + 1);
        }
    }
}
