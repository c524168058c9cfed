//! How long a processor may take to come back from having nothing to do.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
};

/// The kernel's list of such wishes (`Documentation/power/pm_qos_interface.rst`).
const FILE: &str = "/dev/cpu_dma_latency";

/// While this lives, no processor sleeps. The kernel takes the wish back with the file, however that is closed.
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

    /// Fails for a wish that ends before its owner does, or that is not written as the kernel reads it.
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
