//! ICMP messages of hosts and routers (RFC 792, RFC 4443): errors about packets that are not
//! forwarded or delivered, and echo replies.

use core::net::IpAddr;

use anabranch_core::packet::Ecn;

use crate::{Checksum, Fragment, IpHeader, IpPacket, Protocol, Version, encode_ip};

/// ICMP (RFC 792) and ICMPv6 (RFC 4443) as protocols of IP.
const V4: Protocol = Protocol::Other(1);
const V6: Protocol = Protocol::Other(58);
/// Octets of an ICMP message before its data.
const HEADER: usize = 8;
/// Maximum octets of an error's packet (RFC 1812 §4.3.2.3, RFC 4443 §2.4 (c)).
const MOST_V4: usize = 576;
const MOST_V6: usize = 1280;
/// Time to live of a message.
const HOPS: u8 = 64;
/// The class selector of internetwork control (RFC 1812 §4.3.2.5).
const CONTROL: u8 = 48;

/// An error about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// The packet exceeds the MTU of a link: "fragmentation needed" (RFC 1191 §4), "packet too big"
    /// (RFC 4443 §3.2).
    TooBig {
        /// MTU of the link in octets.
        mtu: u32,
    },
    /// The destination cannot be reached, by this code of IPv4 (RFC 792); over IPv6 the address is
    /// unreachable (RFC 4443 §3.1).
    Unreachable {
        /// The code.
        code: u8,
    },
    /// Its hop limit is used up (RFC 1812 §5.3.1, RFC 4443 §3.3).
    TimeExceeded,
    /// The host has no such port (RFC 1122 §3.2.2.1, RFC 4443 §3.1).
    PortUnreachable,
    /// The host has no such protocol (RFC 1122 §3.2.2.1, RFC 4443 §3.4).
    ProtocolUnreachable,
}

impl Error {
    /// Type, code, a checksum field of zero, and the word after it.
    fn header(self, is_v6: bool) -> [u8; HEADER] {
        let (kind, code, word) = match (self, is_v6) {
            (Self::TooBig { mtu }, false) => (3, 4, mtu.min(0xffff)),
            (Self::TooBig { mtu }, true) => (2, 0, mtu),
            (Self::Unreachable { code }, false) => (3, code, 0),
            (Self::Unreachable { .. }, true) => (1, 3, 0),
            (Self::TimeExceeded, false) => (11, 0, 0),
            (Self::TimeExceeded, true) => (3, 0, 0),
            (Self::PortUnreachable, false) => (3, 3, 0),
            (Self::PortUnreachable, true) => (1, 4, 0),
            (Self::ProtocolUnreachable, false) => (3, 2, 0),
            // The pointer is to the field "next header".
            (Self::ProtocolUnreachable, true) => (4, 1, 6),
        };
        let [a, b, c, d] = word.to_be_bytes();
        [kind, code, 0, 0, a, b, c, d]
    }

    /// Returns the message from `from` to the sender of `packet`, quoting the packet up to the size
    /// limit. `None` if no error may be sent (RFC 1122 §3.2.2, RFC 4443 §2.4 (e)): about an ICMP
    /// error, a later fragment, a packet from or to more than one host, and octets that are not a
    /// packet of `from`'s IP version.
    #[must_use]
    pub fn about(self, packet: &[u8], from: IpAddr) -> Option<Vec<u8>> {
        let ip = IpPacket::read(packet).ok()?;
        let (source, destination) = (ip.source(), ip.destination());
        let is_error = is_icmp(&ip) && !ip.payload().is_some_and(|icmp| is_query(icmp, ip.is_v6()));
        if is_error
            || ip.fragment() == Fragment::Later
            || source.is_unspecified()
            || is_group(source)
            || is_group(destination)
        {
            return None;
        }
        let most = if ip.is_v6() {
            MOST_V6 - 40
        } else {
            MOST_V4 - 20
        };
        let quoted = &packet[..packet.len().min(most - HEADER)];
        let message = [&self.header(ip.is_v6()), quoted].concat();
        let dscp = match self {
            Self::TooBig { .. } => 0,
            _ => CONTROL,
        };
        write([from, source], (dscp, Ecn::NotEct), message)
    }
}

/// A router's reaction to a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reaction {
    /// It sends this packet.
    Answer(Vec<u8>),
    /// It sends this error, subject to a rate limit.
    Error(Vec<u8>),
    /// It discards the packet.
    Silence,
}

/// Reaction of a router with these addresses (IPv4 and IPv6) to a packet that is addressed to it or
/// whose hop limit is used up.
#[must_use]
pub fn at_router(packet: &[u8], addresses: [IpAddr; 2]) -> Reaction {
    let Ok(ip) = IpPacket::read(packet) else {
        return Reaction::Silence;
    };
    let own = addresses[usize::from(ip.is_v6())];
    let error = if ip.destination() != own {
        Error::TimeExceeded
    } else if is_icmp(&ip) {
        return echo_reply(&ip).map_or(Reaction::Silence, Reaction::Answer);
    } else if Protocol::from_number(ip.protocol()) == Protocol::Udp {
        Error::PortUnreachable
    } else {
        Error::ProtocolUnreachable
    };
    error
        .about(packet, own)
        .map_or(Reaction::Silence, Reaction::Error)
}

/// Returns the reply to a complete echo request (RFC 792, RFC 4443 §4.2) with the request's DSCP
/// and ECN field; `None` for other messages.
fn echo_reply(request: &IpPacket<'_>) -> Option<Vec<u8>> {
    let (asks, answers) = if request.is_v6() { (128, 129) } else { (8, 0) };
    let mut message = request.payload()?.to_vec();
    if message.first() != Some(&asks) || request.fragment() != Fragment::Whole {
        return None;
    }
    message[0] = answers;
    write(
        [request.destination(), request.source()],
        (request.dscp(), request.ecn()),
        message,
    )
}

fn is_icmp(packet: &IpPacket<'_>) -> bool {
    let protocol = if packet.is_v6() { V6 } else { V4 };
    packet.protocol() == protocol.number()
}

/// Whether an ICMP message is not an error: echo, timestamp, information and their replies
/// (RFC 792), or types from 128 (RFC 4443 §2.1).
fn is_query(message: &[u8], is_v6: bool) -> bool {
    message.first().is_some_and(|&kind| {
        if is_v6 {
            kind >= 128
        } else {
            matches!(kind, 0 | 8 | 13..=16)
        }
    })
}

/// Whether an address denotes more than one host.
fn is_group(address: IpAddr) -> bool {
    address.is_multicast() || matches!(address, IpAddr::V4(v4) if v4.is_broadcast())
}

/// Builds a message between two addresses with its checksum. The checksum of ICMPv6 covers the
/// pseudo-header (RFC 4443 §2.3).
fn write(
    [source, destination]: [IpAddr; 2],
    (dscp, ecn): (u8, Ecn),
    mut message: Vec<u8>,
) -> Option<Vec<u8>> {
    let ip = IpHeader {
        version: Version::between(source, destination)?,
        dscp,
        ecn,
        hop_limit: HOPS,
    };
    let (protocol, mut sum) = match ip.version {
        Version::V4 { .. } => (V4, Checksum::default()),
        Version::V6 { .. } => (V6, ip.pseudo_header(V6, message.len())),
    };
    message.get_mut(2..4)?.fill(0);
    sum.add(&message);
    message
        .get_mut(2..4)?
        .copy_from_slice(&sum.finish().to_be_bytes());
    let mut packet = Vec::with_capacity(ip.version.header_len() + message.len());
    encode_ip(&ip, protocol, message.len(), &mut packet).ok()?;
    packet.append(&mut message);
    Some(packet)
}
