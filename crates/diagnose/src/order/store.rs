//! The place of the sorted runs: a temporary file, or memory on systems without files (WebAssembly).

use std::io;
#[cfg(unix)]
use std::{fs::File, io::Write, os::unix::fs::FileExt};

/// Octets that are appended, and read at any place.
#[derive(Debug)]
pub(super) struct Store(#[cfg(unix)] File, #[cfg(not(unix))] Vec<u8>);

#[cfg(unix)]
impl Store {
    pub(super) fn new() -> io::Result<Self> {
        tempfile::tempfile().map(Self)
    }

    pub(super) fn append(&mut self, octets: &[u8]) -> io::Result<()> {
        self.0.write_all(octets)
    }

    pub(super) fn read(&self, octets: &mut [u8], at: u64) -> io::Result<()> {
        self.0.read_exact_at(octets, at)
    }
}

#[cfg(not(unix))]
impl Store {
    #[expect(clippy::unnecessary_wraps, reason = "a file can fail")]
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(Vec::new()))
    }

    pub(super) fn append(&mut self, octets: &[u8]) -> io::Result<()> {
        self.0
            .try_reserve(octets.len())
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.0.extend_from_slice(octets);
        Ok(())
    }

    pub(super) fn read(&self, octets: &mut [u8], at: u64) -> io::Result<()> {
        let from = usize::try_from(at).ok().and_then(|at| self.0.get(at..));
        let found = from.and_then(|from| from.get(..octets.len()));
        octets.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}
