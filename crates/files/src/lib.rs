//! Opens every file that a scenario names: regular files only, within a bound, interruptible. Writes new files whole.
//!
//! A FIFO waits for a writer, `/dev/zero` never ends, `/proc/kmsg` waits for the next message of the kernel, and
//! a file of `/proc` says that its size is 0. None of them may hold a run up or take memory without end.
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

/// Bytes that are read between two looks at whether the run is to stop: a regular file gives them in a millisecond.
const CHUNK: usize = 256 << 10;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is a directory, a FIFO, a device or a socket.
    #[error("it is {0}; a regular file was expected")]
    Kind(&'static str),
    /// It is larger than its use permits.
    #[error("it has more than {} bytes, the most for this use", grouped(*.0))]
    TooLarge(u64),
    /// It says that it is a regular file, and waits for events (`/proc/kmsg`, `trace_pipe`).
    #[error("it waits for events instead of ending; a regular file was expected")]
    Waits,
    /// A guard refuses it.
    #[error("{0}")]
    Refused(String),
    /// The run is to stop.
    #[error("reading was interrupted")]
    Interrupted,
    /// The system's own reason.
    #[error("{}", system::words(.0))]
    System(#[from] io::Error),
}

type Guard = Arc<dyn Fn(&Path) -> Result<(), String> + Send + Sync>;
type Stop = Arc<dyn Fn() -> bool + Send + Sync>;

/// Reads files, and knows who may object.
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
    /// Asks `guard` about each path before it is opened: it may note it, or refuse it with the reason.
    #[must_use]
    pub fn guard(
        mut self,
        guard: impl Fn(&Path) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.guards.push(Arc::new(guard));
        self
    }

    /// Asks `stop` between chunks whether to give up.
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

    /// A regular file that is read as it is needed; symbolic links are followed.
    ///
    /// # Errors
    /// If it is no regular file, refused by a guard, or cannot be opened.
    pub fn open(&self, path: &Path) -> Result<File, Error> {
        for guard in &self.guards {
            guard(path).map_err(Error::Refused)?;
        }
        Ok(open_regular(path)?.0)
    }

    /// The content of a regular file of at most `most` bytes; symbolic links are followed.
    ///
    /// # Errors
    /// If it is no regular file, larger, refused by a guard, or cannot be read.
    pub fn read(&self, path: &Path, most: u64) -> Result<Vec<u8>, Error> {
        for guard in &self.guards {
            guard(path).map_err(Error::Refused)?;
        }
        let (file, size) = open_regular(path)?;
        if size > most {
            return Err(Error::TooLarge(most));
        }
        // The size of a file of `/proc` is 0: what is read is counted.
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

/// A file that is open, and the size that it says it has.
fn open_regular(path: &Path) -> Result<(File, u64), Error> {
    let system = |error: rustix::io::Errno| Error::System(error.into());
    // Before it is opened: opening a device may do something, and opening a FIFO wakes its writer.
    check(stat(path).map_err(system)?.st_mode)?;
    // Without NONBLOCK a FIFO that has taken the file's place since would block here.
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
