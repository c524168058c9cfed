//! The two formats that hold frames: pcap and pcapng.

mod pcap;
mod pcapng;

use std::ops::Range;

use crate::{
    Error,
    bytes::{Bytes, Failure, LONGEST},
};

pub(crate) const PICOS: i128 = 1_000_000_000_000;

/// Maximum length of a record in bytes. A longer length field indicates a damaged file.
const MAX_RECORD: u32 = 128 << 20;

/// Link layer of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    /// Its number at tcpdump.org/linktypes.html.
    pub(crate) link_type: u16,
    /// Bytes of the frame check sequence that follows each frame, if the capture says so.
    pub(crate) fcs: u32,
}

/// A frame of a capture.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) link: Link,
    /// Picoseconds since 1970, if it has a time.
    pub(crate) time: Option<i128>,
    /// Wire length in bytes.
    pub(crate) length: u32,
    /// Position of the captured bytes.
    pub(crate) octets: Range<usize>,
}

/// Next element of a capture.
pub(crate) enum Next {
    Frame(Frame),
    /// Nothing; all was whole.
    End,
    /// A part of a record.
    CutOff,
    /// Number of bytes that form no record, up to the end of the file.
    Trailing(u64),
}

/// Reason why a container cannot be read.
pub(crate) enum Wrong {
    File(Failure),
    Broken(&'static str),
}

impl From<Failure> for Wrong {
    fn from(failure: Failure) -> Self {
        Self::File(failure)
    }
}

impl Wrong {
    pub(crate) fn after(self, after: u64) -> Error {
        match self {
            Self::File(failure) => failure.after(after),
            Self::Broken(what) => Error::Broken { after, what },
        }
    }
}

/// Format of a capture, and the reading position.
pub(crate) enum Container {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
}

/// Whether a file that begins like this is a capture (pcap or pcapng, not compressed).
#[must_use]
pub fn is_capture(head: &[u8]) -> bool {
    head.starts_with(&pcapng::SECTION_HEADER)
        || head
            .first_chunk()
            .is_some_and(|magic| pcap::Variant::of(*magic).is_some())
}

impl Container {
    pub(crate) fn open(bytes: &mut Bytes<'_>) -> Result<Self, Error> {
        let head = bytes.peek(4).map_err(|failure| failure.after(0))?;
        if !is_capture(head) {
            let cut_off = head.len() < 4 && bytes.is_cut_off;
            return Err(if cut_off {
                Error::NoHeader
            } else {
                Error::NotACapture
            });
        }
        if head == pcapng::SECTION_HEADER {
            return Ok(Self::Pcapng(pcapng::Pcapng::default()));
        }
        pcap::Pcap::open(bytes)
            .map_err(|wrong| wrong.after(0))?
            .map(Self::Pcap)
            .ok_or(Error::NoHeader)
    }

    pub(crate) fn next(&mut self, bytes: &mut Bytes<'_>) -> Result<Next, Wrong> {
        match self {
            Self::Pcap(pcap) => pcap.next(bytes),
            Self::Pcapng(pcapng) => pcapng.next(bytes),
        }
    }
}

/// The byte order of a file, or of a section of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Order {
    #[default]
    Little,
    Big,
}

impl Order {
    /// The number at `at`; 0 past the end, which callers exclude.
    fn u16(self, octets: &[u8], at: usize) -> u16 {
        let two = octets.get(at..).and_then(<[u8]>::first_chunk);
        two.map_or(0, |two| match self {
            Self::Little => u16::from_le_bytes(*two),
            Self::Big => u16::from_be_bytes(*two),
        })
    }
    fn u32(self, octets: &[u8], at: usize) -> u32 {
        let four = octets.get(at..).and_then(<[u8]>::first_chunk);
        four.map_or(0, |four| match self {
            Self::Little => u32::from_le_bytes(*four),
            Self::Big => u32::from_be_bytes(*four),
        })
    }
}

/// Consumes a record of `count` bytes, which may exceed the buffer. Returns the range of its
/// beginning, and the number of bytes to skip before the next record. `None` if the file ends
/// within the beginning.
fn beginning(bytes: &mut Bytes<'_>, count: u64) -> Result<Option<(Range<usize>, u64)>, Failure> {
    let first = usize::try_from(count).unwrap_or(LONGEST).min(LONGEST);
    let taken = bytes.take(first)?;
    Ok(taken.map(|range| (range, count - first as u64)))
}
