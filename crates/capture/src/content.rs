//! The content of any file, decompressed, within the limits on its size.

use std::io::{self, Read};

use crate::{
    Error,
    bytes::{Bytes, Failure, LONGEST},
    limits::Limits,
};

/// The content of a file that may be compressed with gzip or zstd.
pub struct Content<'a> {
    bytes: Bytes<'a>,
}

impl<'a> Content<'a> {
    /// Reads the beginning of a file. `stop` is polled every 64 KiB; reading ends once it returns
    /// true.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(
        file: impl Read + 'a,
        limits: Limits,
        stop: impl Fn() -> bool + 'a,
    ) -> io::Result<Self> {
        let mut bytes = Bytes::new(file, limits).map_err(|failure| error(&failure))?;
        bytes.stop(stop);
        Ok(Self { bytes })
    }

    /// Reads until `into` is full or the file ends. Returns the number of bytes read.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read_up_to(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        loop {
            match self.read(&mut into[done..])? {
                0 => return Ok(done),
                read => done += read,
            }
        }
    }
}

impl Read for Content<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = into.len().min(LONGEST);
        let there = if count == 0 {
            0
        } else {
            let there = self.bytes.peek(1).map_err(|failure| error(&failure))?.len();
            there.min(1)
        };
        if there == 0 {
            return Ok(0);
        }
        let count = count.min(self.bytes.ahead());
        let range = self.bytes.take(count).map_err(|failure| error(&failure))?;
        let range = range.unwrap_or_default();
        into[..range.len()].copy_from_slice(self.bytes.at(range.clone()));
        Ok(range.len())
    }
}

/// The failure in words, without a count of packets.
fn error(failure: &Failure) -> io::Error {
    io::Error::other(match failure {
        Failure::Damaged(format) => format!("it cannot be decompressed ({format})"),
        Failure::Expands(times) => {
            format!("it expands to more than {times} times its compressed size")
        }
        Failure::TooLarge(most) => Error::TooLarge { most: *most }.to_string(),
        Failure::System(why) => why.clone(),
        Failure::Interrupted => "reading was interrupted".to_owned(),
    })
}
