//! TCP packets: a [`Segment`] in IPv4 or IPv6.
//!
//! A segment with an option of impossible length is discarded: RFC 9293 §3.2 only requires that the
//! receiver survive it, and the rest of such a segment is not credible. Options of unknown kind are
//! skipped and counted.

use crate::{
    Carried, DecodeError, EncodeError, IpHeader, Ports, Protocol, Segment, TcpHeader, TcpPacket,
    decode_ip, decode_tcp, encode_tcp, option,
};
use anabranch_core::body::{Body, Octets};

/// Output buffer, and the number of octets of the packet to write: a capture may need only the
/// first.
#[derive(Debug)]
pub struct Prefix<'a> {
    /// Buffer to append to.
    pub octets: &'a mut Vec<u8>,
    /// Maximum number of octets to append.
    pub most: usize,
}

impl<'a> Prefix<'a> {
    /// Appends the whole packet.
    pub const fn whole(octets: &'a mut Vec<u8>) -> Self {
        Self {
            octets,
            most: usize::MAX,
        }
    }
}

/// The content of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The header of IP.
    pub ip: IpHeader,
    /// Ports, source first.
    pub ports: Ports,
    /// The segment.
    pub segment: Segment<Octets>,
    /// Number of skipped options: of unknown kind, or in a segment in which they have no meaning
    /// (RFC 9293 §3.2 and RFC 7323 §2.2 allow some in a SYN only).
    pub skipped_options: u8,
}

/// Appends the packet to `out`. A body of known length and unknown content is encoded as zeros.
///
/// # Errors
/// If the segment does not fit: see [`EncodeError`].
pub fn encode<B: Body>(
    ip: &IpHeader,
    ports: Ports,
    segment: &Segment<B>,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    encode_prefix(ip, ports, segment, Prefix::whole(out)).map(drop)
}

/// Appends the first octets of the packet, as a capture with a snap length has them. The checksums
/// are correct for the whole packet, whose length is returned.
///
/// # Errors
/// If the segment does not fit: see [`EncodeError`].
pub fn encode_prefix<B: Body>(
    ip: &IpHeader,
    ports: Ports,
    segment: &Segment<B>,
    to: Prefix<'_>,
) -> Result<u32, EncodeError> {
    let mut options = Vec::with_capacity(40);
    option::write_options(segment, &mut options)?;
    let header = TcpHeader {
        ports,
        seq: segment.seq,
        ack: segment.ack,
        flags: segment.flags,
        window: segment.window,
        urgent: 0,
    };
    let payload = match segment.body.octets() {
        Some(octets) => Carried::Octets(octets),
        None => Carried::Zeros(segment.body.len() as usize),
    };
    let packet = TcpPacket {
        ip,
        header: &header,
        options: &options,
        payload,
    };
    encode_tcp(&packet, to)
}

/// Reads an IP packet that carries a TCP segment. Octets after the packet's length, such as a
/// link's padding, are ignored.
///
/// # Errors
/// Returns the first error, from the outermost header inward.
pub fn decode(packet: &[u8]) -> Result<Decoded, DecodeError> {
    let (ip, protocol, payload) = decode_ip(packet)?;
    if protocol != Protocol::Tcp {
        return Err(DecodeError::Protocol);
    }
    let (header, options, body) = decode_tcp(&ip, payload)?;
    let read = option::read_options(header.flags, ip.version.default_mss(), options)?;
    Ok(Decoded {
        ip,
        ports: header.ports,
        segment: Segment {
            seq: header.seq,
            ack: header.ack,
            window: header.window,
            flags: header.flags,
            timestamps: read.timestamps,
            options: read.options,
            body: Octets(body.to_vec()),
        },
        skipped_options: read.skipped,
    })
}
