//! What a capture says of its IP packets: when, and how long.
//!
//! pcap (microseconds or nanoseconds, either byte order) and pcapng, of Ethernet (with VLAN tags), raw IP and
//! Linux' cooked captures. Packets that are not IP are passed over. A capture may hold only the beginning of
//! each packet: the length is the IP header's or, where that is not there, the frame's.
//!
//! Formats: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng; link types: tcpdump.org/linktypes.html.

use anabranch_core::units::Duration;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};

/// The IP packets of a capture, in order of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    packets: Vec<Recorded>,
    bytes: u64,
}

/// One IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// Since the first.
    pub time: Duration,
    /// Bytes, IP header included.
    pub size: u32,
}

/// Why a capture cannot be replayed. Packets are counted from 1, as captures' viewers do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    /// Neither pcap nor pcapng.
    #[error("it is no capture; expected pcap or pcapng")]
    NotACapture,
    /// It ends in the middle of a packet or block.
    #[error("it ends in the middle of what follows packet {after}; expected a whole capture")]
    Truncated {
        /// Whole packets before that.
        after: u64,
    },
    /// Something that the format does not allow.
    #[error("what follows packet {after} is broken; expected a block of pcap or pcapng")]
    Broken {
        /// Packets before that.
        after: u64,
    },
    /// Frames of a kind that is not read.
    #[error(
        "packet {packet} has link type {link_type}; expected Ethernet (1), raw IP (101, 228, 229) or Linux cooked (113, 276)"
    )]
    LinkType {
        /// Which packet.
        packet: u64,
        /// The number of its link type.
        link_type: i32,
    },
    /// A packet without a time.
    #[error("packet {packet} has no time; expected packets with times")]
    NoTime {
        /// Which packet.
        packet: u64,
    },
    /// A packet that was recorded before the one that stands before it.
    #[error(
        "packet {packet} is {by} earlier than the one before it; expected packets in order of time (`reordercap` sorts them)"
    )]
    GoesBack {
        /// Which packet.
        packet: u64,
        /// By how much.
        by: Duration,
    },
    /// Nothing to send.
    #[error("it has {frames} frames and no IP packet; expected one or more")]
    NoPackets {
        /// Frames of other kinds.
        frames: u64,
    },
    /// More time between the first and the last than a run can have.
    #[error("packet {packet} comes more than 100 days after the first; expected a shorter capture")]
    TooLong {
        /// Which packet.
        packet: u64,
    },
}

const PICOS: i128 = 1_000_000_000_000;
/// A run's clock has 64 bits of picoseconds, which are 213 days.
const LONGEST: i128 = 100 * 86_400 * PICOS;

/// How an interface of a capture counts.
#[derive(Debug, Clone, Copy)]
struct Interface {
    link_type: i32,
    /// Units per second; `None` if they cannot be read.
    units: Option<u64>,
    /// Picoseconds.
    offset: i128,
}

/// A frame: when (picoseconds, if known), how long it was, and what was kept of it.
struct Frame<'a> {
    link_type: i32,
    time: Option<i128>,
    length: u32,
    octets: &'a [u8],
}

impl Recording {
    /// Reads a capture.
    ///
    /// # Errors
    /// If it is not one, or cannot be replayed.
    pub fn parse(file: &[u8]) -> Result<Self, RecordingError> {
        // With space left, so that the reader sees the end.
        let mut reader = create_reader(file.len() + 1, file).map_err(|error| match error {
            PcapError::Incomplete(_) => RecordingError::Truncated { after: 0 },
            _ => RecordingError::NotACapture,
        })?;
        reader.refill().map_err(|_| RecordingError::NotACapture)?;
        let mut interfaces = Vec::new();
        let mut reading = Reading::default();
        let mut blocks = Blocks::of(file);
        // All of the file is in the reader's buffer.
        while !reader.data().is_empty() {
            if blocks
                .as_mut()
                .is_some_and(|blocks| blocks.next_is_too_short(reader.data()))
            {
                let after = reading.frames;
                return Err(RecordingError::Broken { after });
            }
            match reader.next() {
                Ok((used, block)) => {
                    if let Some(frame) = frame(&block, &mut interfaces, reading.frames)? {
                        reading.frame(&frame)?;
                    }
                    reader.consume(used);
                }
                Err(PcapError::Incomplete(_) | PcapError::UnexpectedEof) => {
                    let after = reading.frames;
                    return Err(RecordingError::Truncated { after });
                }
                Err(_) => {
                    let after = reading.frames;
                    return Err(RecordingError::Broken { after });
                }
            }
        }
        reading.finish()
    }

    /// From packets in order of time, for recordings that are made rather than read; `None` without packets or
    /// in another order.
    #[must_use]
    pub fn new(packets: Vec<Recorded>) -> Option<Self> {
        let sorted = packets.windows(2).all(|pair| pair[0].time <= pair[1].time);
        let first = packets.first()?.time;
        let bytes = packets.iter().map(|packet| u64::from(packet.size)).sum();
        (sorted && first.is_zero()).then_some(Self { packets, bytes })
    }
    /// The packets.
    #[must_use]
    pub fn packets(&self) -> &[Recorded] {
        &self.packets
    }
    /// IP bytes of all packets.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    /// From the first packet to the last.
    #[must_use]
    pub fn span(&self) -> Duration {
        self.packets
            .last()
            .map_or(Duration::ZERO, |packet| packet.time)
    }
}

/// Where the blocks of a pcapng file end (draft-ietf-opsawg-pcapng §3.1). The reader takes it for granted that
/// no block is shorter than what begins and ends it.
#[derive(Debug, Clone, Copy)]
struct Blocks {
    /// The byte order of the section.
    is_big_endian: bool,
}

impl Blocks {
    const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
    const BIG_ENDIAN: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];
    /// Type, length, and the length again.
    const SHORTEST: u32 = 12;

    /// `None` for other formats.
    fn of(file: &[u8]) -> Option<Self> {
        let is_big_endian = false;
        file.starts_with(&Self::SECTION_HEADER)
            .then_some(Self { is_big_endian })
    }

    /// Whether the block that `data` begins with says that it is shorter than any can be.
    fn next_is_too_short(&mut self, data: &[u8]) -> bool {
        let four = |at: usize| data.get(at..).and_then(<[u8]>::first_chunk::<4>);
        if data.starts_with(&Self::SECTION_HEADER) {
            self.is_big_endian = four(8) == Some(&Self::BIG_ENDIAN);
        }
        let length = four(4).map(|length| {
            if self.is_big_endian {
                u32::from_be_bytes(*length)
            } else {
                u32::from_le_bytes(*length)
            }
        });
        length.is_some_and(|length| length < Self::SHORTEST)
    }
}

/// What a block says.
fn frame<'a>(
    block: &'a PcapBlockOwned<'_>,
    interfaces: &mut Vec<Interface>,
    after: u64,
) -> Result<Option<Frame<'a>>, RecordingError> {
    let packet = after + 1;
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let units = if header.is_nanosecond_precision() {
                1_000_000_000
            } else {
                1_000_000
            };
            interfaces.push(Interface {
                link_type: header.network.0,
                units: Some(units),
                offset: 0,
            });
            Ok(None)
        }
        PcapBlockOwned::Legacy(legacy) => {
            let Some(interface) = interfaces.first() else {
                return Err(RecordingError::Broken { after });
            };
            let fraction = i128::from(legacy.ts_usec) * PICOS
                / i128::from(interface.units.unwrap_or(1_000_000));
            Ok(Some(Frame {
                link_type: interface.link_type,
                time: Some(i128::from(legacy.ts_sec) * PICOS + fraction),
                length: legacy.origlen,
                octets: legacy.data,
            }))
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            Ok(None)
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(described)) => {
            interfaces.push(Interface {
                link_type: described.linktype.0,
                units: described.ts_resolution(),
                offset: i128::from(described.ts_offset()) * PICOS,
            });
            Ok(None)
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(enhanced)) => {
            let interface = usize::try_from(enhanced.if_id).ok();
            let Some(interface) = interface.and_then(|index| interfaces.get(index)) else {
                return Err(RecordingError::Broken { after });
            };
            let Some(units) = interface.units.filter(|units| *units > 0) else {
                return Err(RecordingError::NoTime { packet });
            };
            let ticks = i128::from(enhanced.ts_high) << 32 | i128::from(enhanced.ts_low);
            let kept = enhanced.data.len().min(enhanced.caplen as usize);
            Ok(Some(Frame {
                link_type: interface.link_type,
                time: Some(ticks * PICOS / i128::from(units) + interface.offset),
                length: enhanced.origlen,
                octets: &enhanced.data[..kept],
            }))
        }
        PcapBlockOwned::NG(Block::SimplePacket(simple)) => Ok(Some(Frame {
            link_type: interfaces
                .first()
                .map_or(-1, |interface| interface.link_type),
            time: None,
            length: simple.origlen,
            octets: simple.data,
        })),
        PcapBlockOwned::NG(_) => Ok(None),
    }
}

/// What has been read so far.
#[derive(Debug, Default)]
struct Reading {
    /// Of all kinds.
    frames: u64,
    first: Option<i128>,
    latest: i128,
    packets: Vec<Recorded>,
    bytes: u64,
}

impl Reading {
    fn frame(&mut self, frame: &Frame<'_>) -> Result<(), RecordingError> {
        self.frames += 1;
        let packet = self.frames;
        let Some(size) = ip_length(frame, packet)? else {
            return Ok(());
        };
        let time = frame.time.ok_or(RecordingError::NoTime { packet })?;
        let first = *self.first.get_or_insert(time);
        if self.packets.is_empty() {
            self.latest = time;
        }
        if time < self.latest {
            let by = u64::try_from(self.latest - time).unwrap_or(u64::MAX);
            let by = Duration::from_picos(by);
            return Err(RecordingError::GoesBack { packet, by });
        }
        self.latest = time;
        let since = u64::try_from(time - first)
            .ok()
            .filter(|_| time - first <= LONGEST);
        let since = since.ok_or(RecordingError::TooLong { packet })?;
        self.bytes += u64::from(size);
        self.packets.push(Recorded {
            time: Duration::from_picos(since),
            size,
        });
        Ok(())
    }

    fn finish(self) -> Result<Recording, RecordingError> {
        if self.packets.is_empty() {
            let frames = self.frames;
            return Err(RecordingError::NoPackets { frames });
        }
        Ok(Recording {
            packets: self.packets,
            bytes: self.bytes,
        })
    }
}

/// Where the IP packet begins in a frame, if it is one and enough was kept to tell.
fn ip_offset(frame: &Frame<'_>, packet: u64) -> Result<Option<usize>, RecordingError> {
    let two = |at: usize| {
        frame
            .octets
            .get(at..at + 2)
            .map(|two| u16::from_be_bytes([two[0], two[1]]))
    };
    let is_ip = |kind: Option<u16>| matches!(kind, Some(0x0800 | 0x86dd));
    let (mut at, header) = match Linktype(frame.link_type) {
        Linktype::ETHERNET => (12, 2),
        // 12 and 14 are what some systems write for raw IP.
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 | Linktype(12 | 14) => return Ok(Some(0)),
        Linktype::LINUX_SLL => (14, 2),
        Linktype(276) => return Ok(is_ip(two(0)).then_some(20)),
        Linktype(link_type) => return Err(RecordingError::LinkType { packet, link_type }),
    };
    // VLAN tags (IEEE 802.1Q), which may be several.
    while let Some(0x8100 | 0x88a8 | 0x9100) = two(at) {
        at += 4;
    }
    Ok(is_ip(two(at)).then_some(at + header))
}

/// The length of a frame's IP packet; `None` if it has none.
fn ip_length(frame: &Frame<'_>, packet: u64) -> Result<Option<u32>, RecordingError> {
    let Some(at) = ip_offset(frame, packet)? else {
        return Ok(None);
    };
    let of_frame = frame
        .length
        .saturating_sub(u32::try_from(at).unwrap_or(u32::MAX));
    let octets = frame.octets.get(at..).unwrap_or_default();
    let two = |at: usize| {
        octets
            .get(at..at + 2)
            .map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])))
    };
    // A length of 0 is one that the network card fills in (segmentation offload).
    let told = match octets.first().map(|first| first >> 4) {
        Some(4) => two(2).filter(|length| *length > 0),
        Some(6) => two(4)
            .filter(|length| *length > 0)
            .map(|length| 40 + length),
        Some(_) => return Ok(None),
        None => None,
    };
    let length = told.unwrap_or(of_frame);
    Ok((length >= 20).then_some(length))
}
