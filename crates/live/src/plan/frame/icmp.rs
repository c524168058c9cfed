//! What routers write: errors to the senders of packets that they do not pass on, and answers to echo requests (RFC 792, RFC 4443).
//! A packet that is too big: RFC 1191 §4, RFC 4443 §3.2. One whose hop limit is used up: RFC 1812 §5.3.1.

use std::net::IpAddr;

use anabranch_wire::Checksum;

use super::Header;

/// Octets of an IPv4 message (RFC 1812 §4.3.2.3), and of one over IPv6, which is its least MTU.
const MOST_V4: usize = 576;
const MOST_V6: usize = 1280;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const HOPS: u8 = 64;
/// Internetwork control (RFC 1812 §4.3.2.5).
const CONTROL: u8 = 0xc0;

/// What an error says: type and code in each version of IP, and the four octets that follow the checksum.
#[derive(Debug, Clone, Copy)]
struct Error {
    v4: [u8; 2],
    v6: [u8; 2],
    rest_v4: [u8; 4],
    rest_v6: [u8; 4],
    class: u8,
}

impl Error {
    const fn plain(v4: [u8; 2], v6: [u8; 2]) -> Self {
        Self {
            v4,
            v6,
            rest_v4: [0; 4],
            rest_v6: [0; 4],
            class: CONTROL,
        }
    }
}

/// The message about `packet`, whole; `None` if that is no IP. It comes from the router, or from the packet's destination where there
/// is none.
pub(super) fn too_big(packet: &[u8], mtu: u32, router: Option<[IpAddr; 2]>) -> Option<Vec<u8>> {
    let [_, to] = Header::of(packet)?.addresses;
    let own = router.map(|addresses| octets_of(addresses, to.len() == 16));
    let [high, low] = u16::try_from(mtu).unwrap_or(u16::MAX).to_be_bytes();
    let error = Error {
        rest_v4: [0, 0, high, low],
        rest_v6: mtu.to_be_bytes(),
        class: 0,
        ..Error::plain([3, 4], [2, 0])
    };
    message(packet, error, own.as_deref().unwrap_or(to))
}

/// The address of one version of IP.
fn octets_of(addresses: [IpAddr; 2], is_v6: bool) -> Vec<u8> {
    match addresses[usize::from(is_v6)] {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// What a router does with a packet that ends there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It answers with this packet.
    Answer(Vec<u8>),
    /// The same with an error, of which there are only so many.
    Error(Vec<u8>),
    /// Nothing is said.
    Silence,
}

/// What a router of these addresses does with a packet that is for it, or that has used up its hop limit.
pub(super) fn at_router(packet: &[u8], addresses: [IpAddr; 2]) -> Verdict {
    let Some(header) = Header::of(packet) else {
        return Verdict::Silence;
    };
    let is_v6 = header.addresses[0].len() == 16;
    let own = octets_of(addresses, is_v6);
    let transport = packet
        .get(header.len..header.total.min(packet.len()))
        .unwrap_or_default();
    let (protocol, request, reply) = if is_v6 {
        (ICMPV6, 128, 129)
    } else {
        (ICMP, 8, 0)
    };
    let is_icmp = header.protocol == protocol;
    if header.addresses[1] == own {
        if is_icmp && transport.first() == Some(&request) {
            return echo(&header, transport, reply, packet)
                .map_or(Verdict::Silence, Verdict::Answer);
        }
        // Of UDP the port is unreachable; of anything else the protocol.
        let error = match header.protocol {
            super::UDP => Error::plain([3, 3], [1, 4]),
            _ => Error {
                // It points to the field `Next Header`.
                rest_v6: [0, 0, 0, 6],
                ..Error::plain([3, 2], [4, 1])
            },
        };
        return said(packet, &header, is_icmp, transport, error, &own);
    }
    said(
        packet,
        &header,
        is_icmp,
        transport,
        Error::plain([11, 0], [3, 0]),
        &own,
    )
}

/// An error, where there may be one: not about an error, nor about a later fragment (RFC 1812 §4.3.2.7, RFC 4443 §2.4).
fn said(
    packet: &[u8],
    header: &Header<'_>,
    is_icmp: bool,
    transport: &[u8],
    error: Error,
    own: &[u8],
) -> Verdict {
    let is_query = match (transport.first(), own.len()) {
        // Echo, timestamp and their answers.
        (Some(kind), 4) => matches!(kind, 0 | 8 | 13 | 14),
        (Some(kind), _) => *kind >= 128,
        (None, _) => false,
    };
    if header.is_later_fragment || (is_icmp && !is_query) {
        return Verdict::Silence;
    }
    message(packet, error, own).map_or(Verdict::Silence, Verdict::Error)
}

fn echo(header: &Header<'_>, request: &[u8], reply: u8, packet: &[u8]) -> Option<Vec<u8>> {
    let [from, to] = header.addresses;
    let mut body = request.to_vec();
    *body.first_mut()? = reply;
    body.get_mut(2..4)?.fill(0);
    Some(with_header(
        (to, from),
        &mut body,
        super::traffic_class(packet),
    ))
}

/// An error about `packet` from this address to its sender, which quotes as much of it as fits.
fn message(packet: &[u8], error: Error, own: &[u8]) -> Option<Vec<u8>> {
    let [from, _] = Header::of(packet)?.addresses;
    let is_v6 = from.len() == 16;
    let (kind, rest, most) = if is_v6 {
        (error.v6, error.rest_v6, MOST_V6 - 40 - 8)
    } else {
        (error.v4, error.rest_v4, MOST_V4 - 20 - 8)
    };
    let mut body = vec![kind[0], kind[1], 0, 0];
    body.extend(rest);
    body.extend_from_slice(&packet[..packet.len().min(most)]);
    Some(with_header((own, from), &mut body, error.class))
}

/// A message with its checksum, and the header of IP before it.
fn with_header((from, to): (&[u8], &[u8]), body: &mut [u8], class: u8) -> Vec<u8> {
    let is_v6 = from.len() == 16;
    let payload = length(body.len());
    // With the pseudo-header (RFC 8200 §8.1).
    let sum = if is_v6 {
        let upper = [0, 0, payload[0], payload[1], 0, 0, 0, ICMPV6];
        checksum(&[from, to, &upper, body])
    } else {
        checksum(&[body])
    };
    body[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut octets = if is_v6 {
        let mut header = vec![0; 8];
        header[0] = 0x60 | (class >> 4);
        header[1] = class << 4;
        header[4..6].copy_from_slice(&payload);
        header[6] = ICMPV6;
        header[7] = HOPS;
        header.extend_from_slice(from);
        header.extend_from_slice(to);
        header
    } else {
        let mut header = vec![0; 20];
        header[0] = 0x45;
        header[1] = class;
        header[2..4].copy_from_slice(&length(20 + body.len()));
        header[8] = HOPS;
        header[9] = ICMP;
        header[12..16].copy_from_slice(from);
        header[16..20].copy_from_slice(to);
        let sum = checksum(&[&header]);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        header
    };
    octets.extend_from_slice(body);
    octets
}

fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = Checksum::default();
    for part in parts {
        sum.add(part);
    }
    sum.finish()
}

fn length(octets: usize) -> [u8; 2] {
    u16::try_from(octets).unwrap_or(u16::MAX).to_be_bytes()
}
