//! The page's side: it receives the progress of a request, and reads the capture.

use std::io::{self, Read, Seek, SeekFrom};

/// The page's answer to a report of progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// Continue.
    Continue,
    /// Stop the request.
    Stop,
    /// Continue, and send the samples of the run until now.
    Part,
}

/// A page.
pub trait Page {
    /// Receives the completed share of a request, 0 to 1.
    fn progress(&mut self, share: f64) -> Demand;

    /// Receives the message of a run under way, after [`Demand::Part`].
    fn part(&mut self, message: &[u8]);

    /// Octets of the capture; 0 without one.
    fn capture_length(&mut self) -> u64;

    /// Copies octets of the capture from `at` on, and returns their number: 0 at the end, `None` if
    /// they cannot be read.
    fn read_capture(&mut self, at: u64, into: &mut [u8]) -> Option<usize>;
}

/// The page's capture as a file. Reading it reports progress.
pub(crate) struct Capture<'a> {
    page: &'a mut dyn Page,
    length: u64,
    at: u64,
}

impl<'a> Capture<'a> {
    pub(crate) fn of(page: &'a mut dyn Page) -> Self {
        let length = page.capture_length();
        Self {
            page,
            length,
            at: 0,
        }
    }
}

impl Read for Capture<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let share = self.at as f64 / self.length.max(1) as f64;
        if self.page.progress(share) == Demand::Stop {
            return Err(io::Error::other("stopped"));
        }
        let count = self.page.read_capture(self.at, into);
        let count = count.ok_or_else(|| io::Error::other("the page cannot read the capture"))?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Capture<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::other("a position before the capture"))?;
        Ok(self.at)
    }
}
