//! IP packets inside the tunnel: which flow they belong to, who sent them, and the MSS option of TCP.

use anabranch_core::packet::Ecn;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Flows: senders hash into as many.
pub const FLOWS: u16 = 1_024;
const TCP: u8 = 6;
const UDP: u8 = 17;
const SYN: u8 = 2;
/// The option "maximum segment size" (RFC 9293 §3.2).
const MSS_KIND: u8 = 2;

/// What is read of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// The source address.
    pub source: IpAddr,
    /// The destination address.
    pub destination: IpAddr,
    /// The code point (RFC 2474).
    pub dscp: u8,
    /// Source and destination port of TCP and UDP, if this packet has them.
    pub ports: Option<[u16; 2]>,
    /// The flow, below [`FLOWS`].
    pub flow: u16,
    /// Where the transport header begins, if this packet has it.
    transport: Option<(u8, usize)>,
}

/// Whether a packet is one of TCP.
#[must_use]
pub fn is_tcp(packet: &[u8]) -> bool {
    let protocol = match packet.first().map(|first| first >> 4) {
        Some(4) => packet.get(9),
        Some(6) => packet.get(6),
        _ => None,
    };
    protocol == Some(&TCP)
}

/// Reads a packet. `None` where it is not one whole IPv4 or IPv6 packet.
#[must_use]
pub fn read(packet: &[u8]) -> Option<Summary> {
    match packet.first()? >> 4 {
        4 => read_v4(packet),
        6 => read_v6(packet),
        _ => None,
    }
}

/// The length of a packet by its header: there may be more behind it.
#[must_use]
pub fn length(packet: &[u8]) -> Option<usize> {
    let word = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    match packet.first()? >> 4 {
        4 => Some(word(2)?.into()),
        6 => Some(usize::from(word(4)?) + 40),
        _ => None,
    }
}

/// The ECN field.
#[must_use]
pub fn ecn(packet: &[u8]) -> Ecn {
    let field = match packet.first().map(|first| first >> 4) {
        Some(4) => packet.get(1).copied(),
        Some(6) => packet.get(1).map(|second| second >> 4),
        _ => None,
    };
    field.map_or(Ecn::NotEct, Ecn::from_bits)
}

/// The ECN field of a packet that arrived with `inner` in a datagram with `outer` (RFC 6040 §4.2 figure 4). `None`: it is to be dropped.
#[must_use]
pub const fn decapsulated(inner: Ecn, outer: Ecn) -> Option<Ecn> {
    match (inner, outer) {
        (Ecn::NotEct, Ecn::Ce) => None,
        (Ecn::NotEct, _) => Some(Ecn::NotEct),
        (Ecn::Ce, _) | (_, Ecn::Ce) => Some(Ecn::Ce),
        (Ecn::Ect0, Ecn::Ect1) => Some(Ecn::Ect1),
        (Ecn::Ect0 | Ecn::Ect1, _) => Some(inner),
    }
}

/// Writes the ECN field of a packet that [`read`] takes.
pub fn set_ecn(packet: &mut [u8], ecn: Ecn) {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 => {
            let word = |packet: &[u8]| u16::from_be_bytes([packet[0], packet[1]]);
            let old = word(packet);
            packet[1] = packet[1] & !3 | ecn as u8;
            let checksum = u16::from_be_bytes([packet[10], packet[11]]);
            let checksum = updated(checksum, old, word(packet));
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        Some(6) if packet.len() >= 40 => packet[1] = packet[1] & !0x30 | (ecn as u8) << 4,
        _ => {}
    }
}

/// A checksum after a word that it covers has changed: RFC 1624 equation 3.
fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !u16::try_from(sum).unwrap_or(0)
}

fn read_v4(packet: &[u8]) -> Option<Summary> {
    let head = packet.first_chunk::<20>()?;
    let length = usize::from(head[0] & 15) * 4;
    if length < 20
        || usize::from(u16::from_be_bytes([head[2], head[3]])) != packet.len()
        || packet.len() < length
    {
        return None;
    }
    // Fragments after the first have no ports, so that none of them is read.
    let is_fragment = u16::from_be_bytes([head[6], head[7]]) & 0x3fff != 0;
    let protocol = head[9];
    let transport = (!is_fragment).then_some((protocol, length));
    let address = |at: usize| Ipv4Addr::new(head[at], head[at + 1], head[at + 2], head[at + 3]);
    let ports = ports(packet, transport);
    Some(Summary {
        source: address(12).into(),
        destination: address(16).into(),
        dscp: head[1] >> 2,
        ports: ports.copied().map(numbers),
        flow: hash(&head[12..20], protocol, ports),
        transport,
    })
}

fn read_v6(packet: &[u8]) -> Option<Summary> {
    let head = packet.first_chunk::<40>()?;
    if usize::from(u16::from_be_bytes([head[4], head[5]])) + 40 != packet.len() {
        return None;
    }
    let transport = Some((head[6], 40));
    let source: [u8; 16] = *head[8..].first_chunk()?;
    let destination: [u8; 16] = *head[24..].first_chunk()?;
    let ports = ports(packet, transport);
    Some(Summary {
        source: Ipv6Addr::from(source).into(),
        destination: Ipv6Addr::from(destination).into(),
        dscp: (head[0] << 2 | head[1] >> 6) & 0x3f,
        ports: ports.copied().map(numbers),
        flow: hash(&head[8..40], head[6], ports),
        transport,
    })
}

fn ports(packet: &[u8], transport: Option<(u8, usize)>) -> Option<&[u8; 4]> {
    match transport {
        Some((TCP | UDP, at)) => packet.get(at..)?.first_chunk(),
        _ => None,
    }
}

fn numbers([a, b, c, d]: [u8; 4]) -> [u16; 2] {
    [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]
}

/// FNV-1a, folded to the number of flows.
fn hash(addresses: &[u8], protocol: u8, ports: Option<&[u8; 4]>) -> u16 {
    let protocol = [protocol];
    let octets = addresses
        .iter()
        .chain(&protocol)
        .chain(ports.into_iter().flatten());
    let hash = octets.fold(0x811c_9dc5_u32, |hash, &octet| {
        (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193)
    });
    u16::try_from((hash ^ (hash >> 16)) % u32::from(FLOWS)).unwrap_or(0)
}

/// Lowers the MSS option of a SYN, so that segments fit into packets of `mtu` octets (RFC 4459 §3.2); whether it did.
pub fn clamp_mss(packet: &mut [u8], summary: &Summary, mtu: usize) -> bool {
    let Some((TCP, at)) = summary.transport else {
        return false;
    };
    let headers = if summary.source.is_ipv4() { 40 } else { 60 };
    let Ok(limit) = u16::try_from(mtu.saturating_sub(headers)) else {
        return false;
    };
    let Some(tcp) = packet.get_mut(at..) else {
        return false;
    };
    let Some(option) = mss_option(tcp) else {
        return false;
    };
    let old = u16::from_be_bytes([tcp[option], tcp[option + 1]]);
    if old <= limit {
        return false;
    }
    // An option at an odd place has its octets in two words of the checksum.
    let word = |value: u16| {
        if option % 2 == 0 {
            value
        } else {
            value.swap_bytes()
        }
    };
    let checksum = u16::from_be_bytes([tcp[16], tcp[17]]);
    let checksum = updated(checksum, word(old), word(limit));
    tcp[option..option + 2].copy_from_slice(&limit.to_be_bytes());
    tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
    true
}

/// Where the value of a SYN's MSS option stands.
fn mss_option(tcp: &[u8]) -> Option<usize> {
    let end = usize::from(tcp.get(12)? >> 4) * 4;
    if tcp.get(13)? & SYN == 0 || end < 20 || tcp.len() < end {
        return None;
    }
    let mut at = 20;
    while at < end {
        match tcp[at] {
            0 => return None,
            1 => at += 1,
            kind => {
                let length = usize::from(*tcp.get(at + 1)?);
                if length < 2 || at + length > end {
                    return None;
                }
                if kind == MSS_KIND && length == 4 {
                    return Some(at + 2);
                }
                at += length;
            }
        }
    }
    None
}

/// A prefix of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    address: u128,
    length: u32,
    is_v4: bool,
}

impl Prefix {
    /// `address/length`; `None` where the length is too great, or the address has bits beyond it.
    #[must_use]
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let (bits, width, is_v4) = bits(address);
        let length = u32::from(length);
        let beyond = bits.checked_shl(length).unwrap_or(0);
        (length <= width && beyond == 0).then_some(Self {
            address: bits,
            length,
            is_v4,
        })
    }

    /// Whether it contains `address`.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let (bits, _, is_v4) = bits(address);
        is_v4 == self.is_v4
            && (bits ^ self.address)
                .checked_shr(128 - self.length)
                .unwrap_or(0)
                == 0
    }

    /// Whether some address is in both: two peers must not have such prefixes.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let length = self.length.min(other.length);
        let differ = (self.address ^ other.address)
            .checked_shr(128 - length)
            .unwrap_or(0);
        self.is_v4 == other.is_v4 && differ == 0
    }
}

/// An address at the high end of 128 bits, and its width.
fn bits(address: IpAddr) -> (u128, u32, bool) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32, true),
        IpAddr::V6(address) => (address.to_bits(), 128, false),
    }
}
