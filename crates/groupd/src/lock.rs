//! The lock of a bond: a daemon and its guardian hold it together.
//!
//! The guardian inherits the open file as its standard output, which it does not use otherwise. The
//! lock ends when both have closed it, so that a new daemon waits until the guardian of an earlier
//! one has brought the members back.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind},
    os::{
        fd::AsFd,
        unix::fs::{MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

/// The longest wait for a guardian that brings members back: they negotiate for 4 s.
pub const PATIENCE: Duration = Duration::from_secs(15);
const RETRY: Duration = Duration::from_millis(50);

/// A lock that is held until it is dropped.
pub struct Lock {
    file: File,
    path: PathBuf,
}

/// The path of a bond's lock.
#[must_use]
pub fn path(directory: &Path, bond: &str) -> PathBuf {
    directory.join(format!("{bond}.lock"))
}

impl Lock {
    /// Takes the lock. `None` if another process holds it.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn take(directory: &Path, bond: &str) -> io::Result<Option<Self>> {
        let path = path(directory, bond);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        options.mode(0o600);
        loop {
            let file = options.open(&path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let lock = Self {
                file,
                path: path.clone(),
            };
            // An earlier holder may have deleted the file since it was opened.
            if lock.is_current()? {
                return Ok(Some(lock));
            }
        }
    }

    /// Takes the lock, and waits while `goes_on` returns `Ok`. `None` after [`PATIENCE`].
    ///
    /// # Errors
    /// The system refuses, or the error of `goes_on`.
    pub fn wait<E>(
        directory: &Path,
        bond: &str,
        failed: impl Fn(io::Error) -> E,
        mut goes_on: impl FnMut() -> Result<(), E>,
    ) -> Result<Option<Self>, E> {
        let start = Instant::now();
        loop {
            if let Some(lock) = Self::take(directory, bond).map_err(&failed)? {
                return Ok(Some(lock));
            }
            goes_on()?;
            if start.elapsed() > PATIENCE {
                return Ok(None);
            }
            thread::sleep(RETRY);
        }
    }

    /// The lock that a guardian has from its daemon.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn inherited(directory: &Path, bond: &str) -> io::Result<Self> {
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self {
            file: output.into(),
            path: path(directory, bond),
        })
    }

    /// The standard output of a guardian.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn share(&self) -> io::Result<Stdio> {
        self.file.try_clone().map(Stdio::from)
    }

    /// Deletes the file, unless it has become another process's.
    pub fn delete(&self) {
        if self.is_current().unwrap_or(false) {
            let _ = fs::remove_file(&self.path);
        }
    }

    fn is_current(&self) -> io::Result<bool> {
        let own = self.file.metadata()?;
        match fs::metadata(&self.path) {
            Ok(found) => Ok((found.dev(), found.ino()) == (own.dev(), own.ino())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fs, process};

    use super::{Lock, path};

    #[test]
    fn a_lock_has_one_holder_and_outlives_its_file() {
        let directory = env::temp_dir().join(format!("anabranch-group-lock-{}", process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let take = || Lock::take(&directory, "bond0").expect("the system permits it");
        let first = take().expect("it is free");
        let shared = first.file.try_clone().expect("a second descriptor");
        assert!(take().is_none());
        drop(first);
        assert!(take().is_none(), "the guardian still holds it");
        drop(shared);
        let second = take().expect("it is free again");
        second.delete();
        let third = take().expect("a new file");
        second.delete();
        assert!(path(&directory, "bond0").exists(), "it is the third one's");
        third.delete();
        fs::remove_dir(&directory).expect("nothing remains");
    }
}
