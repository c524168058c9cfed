//! Reads the packets of a capture in order, and counts frames.

use std::{collections::BTreeMap, io::Read};

use crate::{
    Error, Fragment, Packet, Skip,
    bytes::Bytes,
    container::{Container, Frame, Next},
    layers::{ip::innermost, network_layer},
    limits::Limits,
};

/// Counts of a capture up to the current position.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Frames of all kinds.
    pub frames: u64,
    /// IP packets.
    pub packets: u64,
    /// Frames without an IP packet, by reason.
    pub skipped: BTreeMap<Skip, u64>,
    /// Packets that are fragments.
    pub fragments: u64,
    /// Packets whose time is earlier than that of a preceding packet.
    pub went_back: u64,
    /// The capture ends within a record.
    pub is_cut_off: bool,
    /// Bytes after the last record that are not part of the capture: padding, or data after the
    /// compressed data.
    pub trailing: u64,
}

/// A frame of any kind.
pub(crate) struct RawFrame<'a> {
    /// Counted from 1.
    pub(crate) number: u64,
    pub(crate) frame: Frame,
    /// Captured bytes.
    pub(crate) octets: &'a [u8],
}

/// Reads a capture with constant memory.
///
/// ```
/// use anabranch_capture::{Error, Reader};
///
/// fn bytes(file: impl std::io::Read) -> Result<u64, Error> {
///     let mut reader = Reader::open(file)?;
///     let mut bytes = 0;
///     while let Some(packet) = reader.next_packet()? {
///         bytes += u64::from(packet.ip.length);
///     }
///     Ok(bytes)
/// }
/// assert_eq!(bytes(&b"no capture"[..]), Err(Error::NotACapture));
/// ```
pub struct Reader<'a> {
    bytes: Bytes<'a>,
    container: Container,
    counts: Counts,
    /// The latest time of a packet.
    latest: Option<i128>,
    ended: bool,
}

impl<'a> Reader<'a> {
    /// Reads the header of a capture.
    ///
    /// # Errors
    /// If the file is not a capture.
    pub fn open(file: impl Read + 'a) -> Result<Self, Error> {
        Self::open_until(file, || false)
    }

    /// Opens as [`Self::open`] does, and polls `stop` every 64 KiB; reading ends once it returns
    /// true.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_until(file: impl Read + 'a, stop: impl Fn() -> bool + 'a) -> Result<Self, Error> {
        Self::open_within(file, Limits::default(), stop)
    }

    /// Opens as [`Self::open_until`] does, with other limits.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_within(
        file: impl Read + 'a,
        limits: Limits,
        stop: impl Fn() -> bool + 'a,
    ) -> Result<Self, Error> {
        let mut bytes = Bytes::new(file, limits).map_err(|failure| failure.after(0))?;
        bytes.stop(stop);
        let container = Container::open(&mut bytes)?;
        Ok(Self {
            bytes,
            container,
            counts: Counts::default(),
            latest: None,
            ended: false,
        })
    }

    /// Returns the counts up to the current position.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The next IP packet, in the order of the file; `None` at its end.
    ///
    /// # Errors
    /// If the capture is damaged.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Error> {
        while !self.ended {
            let after = self.counts.frames;
            match self.container.next(&mut self.bytes) {
                Ok(Next::Frame(frame)) => {
                    self.counts.frames += 1;
                    match decode(&frame, self.bytes.at(frame.octets.clone())) {
                        Ok((at, packet)) => {
                            self.count(&packet);
                            let octets = frame.octets.start + at..frame.octets.end;
                            return Ok(Some(Packet {
                                number: self.counts.frames,
                                octets: self.bytes.at(octets),
                                ..packet
                            }));
                        }
                        Err(skip) => *self.counts.skipped.entry(skip).or_default() += 1,
                    }
                }
                Ok(end) => {
                    self.ended = true;
                    self.counts.is_cut_off = matches!(end, Next::CutOff);
                    self.counts.trailing = self.bytes.trailing();
                    if let Next::Trailing(count) = end {
                        self.counts.trailing += count;
                    }
                }
                Err(wrong) => return Err(wrong.after(after)),
            }
        }
        Ok(None)
    }

    /// The next frame of any kind; `None` at the end.
    ///
    /// # Errors
    /// If the capture is damaged.
    pub(crate) fn next_frame(&mut self) -> Result<Option<RawFrame<'_>>, Error> {
        match self.container.next(&mut self.bytes) {
            Ok(Next::Frame(frame)) => {
                self.counts.frames += 1;
                let octets = self.bytes.at(frame.octets.clone());
                Ok(Some(RawFrame {
                    number: self.counts.frames,
                    frame,
                    octets,
                }))
            }
            Ok(_) => Ok(None),
            Err(wrong) => Err(wrong.after(self.counts.frames)),
        }
    }

    fn count(&mut self, packet: &Packet<'_>) {
        self.counts.packets += 1;
        self.counts.fragments += u64::from(packet.ip.fragment != Fragment::Whole);
        let latest = self.latest.get_or_insert(packet.time);
        self.counts.went_back += u64::from(packet.time < *latest);
        *latest = (*latest).max(packet.time);
    }
}

/// Returns the IP packet of a frame without its bytes, and their position.
fn decode(frame: &Frame, octets: &[u8]) -> Result<(usize, Packet<'static>), Skip> {
    let at = network_layer(frame.link.link_type, octets)?;
    let without_fcs = frame.length.saturating_sub(frame.link.fcs);
    let (at, ip) = innermost(octets, at, without_fcs)?;
    Ok((
        at,
        Packet {
            number: 0,
            time: frame.time.ok_or(Skip::NoTime)?,
            ip,
            frame_length: frame.length,
            octets: &[],
        },
    ))
}
