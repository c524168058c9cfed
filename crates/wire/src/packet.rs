//! Segments as octets: IPv4 (RFC 791) or IPv6 (RFC 8200), and TCP (RFC 9293 §3.1) in it.
//!
//! [`encode`] writes a [`Segment`] as the IP packet that a link carries, [`decode`] reads one.
//! Decoding believes nothing: every length is checked against what is there, both checksums are
//! verified, and what is wrong has a [`DecodeError`] of its own, which [`Discards`] counts.
//!
//! A segment with an option whose length is impossible is refused whole: RFC 9293 §3.2 asks only
//! that such a thing be survived, and what else the segment says is not worth believing. Options
//! of unknown kind are skipped and counted.
//!
//! # Not implemented
//! Sending IPv4 options, IPv6 extension headers, or the urgent pointer; reassembly of fragments;
//! jumbograms (RFC 2675).

use crate::{
    Carried, DecodeError, EncodeError, IpHeader, Ports, Protocol, Segment, TcpHeader, TcpPacket,
    decode_ip, decode_tcp, encode_tcp, option,
};
use anabranch_core::body::{Body, Octets};

/// Where a packet goes, and how much of it: a capture may want its first octets only.
#[derive(Debug)]
pub struct Prefix<'a> {
    /// What it is appended to.
    pub octets: &'a mut Vec<u8>,
    /// Octets of it at most.
    pub most: usize,
}

impl<'a> Prefix<'a> {
    /// All of it.
    pub const fn whole(octets: &'a mut Vec<u8>) -> Self {
        Self {
            octets,
            most: usize::MAX,
        }
    }
}

/// What [`decode`] found in a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The network's header.
    pub ip: IpHeader,
    /// Ports, source first.
    pub ports: Ports,
    /// The segment.
    pub segment: Segment<Octets>,
    /// Options that were skipped: of unknown kind, or in a segment where they mean nothing
    /// (RFC 9293 §3.2 and RFC 7323 §2.2 allow some in a SYN only).
    pub skipped_options: u8,
}

/// Appends the packet to `out`. A body of which only the length is known travels as zeros.
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

/// Appends the packet's first octets, as a capture does; the checksums are those of the whole.
/// Returns the octets of the whole.
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

/// Reads an IP packet that carries a TCP segment. Octets behind the packet's own length, such as
/// a link's padding, are ignored.
///
/// # Errors
/// The first thing that is wrong with it, from the outside in.
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
