//! How long a processor may take to come back from having nothing to do.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
};

/// The kernel's list of such wishes (`Documentation/power/pm_qos_interface.rst`).
const FILE: &str = "/dev/cpu_dma_latency";

/// The wish that no processor sleeps, for as long as this lives: it is heard where the driver of idle processors has a state
/// that polls. The kernel takes it back with the file, however that is closed.
#[derive(Debug)]
pub struct Awake {
    _wish: File,
}

impl Awake {
    /// # Errors
    /// If the kernel takes no such wishes, or not from us: only root may.
    pub fn ask() -> io::Result<Self> {
        let mut wish = OpenOptions::new().write(true).open(FILE)?;
        wish.write_all(&0_i32.to_ne_bytes())?;
        Ok(Self { _wish: wish })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    /// What the kernel goes by, in microseconds; other runs on this machine have their say in it.
    fn allowed() -> io::Result<i32> {
        let mut told = [0; 4];
        File::open(FILE)?.read_exact(&mut told)?;
        Ok(i32::from_ne_bytes(told))
    }

    /// Fails for a wish that is not written as the kernel reads it. While other runs have one, it cannot; that it ends with
    /// a run is for `tests/live/test_live.py`.
    #[test]
    fn processors_stay_awake_as_long_as_it_lives() {
        if let Err(error) = allowed() {
            eprintln!("SKIPPED: {FILE}: {error}");
            return;
        }
        let _awake = Awake::ask().expect("who may read it may write it");
        assert_eq!(allowed().expect("as before"), 0);
    }
}
