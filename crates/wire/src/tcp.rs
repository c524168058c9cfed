//! The TCP header (RFC 9293 §3.1; the `AE` bit is AccECN's).

use crate::{
    Carried, DecodeError, EncodeError, Flags, IpHeader, Prefix, Protocol, TcpOption,
    checksum::updated, encode_ip, ip::be16, iter_options, option::MOST as MOST_OPTIONS,
};

const HEADER: usize = 20;
/// Position of the checksum.
const CHECKSUM: usize = 16;
/// FIN to AE, and the three reserved bits that [`redundant`](crate::redundant) uses.
const FLAG_BITS: u16 = 0xfff;

/// Ports of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ports {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
}

impl Ports {
    /// The ports of the other direction.
    #[must_use]
    pub const fn swapped(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
        }
    }
}

/// The fixed part of the header, except data offset and checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpHeader {
    /// Ports.
    pub ports: Ports,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Control bits including `AE`.
    pub flags: Flags,
    /// Window before scaling.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
}

/// A packet with an arbitrary header.
#[derive(Debug, Clone, Copy)]
pub struct TcpPacket<'a> {
    /// IP header.
    pub ip: &'a IpHeader,
    /// Fixed part of the TCP header.
    pub header: &'a TcpHeader,
    /// Options as octets; they are padded with zeros to words.
    pub options: &'a [u8],
    /// Payload.
    pub payload: Carried<'a>,
}

/// Appends a packet, or its first octets. The checksums are correct for the whole packet, whose
/// length is returned.
///
/// # Errors
/// If there are too many options or too much payload.
///
/// # Panics
/// Never: IP's length field limits the packet to far less than 4 GiB.
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

impl TcpHeader {
    /// Reads the header at the beginning of `octets`, and its length including options, which may
    /// be truncated.
    ///
    /// # Errors
    /// [`DecodeError::TcpTruncated`] if the fixed part is incomplete, [`DecodeError::DataOffset`]
    /// if the length is less than the fixed part.
    #[inline]
    pub fn read(octets: &[u8]) -> Result<(Self, usize), DecodeError> {
        let fixed: &[u8; HEADER] = octets.first_chunk().ok_or(DecodeError::TcpTruncated)?;
        let length = usize::from(fixed[12] >> 4) * 4;
        if length < HEADER {
            return Err(DecodeError::DataOffset);
        }
        let be32 = |at: usize| {
            u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]])
        };
        let header = Self {
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
        Ok((header, length))
    }

    /// The options of a header of this length, as far as they are present.
    #[must_use]
    #[inline]
    pub fn options(octets: &[u8], length: usize) -> &[u8] {
        octets
            .get(HEADER..length.min(octets.len()))
            .unwrap_or_default()
    }
}

/// Lowers the MSS option of a SYN to `limit` (RFC 4459 §3.2) and corrects the checksum. Returns
/// whether the segment was changed. Other segments, and those with an incomplete header, are not
/// changed.
pub fn clamp_mss(segment: &mut [u8], limit: u16) -> bool {
    let Some((at, old)) = mss_option(segment).filter(|&(_, old)| old > limit) else {
        return false;
    };
    // The checksum covers words: an option at an odd place has its octets in two of them.
    let word = |value: u16| {
        if at % 2 == 0 {
            value
        } else {
            value.swap_bytes()
        }
    };
    let checksum = updated(be16(segment, CHECKSUM), word(old), word(limit));
    segment[at..at + 2].copy_from_slice(&limit.to_be_bytes());
    segment[CHECKSUM..CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
    true
}

/// Position and value of the MSS option of a SYN.
fn mss_option(segment: &[u8]) -> Option<(usize, u16)> {
    let (header, length) = TcpHeader::read(segment).ok()?;
    let mut options = iter_options(segment.get(HEADER..length)?);
    if !header.flags.has(Flags::SYN) {
        return None;
    }
    while let Some(option) = options.next() {
        if let Ok(TcpOption::Mss(mss)) = option {
            return Some((length - options.octets_left() - 2, mss));
        }
    }
    None
}

/// Reads a segment with the checks of a receiver: header, options and payload.
///
/// # Errors
/// Returns the first error, from the outermost header inward.
pub fn decode_tcp<'a>(
    ip: &IpHeader,
    segment: &'a [u8],
) -> Result<(TcpHeader, &'a [u8], &'a [u8]), DecodeError> {
    if segment.len() < HEADER {
        return Err(DecodeError::TcpTruncated);
    }
    let mut sum = ip.pseudo_header(Protocol::Tcp, segment.len());
    sum.add(segment);
    if !sum.holds() {
        return Err(DecodeError::TcpChecksum);
    }
    let (header, length) = TcpHeader::read(segment)?;
    let (headers, payload) = segment
        .split_at_checked(length)
        .ok_or(DecodeError::DataOffset)?;
    Ok((header, &headers[HEADER..], payload))
}
