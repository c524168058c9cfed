//! The decompressed bytes of a capture, in a buffer of fixed size.

use std::{
    cell::Cell,
    io::{ErrorKind, Read},
    ops::Range,
    rc::Rc,
};

use crate::{
    Error,
    compression::{Compression, Decompressed},
    limits::Limits,
};

/// Longest record part that is examined as a whole: the beginning of a packet, or the header of an
/// interface.
pub(crate) const LONGEST: usize = 256 << 10;

/// Bytes per read; `stop` is polled before each read.
const CHUNK: usize = 64 << 10;

/// Decompressed bytes that are exempt from the expansion limit: reading them takes less than a
/// second.
const FREE: u64 = 32 << 20;

/// Bytes that come from a file, in order.
pub(crate) struct Bytes<'a> {
    file: Box<dyn Read + 'a>,
    compression: Compression,
    trailing: Rc<Cell<u64>>,
    buffer: Vec<u8>,
    /// Bytes in the buffer that are not consumed yet.
    ahead: Range<usize>,
    /// Decompressed bytes read, compressed bytes read, and the limits on both.
    read: u64,
    compressed: Rc<Cell<u64>>,
    limits: Limits,
    stop: Box<dyn Fn() -> bool + 'a>,
    /// The file has ended, or its compressed form is cut off.
    ended: bool,
    /// The compressed form is cut off.
    pub(crate) is_cut_off: bool,
}

/// Reasons why the file cannot be read further.
pub(crate) enum Failure {
    Damaged(&'static str),
    TooLarge(u64),
    Expands(u64),
    System(String),
    Interrupted,
}

impl Failure {
    /// Converts to the reader's error; `after` is the number of packets before the failure.
    pub(crate) fn after(self, after: u64) -> Error {
        match self {
            Self::Damaged(format) => Error::Compression { after, format },
            Self::TooLarge(most) => Error::TooLarge { most },
            Self::Expands(times) => Error::Expands { after, times },
            Self::System(why) => Error::System(why),
            Self::Interrupted => Error::Interrupted,
        }
    }
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(file: impl Read + 'a, limits: Limits) -> Result<Self, Failure> {
        let Decompressed {
            compression,
            compressed,
            trailing,
            content,
        } = crate::compression::decompressed(file)
            .map_err(|error| Failure::System(error.to_string()))?;
        Ok(Self {
            file: content,
            compression,
            trailing,
            buffer: vec![0; LONGEST + CHUNK],
            ahead: 0..0,
            read: 0,
            compressed,
            limits,
            stop: Box::new(|| false),
            ended: false,
            is_cut_off: false,
        })
    }

    pub(crate) fn stop(&mut self, stop: impl Fn() -> bool + 'a) {
        self.stop = Box::new(stop);
    }

    /// Number of bytes after the compressed data. Valid once it has been read to its end.
    pub(crate) fn trailing(&self) -> u64 {
        self.trailing.get()
    }

    /// Returns the next `count` bytes without consuming them; fewer at the end of the file. `count`
    /// is at most [`LONGEST`].
    #[inline]
    pub(crate) fn peek(&mut self, count: usize) -> Result<&[u8], Failure> {
        debug_assert!(count <= LONGEST, "the buffer holds no more");
        while self.ahead.len() < count && !self.ended {
            self.fill()?;
        }
        let end = self.ahead.end.min(self.ahead.start + count);
        Ok(&self.buffer[self.ahead.start..end])
    }

    /// Consumes `count` bytes and returns their range in the buffer; `None` if fewer are left. The
    /// range is valid until the next read.
    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<Option<Range<usize>>, Failure> {
        if self.peek(count)?.len() < count {
            return Ok(None);
        }
        let start = self.ahead.start;
        self.ahead.start += count;
        Ok(Some(start..start + count))
    }

    /// Bytes in the buffer.
    pub(crate) fn ahead(&self) -> usize {
        self.ahead.len()
    }

    /// Consumes `count` bytes. Returns false if the file has fewer.
    pub(crate) fn skip(&mut self, mut count: u64) -> Result<bool, Failure> {
        while count > 0 {
            let part = usize::try_from(count).unwrap_or(LONGEST).min(LONGEST);
            let there = self.peek(part)?.len();
            if there == 0 {
                return Ok(false);
            }
            self.ahead.start += there;
            count -= there as u64;
        }
        Ok(true)
    }

    /// Returns the bytes of a range from [`Self::take`].
    pub(crate) fn at(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    #[inline(never)]
    fn fill(&mut self) -> Result<(), Failure> {
        if (self.stop)() {
            return Err(Failure::Interrupted);
        }
        // Makes room only when less than a chunk is free: a decompressor may return one byte per
        // read, and bytes already at the front must not be moved at each of them.
        if self.buffer.len() - self.ahead.end < CHUNK && self.ahead.start > 0 {
            self.buffer.copy_within(self.ahead.clone(), 0);
            self.ahead = 0..self.ahead.len();
        }
        let end = self.ahead.end;
        let most = self.buffer.len().min(end + CHUNK);
        let read = match self.file.read(&mut self.buffer[end..most]) {
            Ok(0) => {
                self.ended = true;
                0
            }
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(error) if self.compression == Compression::None => {
                return Err(Failure::System(error.to_string()));
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                self.ended = true;
                self.is_cut_off = true;
                0
            }
            Err(_) => return Err(Failure::Damaged(self.compression.name())),
        };
        self.ahead.end += read;
        self.read += read as u64;
        if self.read > self.limits.bytes {
            return Err(Failure::TooLarge(self.limits.bytes));
        }
        if self.compression != Compression::None {
            let times = self.limits.expansion;
            let most = self.compressed.get().saturating_mul(times);
            if self.read > most.max(FREE) {
                return Err(Failure::Expands(times));
            }
        }
        Ok(())
    }
}
