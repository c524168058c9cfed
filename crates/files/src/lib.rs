//! Opens the files that a scenario names: only regular files, up to a size limit, interruptible.
//! Writes new files atomically.
//!
//! A FIFO waits for a writer, `/dev/zero` never ends, `/proc/kmsg` waits for the next message of
//! the kernel, and a file of `/proc` reports a size of 0. None of them may block a run or consume
//! unlimited memory.
#![forbid(unsafe_code)]

mod output;

pub use output::{OutputError, write_new};

use std::{
    fmt,
    fs::File,
    io::{self, ErrorKind, Read},
    path::Path,
    sync::Arc,
};

use anabranch_core::system;
use rustix::fs::{FileType, Mode, OFlags, fstat, open, stat};

/// Bytes read between two checks for a stop: a regular file delivers them in a millisecond.
const CHUNK: usize = 256 << 10;

/// The reason why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is a directory, a FIFO, a device or a socket.
    #[error("it is {0}; a regular file was expected")]
    Kind(&'static str),
    /// The file is larger than its use permits.
    #[error("it has more than {} bytes, the most for this use", grouped(*.0))]
    TooLarge(u64),
    /// The file claims to be regular, but waits for events (`/proc/kmsg`, `trace_pipe`).
    #[error("it waits for events instead of ending; a regular file was expected")]
    Waits,
    /// A guard rejected it.
    #[error("{0}")]
    Refused(String),
    /// The run is to stop.
    #[error("reading was interrupted")]
    Interrupted,
    /// The system's reason.
    #[error("{}", system::words(.0))]
    System(#[from] io::Error),
}

type Guard = Arc<dyn Fn(&Path) -> Result<(), String> + Send + Sync>;
type Stop = Arc<dyn Fn() -> bool + Send + Sync>;

/// Reads files, subject to guards and a stop condition.
#[derive(Clone, Default)]
pub struct Files {
    guards: Vec<Guard>,
    stop: Option<Stop>,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guards = self.guards.len();
        f.debug_struct("Files")
            .field("guards", &guards)
            .finish_non_exhaustive()
    }
}

impl Files {
    /// Calls `guard` with each path before the file is opened. It may record the path, or reject it
    /// with a reason.
    #[must_use]
    pub fn guard(
        mut self,
        guard: impl Fn(&Path) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.guards.push(Arc::new(guard));
        self
    }

    /// Calls `stop` between chunks; reading ends if it returns true.
    #[must_use]
    pub fn stop(mut self, stop: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.stop = Some(Arc::new(stop));
        self
    }

    /// Whether the run is to stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop())
    }

    /// Opens a regular file for incremental reading; symbolic links are followed.
    ///
    /// # Errors
    /// If it is not a regular file, is rejected by a guard, or cannot be opened.
    pub fn open(&self, path: &Path) -> Result<File, Error> {
        for guard in &self.guards {
            guard(path).map_err(Error::Refused)?;
        }
        Ok(open_regular(path)?.0)
    }

    /// The content of a regular file of at most `most` bytes; symbolic links are followed.
    ///
    /// # Errors
    /// If it is not a regular file, is larger, is rejected by a guard, or cannot be read.
    pub fn read(&self, path: &Path, most: u64) -> Result<Vec<u8>, Error> {
        for guard in &self.guards {
            guard(path).map_err(Error::Refused)?;
        }
        let (file, size) = open_regular(path)?;
        if size > most {
            return Err(Error::TooLarge(most));
        }
        // The size of a file of `/proc` is 0, so the bytes read are counted.
        let expected = usize::try_from(size).unwrap_or(0).min(CHUNK);
        let mut content = Vec::with_capacity(expected);
        let mut rest = file.take(most.saturating_add(1));
        loop {
            if self.is_stopped() {
                return Err(Error::Interrupted);
            }
            let mut chunk = rest.by_ref().take(CHUNK as u64);
            match chunk.read_to_end(&mut content) {
                Ok(0) => return Ok(content),
                Ok(_) if content.len() as u64 > most => return Err(Error::TooLarge(most)),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(Error::Waits),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Opens a file, and returns it with its reported size.
fn open_regular(path: &Path) -> Result<(File, u64), Error> {
    let system = |error: rustix::io::Errno| Error::System(error.into());
    // Checked before opening: opening a device may have effects, and opening a FIFO wakes its
    // writer.
    check(stat(path).map_err(system)?.st_mode)?;
    // Without NONBLOCK, a FIFO that has since replaced the file would block here.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let descriptor = open(path, flags, Mode::empty()).map_err(system)?;
    let found = fstat(&descriptor).map_err(system)?;
    check(found.st_mode)?;
    let size = u64::try_from(found.st_size).unwrap_or(0);
    Ok((File::from(descriptor), size))
}

fn check(mode: rustix::fs::RawMode) -> Result<(), Error> {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Error::Kind("a directory")),
        FileType::Fifo => Err(Error::Kind("a pipe (FIFO)")),
        FileType::CharacterDevice | FileType::BlockDevice => Err(Error::Kind("a device")),
        FileType::Socket => Err(Error::Kind("a socket")),
        _ => Err(Error::Kind("no regular file")),
    }
}

/// A number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
