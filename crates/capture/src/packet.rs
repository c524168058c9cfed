//! An IP packet of a capture.

use std::net::IpAddr;

pub use anabranch_wire::Fragment;

/// What the IP header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ip {
    /// The sender.
    pub source: IpAddr,
    /// The receiver.
    pub target: IpAddr,
    /// The protocol behind IP and its extension headers.
    pub protocol: u8,
    /// Time to live, or IPv6's hop limit.
    pub hop_limit: u8,
    /// Bytes, IP header included; from the frame where the header has no length.
    pub length: u32,
    /// Bytes of the IP header and its extension headers.
    pub header: u32,
    /// Which part of a packet it is.
    pub fragment: Fragment,
    /// What fragments of one packet have in common.
    pub identification: u32,
    /// Source and destination port, where there are ports and they were captured.
    pub ports: Option<(u16, u16)>,
}

/// An IP packet: the innermost of its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its number in the capture, from 1, frames of all kinds counted.
    pub number: u64,
    /// Picoseconds since 1970.
    pub time: i128,
    /// What its IP header says.
    pub ip: Ip,
    /// Bytes of the frame on the wire.
    pub frame_length: u32,
    /// What was captured of it, from its IP header on.
    pub octets: &'a [u8],
}
