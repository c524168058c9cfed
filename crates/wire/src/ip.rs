//! The header of IP: IPv4 (RFC 791 §3.1) and IPv6 (RFC 8200 §3).

use anabranch_core::packet::Ecn;

use crate::{Checksum, DecodeError, EncodeError};
use core::net::IpAddr;
use packet::{
    AUTHENTICATION, DONT_FRAGMENT, ESP, FRAGMENT, IPV4_HEADER, IPV6_HEADER, ROUTING, extension_len,
};

mod packet;

pub(crate) use packet::be16;
pub use packet::{Fragment, IpPacket, set_ecn, take_hops};

/// The fields of one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// IPv4.
    V4 {
        /// Source address.
        source: [u8; 4],
        /// Destination address.
        destination: [u8; 4],
        /// Identification.
        identification: u16,
        /// "Don't fragment", as path MTU discovery needs it (RFC 1191).
        dont_fragment: bool,
    },
    /// IPv6.
    V6 {
        /// Source address.
        source: [u8; 16],
        /// Destination address.
        destination: [u8; 16],
        /// Flow label, 20 bits (RFC 6437).
        flow_label: u32,
    },
}

impl Version {
    /// Creates the fields for a packet between two addresses, with identification and flow label
    /// zero. `None` if the addresses differ in version.
    #[must_use]
    pub const fn between(source: IpAddr, destination: IpAddr) -> Option<Self> {
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Some(Self::V4 {
                source: source.octets(),
                destination: destination.octets(),
                identification: 0,
                dont_fragment: true,
            }),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Some(Self::V6 {
                source: source.octets(),
                destination: destination.octets(),
                flow_label: 0,
            }),
            _ => None,
        }
    }
    /// Source and destination address.
    #[must_use]
    pub fn addresses(&self) -> [IpAddr; 2] {
        match *self {
            Self::V4 {
                source,
                destination,
                ..
            } => [source.into(), destination.into()],
            Self::V6 {
                source,
                destination,
                ..
            } => [source.into(), destination.into()],
        }
    }
    /// Whether source and destination address equal destination and source address of `other`.
    #[must_use]
    pub fn answers(&self, other: &Self) -> bool {
        let [source, destination] = other.addresses();
        self.addresses() == [destination, source]
    }
    /// The MSS of a peer that sends no MSS option (RFC 9293 §3.7.1).
    #[must_use]
    pub const fn default_mss(&self) -> u16 {
        match self {
            Self::V4 { .. } => 536,
            Self::V6 { .. } => 1220,
        }
    }
    /// Octets of the header.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        match self {
            Self::V4 { .. } => IPV4_HEADER,
            Self::V6 { .. } => IPV6_HEADER,
        }
    }
}

/// A header of either version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpHeader {
    /// Addresses and the other fields of one version.
    pub version: Version,
    /// Differentiated services code point, 6 bits (RFC 2474).
    pub dscp: u8,
    /// ECN field (RFC 3168 §5).
    pub ecn: Ecn,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
}

/// The protocol of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// Another, by its number.
    Other(u8),
}

impl Protocol {
    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Other(number) => number,
        }
    }
    /// The protocol with this number.
    #[must_use]
    #[inline]
    pub const fn from_number(number: u8) -> Self {
        match number {
            6 => Self::Tcp,
            17 => Self::Udp,
            other => Self::Other(other),
        }
    }
    /// Whether its header begins with two ports: TCP, UDP, DCCP, SCTP and UDP-Lite.
    #[must_use]
    #[inline]
    pub const fn has_ports(self) -> bool {
        matches!(self, Self::Tcp | Self::Udp | Self::Other(33 | 132 | 136))
    }
}

/// Payload to write.
#[derive(Debug, Clone, Copy)]
pub enum Carried<'a> {
    /// These octets.
    Octets(&'a [u8]),
    /// This number of zeros.
    Zeros(usize),
}

impl Carried<'_> {
    /// The number of octets.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Octets(octets) => octets.len(),
            Self::Zeros(n) => *n,
        }
    }
    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
    pub(super) fn sum_into(&self, sum: &mut Checksum) {
        match self {
            Self::Octets(octets) => sum.add(octets),
            Self::Zeros(n) => sum.add_zeros(*n),
        }
    }
    pub(super) fn append_to(&self, out: &mut Vec<u8>, most: usize) {
        let n = self.len().min(most);
        match self {
            Self::Octets(octets) => out.extend_from_slice(&octets[..n]),
            Self::Zeros(_) => out.resize(out.len() + n, 0),
        }
    }
}

impl IpHeader {
    /// Copies the fields from a packet's header.
    #[must_use]
    pub fn of(packet: &IpPacket<'_>) -> Self {
        Self {
            version: packet.version(),
            dscp: packet.dscp(),
            ecn: packet.ecn(),
            hop_limit: packet.hop_limit(),
        }
    }

    /// DSCP and ECN field in one octet (RFC 3168 §5).
    const fn traffic_class(&self) -> u8 {
        self.dscp << 2 | self.ecn as u8
    }

    /// The pseudo-header (RFC 9293 §3.1, RFC 8200 §8.1) of `len` octets of `protocol`.
    #[must_use]
    pub fn pseudo_header(&self, protocol: Protocol, len: usize) -> Checksum {
        let mut sum = Checksum::default();
        match &self.version {
            Version::V4 {
                source,
                destination,
                ..
            } => {
                sum.add(source);
                sum.add(destination);
            }
            Version::V6 {
                source,
                destination,
                ..
            } => {
                sum.add(source);
                sum.add(destination);
            }
        }
        sum.add(&u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
        sum.add(&[0, protocol.number()]);
        sum
    }
}

/// Appends a header for `len` octets of `protocol`.
///
/// # Errors
/// If the length does not fit its field.
pub fn encode_ip(
    ip: &IpHeader,
    protocol: Protocol,
    len: usize,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let class = ip.traffic_class();
    match &ip.version {
        Version::V4 {
            source,
            destination,
            identification,
            dont_fragment,
        } => {
            let total = IPV4_HEADER + len;
            let total = u16::try_from(total).map_err(|_| EncodeError::Length(total))?;
            let fragment = if *dont_fragment { DONT_FRAGMENT } else { 0 };
            let start = out.len();
            out.extend_from_slice(&[0x45, class]);
            out.extend_from_slice(&total.to_be_bytes());
            out.extend_from_slice(&identification.to_be_bytes());
            out.extend_from_slice(&fragment.to_be_bytes());
            out.extend_from_slice(&[ip.hop_limit, protocol.number(), 0, 0]);
            out.extend_from_slice(source);
            out.extend_from_slice(destination);
            let sum = Checksum::of(&out[start..]);
            out[start + 10..start + 12].copy_from_slice(&sum.finish().to_be_bytes());
        }
        Version::V6 {
            source,
            destination,
            flow_label,
        } => {
            let payload = u16::try_from(len).map_err(|_| EncodeError::Length(IPV6_HEADER + len))?;
            let first = 6 << 28 | u32::from(class) << 20 | flow_label & 0xf_ffff;
            out.extend_from_slice(&first.to_be_bytes());
            out.extend_from_slice(&payload.to_be_bytes());
            out.extend_from_slice(&[protocol.number(), ip.hop_limit]);
            out.extend_from_slice(source);
            out.extend_from_slice(destination);
        }
    }
    Ok(())
}

/// Reads a packet with the checks of a receiver: header, protocol and payload. Extension headers
/// that need no processing (RFC 8200 §4) are skipped.
///
/// # Errors
/// Returns the first error, from the outermost header inward.
pub fn decode_ip(octets: &[u8]) -> Result<(IpHeader, Protocol, &[u8]), DecodeError> {
    let packet = IpPacket::read(octets)?;
    let header_len = packet.header_len();
    let incomplete = if packet.is_v6() {
        DecodeError::Extension
    } else {
        let header = octets
            .get(..header_len)
            .ok_or(DecodeError::IpHeaderLength)?;
        if !Checksum::of(header).holds() {
            return Err(DecodeError::IpChecksum);
        }
        DecodeError::IpLength
    };
    let length = packet
        .length()
        .filter(|&length| length <= octets.len())
        .ok_or(DecodeError::IpLength)?;
    for extension in packet.extensions() {
        match extension {
            // A packet on its way to another address (RFC 8200 §4.4), or one that needs a key
            // (RFC 4302).
            (ROUTING, octets) if octets.get(3).is_none_or(|&left| left > 0) => {
                return Err(DecodeError::Extension);
            }
            (AUTHENTICATION, _) => return Err(DecodeError::Extension),
            (FRAGMENT, _) => return Err(DecodeError::Fragment),
            _ => {}
        }
    }
    if packet.fragment() != Fragment::Whole {
        return Err(DecodeError::Fragment);
    }
    let payload = octets.get(header_len..length).ok_or(incomplete)?;
    let number = packet.protocol();
    if packet.is_v6() && (number == ESP || extension_len(number, 0).is_some()) {
        return Err(DecodeError::Extension);
    }
    Ok((
        IpHeader::of(&packet),
        Protocol::from_number(number),
        payload,
    ))
}
