//! Wire format of redundant packets: TCP segments without ACK that carry an experimental option
//! (RFC 6994).
//!
//! The option: kind 253, length 16, identifier; then two octets each for the number of packets
//! covered, their size, the XOR of their lengths, and the key; then four octets of checksum
//! ([`Redundant`]).

use crate::{
    Carried, DecodeError, EncodeError, Flags, IpHeader, Ports, Prefix, Protocol, TcpHeader,
    TcpOption, TcpPacket, decode_ip, decode_tcp, encode_tcp, iter_options,
};
use crate::{Redundant, redundant::OPTION_SIZE};
use anabranch_core::body::{Body, Octets};

/// Experiment 1 of RFC 6994 §3.
const KIND: u8 = 253;
/// Our experiment's identifier (RFC 6994 §3.1); not registered.
const IDENTIFIER: [u8; 2] = [0xfe, 0xc0];

/// Appends the first octets of the packet. The checksums are correct for the whole packet, whose
/// length is returned. A body of known length and unknown content is encoded as zeros.
///
/// # Errors
/// If the packet does not fit: see [`EncodeError`].
pub fn encode_redundant<B: Body>(
    ip: &IpHeader,
    ports: Ports,
    redundant: &Redundant<B>,
    to: Prefix<'_>,
) -> Result<u32, EncodeError> {
    let mut content = IDENTIFIER.to_vec();
    for number in [
        redundant.count,
        redundant.size,
        redundant.lengths,
        redundant.key,
    ] {
        content.extend_from_slice(&number.to_be_bytes());
    }
    content.extend_from_slice(&redundant.checksum.to_be_bytes());
    let mut options = Vec::with_capacity(OPTION_SIZE as usize);
    TcpOption::Unknown {
        kind: KIND,
        content: &content,
    }
    .write(&mut options);
    let header = TcpHeader {
        ports,
        seq: redundant.first,
        ack: 0,
        flags: Flags::NONE,
        window: 0,
        urgent: 0,
    };
    let payload = match redundant.body.octets() {
        Some(octets) => Carried::Octets(octets),
        None => Carried::Zeros(redundant.body.len() as usize),
    };
    let packet = TcpPacket {
        ip,
        header: &header,
        options: &options,
        payload,
    };
    encode_tcp(&packet, to)
}

/// Reads an IP packet that carries a redundant packet; `None` if it carries another TCP segment.
///
/// # Errors
/// Returns the first error, from the outermost header inward.
pub fn decode_redundant(
    packet: &[u8],
) -> Result<Option<(IpHeader, Ports, Redundant<Octets>)>, DecodeError> {
    let (ip, protocol, payload) = decode_ip(packet)?;
    if protocol != Protocol::Tcp {
        return Err(DecodeError::Protocol);
    }
    let (header, options, body) = decode_tcp(&ip, payload)?;
    if header.flags != Flags::NONE {
        return Ok(None);
    }
    for option in iter_options(options) {
        let TcpOption::Unknown {
            kind: KIND,
            content,
        } = option?
        else {
            continue;
        };
        let Some((&IDENTIFIER, numbers)) = content.split_first_chunk() else {
            continue;
        };
        let Ok([c0, c1, s0, s1, l0, l1, k0, k1, s @ ..]) = <[u8; 12]>::try_from(numbers) else {
            continue;
        };
        let redundant = Redundant {
            first: header.seq,
            count: u16::from_be_bytes([c0, c1]),
            size: u16::from_be_bytes([s0, s1]),
            lengths: u16::from_be_bytes([l0, l1]),
            key: u16::from_be_bytes([k0, k1]),
            checksum: u32::from_be_bytes(s),
            body: Octets(body.to_vec()),
        };
        return Ok(Some((ip, header.ports, redundant)));
    }
    Ok(None)
}
