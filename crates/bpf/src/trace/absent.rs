//! In a build without the feature `kernel` nothing can be traced, and this says so.

use std::os::fd::BorrowedFd;

use anabranch_core::interrupt::Interrupt;

use super::{Detail, Place, Record};
use crate::Error;

/// A trace under way. In this build there is none.
#[derive(Debug)]
pub struct Trace {
    never: std::convert::Infallible,
}

impl Trace {
    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn start(
        _flows: &[(Place, u32)],
        _detail: Detail,
        _interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        Err(Error::System(format!(
            "this build cannot load BPF programs into the kernel; {}",
            crate::privilege::BUILD
        )))
    }
    /// What has been told since it was last asked.
    pub fn take(&mut self) -> Vec<Record> {
        match self.never {}
    }
    /// Records for which there was no room.
    #[must_use]
    pub fn lost(&self) -> u64 {
        match self.never {}
    }
    /// The filter for sockets.
    #[must_use]
    pub fn filter(&self) -> BorrowedFd<'_> {
        match self.never {}
    }
}
