//! A TCP segment of a capture: RFC 9293 §3.1, with the options of RFC 7323 and RFC 2018.

use std::net::IpAddr;

use anabranch_capture::{Fragment, Packet};
use anabranch_wire::{DecodeError, Flags, Protocol, TcpHeader, TcpOption, iter_options};
use serde::Serialize;

use crate::time::{MICROSECOND, Nanos, from_picos};

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

/// The name of a connection's direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DirectionName {
    /// From `a` to `b`.
    #[default]
    AToB,
    /// From `b` to `a`.
    BToA,
}

impl DirectionName {
    pub(crate) const BOTH: [Self; 2] = [Self::AToB, Self::BToA];
}

/// An end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndName {
    /// The end that sent the SYN, or else the first packet.
    A,
    /// The other end.
    B,
}

impl EndName {
    pub(crate) const BOTH: [Self; 2] = [Self::A, Self::B];
}

/// An address and a port.
pub(crate) type End = (IpAddr, u16);

pub(crate) const CWR: Flags = Flags::CWR;
pub(crate) const FIN: Flags = Flags::FIN;
pub(crate) const SYN: Flags = Flags::SYN;
pub(crate) const RST: Flags = Flags::RST;
pub(crate) const PSH: Flags = Flags::PSH;

/// The bits of the ECN field in the traffic class.
const ECN_BITS: u8 = 3;

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
    pub(crate) flags: Flags,
    /// The window field of the header, without scaling.
    pub(crate) window: u16,
    pub(crate) payload: u32,
    /// Time to live, or hop limit.
    pub(crate) hop_limit: u8,
    /// The ECN field of the IP header (RFC 3168 §5).
    pub(crate) ecn: u8,
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
    /// The parts of a QUIC packet that a TCP header has no field for.
    pub(crate) quic: Option<Quic>,
}

/// A QUIC packet of a qlog, read as a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quic {
    /// Octets from the acknowledgment to the limit of flow control, if it is known.
    pub(crate) window: Option<u32>,
    /// Octets of the packet other than stream data.
    pub(crate) overhead: u16,
    /// The reason for which the data was declared lost.
    pub(crate) lost: Option<LostBy>,
    /// The segment's `TSecr` is the last packet that its sender received.
    pub(crate) is_echo: bool,
    /// The end that sent it wrote the log.
    pub(crate) is_local: bool,
    /// The sender's own record of its window and pace.
    pub(crate) record: Option<Record>,
}

/// A QUIC sender's record of its limits after a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    /// Octets of the congestion window that are not in flight.
    pub(crate) free: i32,
    /// Time in microseconds that the pacer needs for the packet; `u32::MAX` if its rate is unknown.
    pub(crate) pace_us: u32,
}

impl Record {
    /// Whether the pacer may take this time.
    pub(crate) fn may_take(self, time: Nanos) -> bool {
        self.pace_us == u32::MAX || time <= Nanos::from(self.pace_us) * MICROSECOND
    }
}

/// The reason for which a QUIC sender retransmits (RFC 9002 §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LostBy {
    /// Later packets were acknowledged.
    Reordering,
    /// Time elapsed.
    Time,
    /// The probe timer expired.
    Probe,
}

impl Segment {
    pub(crate) fn of(packet: &Packet<'_>) -> Result<Self, Omit> {
        let ip = &packet.ip;
        if ip.protocol != Protocol::Tcp.number() {
            return Err(Omit::NoTcp);
        }
        if ip.fragment == Fragment::Later {
            return Err(Omit::Fragment);
        }
        let whole = packet.octets;
        let octets = whole.get(ip.header as usize..);
        let octets = octets.ok_or(Omit::CutShort)?;
        let (tcp, header_len) = TcpHeader::read(octets).map_err(|error| match error {
            DecodeError::TcpTruncated => Omit::CutShort,
            _ => Omit::Malformed,
        })?;
        let header = u32::try_from(header_len).unwrap_or(u32::MAX);
        if ip.header.saturating_add(header) > ip.length {
            return Err(Omit::Malformed);
        }
        let mut segment = Self {
            number: packet.number,
            time: from_picos(packet.time),
            source: (ip.source, tcp.ports.source),
            target: (ip.target, tcp.ports.destination),
            seq: tcp.seq,
            ack: tcp.flags.has(Flags::ACK).then_some(tcp.ack),
            flags: tcp.flags,
            window: tcp.window,
            payload: ip.length - ip.header - header,
            hop_limit: ip.hop_limit,
            ecn: whole.get(1).map_or(0, |octet| {
                let shift = if ip.source.is_ipv4() { 0 } else { 4 };
                octet >> shift & ECN_BITS
            }),
            id: ip
                .source
                .is_ipv4()
                .then(|| u16::try_from(ip.identification).unwrap_or_default()),
            stamps: None,
            mss: None,
            scale: None,
            sack_permitted: false,
            has_all_options: octets.len() >= header_len,
            blocks: [(0, 0); MOST_BLOCKS],
            block_count: 0,
            quic: None,
        };
        let options = TcpHeader::options(octets, header_len);
        // The layout of most segments (RFC 7323, appendix A).
        if let &[1, 1, 8, 10, a, b, c, d, e, f, g, h] = options {
            let number = u32::from_be_bytes;
            segment.stamps = Some((number([a, b, c, d]), number([e, f, g, h])));
            return Ok(segment);
        }
        // As far as they are present and make sense.
        for option in iter_options(options) {
            let Ok(option) = option else { continue };
            segment.read_option(option);
        }
        Ok(segment)
    }

    /// The timestamp that the segment echoes, if it is the last one that its sender received.
    pub(crate) fn echo(&self) -> Option<u32> {
        let is_echo = self.quic.is_none_or(|quic| quic.is_echo);
        self.stamps.filter(|_| is_echo).map(|stamps| stamps.1)
    }

    pub(crate) const fn has(&self, flag: Flags) -> bool {
        self.flags.any(flag)
    }

    /// One past its last sequence number: SYN and FIN take one each (RFC 9293 §3.4).
    pub(crate) fn end(&self) -> u32 {
        let controls = u32::from(self.has(SYN)) + u32::from(self.has(FIN));
        self.seq.wrapping_add(self.payload).wrapping_add(controls)
    }

    pub(crate) fn blocks(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.block_count)]
    }

    fn read_option(&mut self, option: TcpOption<'_>) {
        match option {
            TcpOption::Mss(mss) => self.mss = Some(mss),
            TcpOption::WindowScale(shift) => self.scale = Some(shift.min(14)),
            TcpOption::SackPermitted => self.sack_permitted = true,
            TcpOption::Sack(count, blocks) => {
                self.blocks = blocks.map(|block| (block.left, block.right));
                self.block_count = count;
            }
            TcpOption::Timestamps(stamps) => self.stamps = Some((stamps.value, stamps.echo)),
            _ => {}
        }
    }
}

/// The number of the first octet. Converts a 32-bit number into the distance nearest to a known
/// one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sequence {
    first: u32,
}

impl Sequence {
    pub(crate) const fn new(first: u32) -> Self {
        Self { first }
    }

    pub(crate) const fn first(self) -> u32 {
        self.first
    }

    /// The distance nearest to `near` that corresponds to `number`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        reason = "arithmetic modulo 2^32 is meant"
    )]
    pub(crate) const fn unwrap(self, number: u32, near: i64) -> i64 {
        let low = self.first.wrapping_add(near as u32);
        near + number.wrapping_sub(low) as i32 as i64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_distance_within_two_gib_is_found(first: u32, near in -(1_i64 << 40)..1 << 40, step in -(1_i64 << 31)..1 << 31) {
            let there = near + step;
            let number = u32::try_from((i64::from(first) + there).rem_euclid(1 << 32)).expect("32 bits");
            prop_assert_eq!(Sequence::new(first).unwrap(number, near), there);
        }
    }
}
