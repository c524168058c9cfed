//! The place of the sorted runs: a temporary file, or memory on systems without files (WebAssembly).

use std::io;

#[cfg(unix)]
pub(super) use self::file::Store;
#[cfg(not(unix))]
pub(super) use self::memory::Store;

#[cfg(unix)]
mod file {
    use std::{fs::File, io::Write, os::unix::fs::FileExt};

    use super::io;

    /// A temporary file.
    #[derive(Debug)]
    pub(in crate::order) struct Store(File);

    impl Store {
        pub(in crate::order) fn new() -> io::Result<Self> {
            tempfile::tempfile().map(Self)
        }

        /// Appends octets.
        pub(in crate::order) fn append(&mut self, octets: &[u8]) -> io::Result<()> {
            self.0.write_all(octets)
        }

        /// Reads octets from `at` on.
        pub(in crate::order) fn read(&self, octets: &mut [u8], at: u64) -> io::Result<()> {
            self.0.read_exact_at(octets, at)
        }
    }
}

#[cfg(not(unix))]
mod memory {
    use super::io;

    /// Octets in memory.
    #[derive(Debug)]
    pub(in crate::order) struct Store(Vec<u8>);

    impl Store {
        #[expect(clippy::unnecessary_wraps, reason = "a file can fail")]
        pub(in crate::order) fn new() -> io::Result<Self> {
            Ok(Self(Vec::new()))
        }

        /// Appends octets.
        pub(in crate::order) fn append(&mut self, octets: &[u8]) -> io::Result<()> {
            let room = self.0.try_reserve(octets.len());
            room.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            self.0.extend_from_slice(octets);
            Ok(())
        }

        /// Reads octets from `at` on.
        pub(in crate::order) fn read(&self, octets: &mut [u8], at: u64) -> io::Result<()> {
            let found = usize::try_from(at)
                .ok()
                .and_then(|at| self.0.get(at..at + octets.len()));
            let found = found.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
            octets.copy_from_slice(found);
            Ok(())
        }
    }
}
