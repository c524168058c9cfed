//! The network's header: IPv4 (RFC 791 §3.1) and IPv6 (RFC 8200 §3).

use anabranch_core::packet::Ecn;

use super::{Checksum, DecodeError, EncodeError};

const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
/// RFC 791 §3.1: "do not fragment".
const DONT_FRAGMENT: u16 = 1 << 14;
/// RFC 791 §3.1: "more fragments", and the offset.
const MORE_OR_OFFSET: u16 = 0x3fff;

/// What differs between the two.
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
        /// Not to be fragmented on the way, as path MTU discovery (RFC 1191) wants it.
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
    /// Addresses, and what else differs.
    pub version: Version,
    /// Differentiated services code point, 6 bits (RFC 2474).
    pub dscp: u8,
    /// ECN field (RFC 3168 §5).
    pub ecn: Ecn,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
}

/// What a packet carries.
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
    const fn from_number(number: u8) -> Self {
        match number {
            6 => Self::Tcp,
            17 => Self::Udp,
            other => Self::Other(other),
        }
    }
}

/// Payload to write.
#[derive(Debug, Clone, Copy)]
pub enum Carried<'a> {
    /// These octets.
    Octets(&'a [u8]),
    /// So many zeros.
    Zeros(usize),
}

impl Carried<'_> {
    /// How many octets.
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
    /// The octets that stand before DSCP and ECN are told apart (RFC 3168 §5).
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
            let mut sum = Checksum::default();
            sum.add(&out[start..]);
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

/// Takes a packet apart: its header, what it carries, and that.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn decode_ip(packet: &[u8]) -> Result<(IpHeader, Protocol, &[u8]), DecodeError> {
    match packet.first().ok_or(DecodeError::IpTruncated)? >> 4 {
        4 => decode_v4(packet),
        6 => decode_v6(packet),
        _ => Err(DecodeError::Version),
    }
}

fn decode_v4(packet: &[u8]) -> Result<(IpHeader, Protocol, &[u8]), DecodeError> {
    let fixed: &[u8; IPV4_HEADER] = packet.first_chunk().ok_or(DecodeError::IpTruncated)?;
    let header_len = usize::from(fixed[0] & 15) * 4;
    let header = packet
        .get(..header_len)
        .filter(|header| header.len() >= IPV4_HEADER)
        .ok_or(DecodeError::IpHeaderLength)?;
    let mut sum = Checksum::default();
    sum.add(header);
    if !sum.holds() {
        return Err(DecodeError::IpChecksum);
    }
    let total = usize::from(be16(fixed, 2));
    let payload = packet.get(header_len..total).ok_or(DecodeError::IpLength)?;
    let fragment = be16(fixed, 6);
    if fragment & MORE_OR_OFFSET != 0 {
        return Err(DecodeError::Fragment);
    }
    let address = |at| std::array::from_fn(|i| fixed[at + i]);
    let ip = IpHeader {
        version: Version::V4 {
            source: address(12),
            destination: address(16),
            identification: be16(fixed, 4),
            dont_fragment: fragment & DONT_FRAGMENT != 0,
        },
        dscp: fixed[1] >> 2,
        ecn: Ecn::from_bits(fixed[1]),
        hop_limit: fixed[8],
    };
    Ok((ip, Protocol::from_number(fixed[9]), payload))
}

fn decode_v6(packet: &[u8]) -> Result<(IpHeader, Protocol, &[u8]), DecodeError> {
    let fixed: &[u8; IPV6_HEADER] = packet.first_chunk().ok_or(DecodeError::IpTruncated)?;
    let len = usize::from(be16(fixed, 4));
    let mut payload = packet
        .get(IPV6_HEADER..IPV6_HEADER + len)
        .ok_or(DecodeError::IpLength)?;
    let mut next = fixed[6];
    loop {
        match next {
            // Hop-by-hop options, routing, destination options (RFC 8200 §4.3, §4.4, §4.6).
            0 | 43 | 60 => {
                let [following, words, ..] = *payload else {
                    return Err(DecodeError::Extension);
                };
                // A route that is not at its end is not ours to follow (RFC 8200 §4.4).
                if next == 43
                    && payload
                        .get(3)
                        .is_none_or(|&segments_left| segments_left > 0)
                {
                    return Err(DecodeError::Extension);
                }
                payload = payload
                    .get((usize::from(words) + 1) * 8..)
                    .ok_or(DecodeError::Extension)?;
                next = following;
            }
            44 => return Err(DecodeError::Fragment),
            // Authentication and encryption: nobody here has the keys (RFC 4302, RFC 4303).
            50 | 51 => return Err(DecodeError::Extension),
            _ => break,
        }
    }
    let address = |at| std::array::from_fn(|i| fixed[at + i]);
    let class = fixed[0] << 4 | fixed[1] >> 4;
    let ip = IpHeader {
        version: Version::V6 {
            source: address(8),
            destination: address(24),
            flow_label: u32::from_be_bytes([0, fixed[1] & 15, fixed[2], fixed[3]]),
        },
        dscp: class >> 2,
        ecn: Ecn::from_bits(class),
        hop_limit: fixed[7],
    };
    Ok((ip, Protocol::from_number(next), payload))
}

/// The number that begins at `at`.
pub(super) const fn be16(octets: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([octets[at], octets[at + 1]])
}
