//! A TCP segment of a capture: RFC 9293 §3.1, with the options of RFC 7323 and RFC 2018.

use std::net::IpAddr;

use anabranch_capture::{Fragment, Packet};

use crate::time::{Nanos, from_picos};

/// Reason for which an IP packet is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Omit {
    /// Another protocol.
    NoTcp,
    /// A fragment other than the first: it has no TCP header.
    Fragment,
    /// The capture ends within the fixed part of the header.
    CutShort,
    /// An impossible header length.
    Malformed,
}

impl Omit {
    /// Its name in results.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::NoTcp => "no-tcp",
            Self::Fragment => "fragment",
            Self::CutShort => "tcp-cut-short",
            Self::Malformed => "malformed-tcp",
        }
    }
}

/// An address and a port.
pub(crate) type End = (IpAddr, u16);

pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const PSH: u8 = 8;
const ACK: u8 = 16;

const TCP: u8 = 6;
const HEADER: usize = 20;

/// Maximum number of blocks of a SACK option: a header has no room for more.
pub(crate) const MOST_BLOCKS: usize = 4;

/// The fields of a segment that the diagnosis uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The frame's number in the file.
    pub(crate) number: u64,
    pub(crate) time: Nanos,
    pub(crate) source: End,
    pub(crate) target: End,
    pub(crate) seq: u32,
    /// The acknowledgment number, if the ACK bit is set.
    pub(crate) ack: Option<u32>,
    pub(crate) flags: u8,
    /// The window field of the header, without scaling.
    pub(crate) window: u16,
    pub(crate) payload: u32,
    /// Time to live, or hop limit.
    pub(crate) hop_limit: u8,
    /// IPv4's identification.
    pub(crate) id: Option<u16>,
    /// `TSval`, `TSecr`.
    pub(crate) stamps: Option<(u32, u32)>,
    pub(crate) mss: Option<u16>,
    pub(crate) scale: Option<u8>,
    pub(crate) sack_permitted: bool,
    /// All options were captured.
    pub(crate) has_all_options: bool,
    pub(crate) blocks: [(u32, u32); MOST_BLOCKS],
    pub(crate) block_count: u8,
}

impl Segment {
    pub(crate) fn of(packet: &Packet<'_>) -> Result<Self, Omit> {
        let ip = &packet.ip;
        if ip.protocol != TCP {
            return Err(Omit::NoTcp);
        }
        if ip.fragment == Fragment::Later {
            return Err(Omit::Fragment);
        }
        let octets = packet.octets.get(ip.header as usize..);
        let octets = octets.ok_or(Omit::CutShort)?;
        let fixed: &[u8; HEADER] = octets.first_chunk().ok_or(Omit::CutShort)?;
        let header = u32::from(fixed[12] >> 4) * 4;
        if (header as usize) < HEADER || ip.header + header > ip.length {
            return Err(Omit::Malformed);
        }
        let u16_at = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let flags = fixed[13];
        let mut segment = Self {
            number: packet.number,
            time: from_picos(packet.time),
            source: (ip.source, u16_at(0)),
            target: (ip.target, u16_at(2)),
            seq: u32_at(fixed, 4),
            ack: (flags & ACK != 0).then(|| u32_at(fixed, 8)),
            flags,
            window: u16_at(14),
            payload: ip.length - ip.header - header,
            hop_limit: ip.hop_limit,
            id: ip
                .source
                .is_ipv4()
                .then(|| u16::try_from(ip.identification).unwrap_or_default()),
            stamps: None,
            mss: None,
            scale: None,
            sack_permitted: false,
            has_all_options: octets.len() >= header as usize,
            blocks: [(0, 0); MOST_BLOCKS],
            block_count: 0,
        };
        let end = octets.len().min(header as usize);
        segment.read_options(&octets[HEADER..end]);
        Ok(segment)
    }

    pub(crate) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(crate) fn blocks(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.block_count)]
    }

    /// Reads the options that were captured. Stops at the first malformed one.
    fn read_options(&mut self, mut rest: &[u8]) {
        loop {
            rest = match rest {
                [] | [0, ..] => return,
                [1, behind @ ..] => behind,
                [kind, length, ..] => {
                    let length = usize::from(*length);
                    let (Some(value), Some(behind)) = (rest.get(2..length), rest.get(length..))
                    else {
                        return;
                    };
                    self.read_option(*kind, value);
                    behind
                }
                [_] => return,
            };
        }
    }

    fn read_option(&mut self, kind: u8, value: &[u8]) {
        match (kind, value) {
            (2, [high, low]) => self.mss = Some(u16::from_be_bytes([*high, *low])),
            (3, [shift]) => self.scale = Some((*shift).min(14)),
            (4, []) => self.sack_permitted = true,
            (5, blocks) => {
                for (into, block) in self.blocks.iter_mut().zip(blocks.chunks_exact(8)) {
                    *into = (u32_at(block, 0), u32_at(block, 4));
                    self.block_count += 1;
                }
            }
            (8, stamps) if stamps.len() == 8 => {
                self.stamps = Some((u32_at(stamps, 0), u32_at(stamps, 4)));
            }
            _ => {}
        }
    }
}

/// The number at `at`; 0 past the end, which callers exclude.
fn u32_at(octets: &[u8], at: usize) -> u32 {
    let four = octets.get(at..).and_then(<[u8]>::first_chunk);
    four.map_or(0, |four| u32::from_be_bytes(*four))
}
