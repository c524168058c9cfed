//! The TCP header (RFC 9293 §3.1; the `AE` bit is AccECN's).

use super::{
    Carried, DecodeError, EncodeError, IpHeader, Prefix, Protocol, encode_ip, ip::be16,
    option::MOST as MOST_OPTIONS,
};
use crate::Flags;

const HEADER: usize = 20;
/// FIN to AE, and the three bits that are reserved behind them, which [`fec`](anabranch_fec::packet) uses.
const FLAG_BITS: u16 = 0xfff;

/// Ports of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ports {
    /// Where it comes from.
    pub source: u16,
    /// Where it goes.
    pub destination: u16,
}

impl Ports {
    /// The other way.
    #[must_use]
    pub const fn swapped(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
        }
    }
}

/// The fixed part of the header, without offset and checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpHeader {
    /// Ports.
    pub ports: Ports,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Control bits, `AE` among them.
    pub flags: Flags,
    /// Window, not scaled.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
}

/// A packet of any header.
#[derive(Debug, Clone, Copy)]
pub struct TcpPacket<'a> {
    /// The network's header.
    pub ip: &'a IpHeader,
    /// The fixed part of TCP's.
    pub header: &'a TcpHeader,
    /// Options as octets; they are padded with zeros to whole words.
    pub options: &'a [u8],
    /// Payload.
    pub payload: Carried<'a>,
}

/// Appends a packet, or what is wanted of it; the checksums are those of the whole. Returns the
/// octets of the whole.
///
/// # Errors
/// If there are too many options or too much payload.
///
/// # Panics
/// Never: what IP's length field holds is far below 4 GiB.
pub fn encode_tcp(packet: &TcpPacket<'_>, to: Prefix<'_>) -> Result<u32, EncodeError> {
    let TcpPacket {
        ip,
        header,
        options,
        payload,
    } = *packet;
    let Prefix { octets: out, most } = to;
    let padded = options.len().next_multiple_of(4);
    if padded > MOST_OPTIONS {
        return Err(EncodeError::Options(padded));
    }
    let start = out.len();
    let tcp_len = HEADER + padded + payload.len();
    encode_ip(ip, Protocol::Tcp, tcp_len, out)?;
    let at = out.len();
    let words = u16::try_from((HEADER + padded) / 4).expect("at most 15 words");
    out.extend_from_slice(&header.ports.source.to_be_bytes());
    out.extend_from_slice(&header.ports.destination.to_be_bytes());
    out.extend_from_slice(&header.seq.to_be_bytes());
    out.extend_from_slice(&header.ack.to_be_bytes());
    out.extend_from_slice(&(words << 12 | header.flags.0 & FLAG_BITS).to_be_bytes());
    out.extend_from_slice(&header.window.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(&header.urgent.to_be_bytes());
    out.extend_from_slice(options);
    out.resize(at + HEADER + padded, 0);
    let mut sum = ip.pseudo_header(Protocol::Tcp, tcp_len);
    sum.add(&out[at..]);
    payload.sum_into(&mut sum);
    out[at + 16..at + 18].copy_from_slice(&sum.finish().to_be_bytes());
    let headers = out.len() - start;
    payload.append_to(out, most.saturating_sub(headers));
    out.truncate(start.saturating_add(most));
    Ok(u32::try_from(headers + payload.len()).expect("IP's length field holds it"))
}

/// Takes a segment apart: header, options, payload.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn decode_tcp<'a>(
    ip: &IpHeader,
    segment: &'a [u8],
) -> Result<(TcpHeader, &'a [u8], &'a [u8]), DecodeError> {
    let fixed: &[u8; HEADER] = segment.first_chunk().ok_or(DecodeError::TcpTruncated)?;
    let mut sum = ip.pseudo_header(Protocol::Tcp, segment.len());
    sum.add(segment);
    if !sum.holds() {
        return Err(DecodeError::TcpChecksum);
    }
    let offset = usize::from(fixed[12] >> 4) * 4;
    let options = segment.get(HEADER..offset).ok_or(DecodeError::DataOffset)?;
    let be32 = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| fixed[at + i]));
    let header = TcpHeader {
        ports: Ports {
            source: be16(fixed, 0),
            destination: be16(fixed, 2),
        },
        seq: be32(4),
        ack: be32(8),
        flags: Flags(be16(fixed, 12) & FLAG_BITS),
        window: be16(fixed, 14),
        urgent: be16(fixed, 18),
    };
    Ok((header, options, &segment[offset..]))
}
