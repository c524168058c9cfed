//! The bytes of a file, with record separators (RFC 7464) as white space.

use std::{
    cell::Cell,
    io::{self, Read},
    rc::Rc,
};

/// Maximum number of bytes of one event. A text of this length is stored while it is read.
const LONGEST: u64 = 16 << 20;
/// Bytes between two calls of `stop`.
const PULSE: u64 = 64 << 10;

const SEPARATOR: u8 = 0x1e;

/// Whether a file that begins like this may be a qlog: an object of JSON, or a record of a JSON
/// text sequence.
#[must_use]
pub fn is_qlog(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut octets = head.iter().filter(|octet| !octet.is_ascii_whitespace());
    matches!(octets.next(), Some(b'{' | &SEPARATOR))
}

/// Counts shared with the consumer of the bytes.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Bytes since the last event.
    pub(crate) since: Cell<u64>,
    pub(crate) is_interrupted: Cell<bool>,
    pub(crate) is_too_long: Cell<bool>,
}

/// The bytes of a file.
pub(crate) struct Input<R, S> {
    file: R,
    stop: S,
    read: u64,
    is_first: bool,
    progress: Rc<Progress>,
}

impl<R: Read, S: Fn() -> bool> Input<R, S> {
    pub(crate) fn new(file: R, stop: S, progress: &Rc<Progress>) -> Self {
        Self {
            file,
            stop,
            read: 0,
            is_first: true,
            progress: Rc::clone(progress),
        }
    }
}

impl<R: Read, S: Fn() -> bool> Read for Input<R, S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let pulses = |read: u64| read / PULSE;
        if self.read == 0 || pulses(self.read) != pulses(self.read + into.len() as u64) {
            self.progress.is_interrupted.set((self.stop)());
            if self.progress.is_interrupted.get() {
                return Err(io::ErrorKind::Other.into());
            }
        }
        let since = self.progress.since.get();
        if since > LONGEST {
            self.progress.is_too_long.set(true);
            return Err(io::ErrorKind::Other.into());
        }
        let read = self.file.read(into)?;
        self.read += read as u64;
        self.progress.since.set(since + read as u64);
        let octets = &mut into[..read];
        if self.is_first && octets.starts_with(b"\xef\xbb\xbf") {
            octets[..3].fill(b' ');
        }
        self.is_first = false;
        for octet in octets.iter_mut().filter(|octet| **octet == SEPARATOR) {
            *octet = b' ';
        }
        Ok(read)
    }
}
