//! An IP packet of a capture.

use std::net::IpAddr;

pub use anabranch_wire::Fragment;

/// Fields of the IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ip {
    /// The sender.
    pub source: IpAddr,
    /// The receiver.
    pub target: IpAddr,
    /// The protocol after IP and its extension headers.
    pub protocol: u8,
    /// Time to live, or IPv6's hop limit.
    pub hop_limit: u8,
    /// Length in bytes, IP header included; taken from the frame if the header has no length.
    pub length: u32,
    /// Bytes of the IP header and its extension headers.
    pub header: u32,
    /// Position of the fragment in its packet.
    pub fragment: Fragment,
    /// The identification shared by the fragments of one packet.
    pub identification: u32,
    /// Source and destination port, if the protocol has ports and they were captured.
    pub ports: Option<(u16, u16)>,
}

/// An IP packet: the innermost of its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Number of its frame in the capture, from 1; frames of all kinds count.
    pub number: u64,
    /// Picoseconds since 1970.
    pub time: i128,
    /// Fields of its IP header.
    pub ip: Ip,
    /// Bytes of the frame on the wire.
    pub frame_length: u32,
    /// Captured bytes from its IP header on.
    pub octets: &'a [u8],
}
