//! An IP packet that is read and changed in place: IPv4 (RFC 791 §3.1), IPv6 (RFC 8200 §3) and its
//! extension headers (§4).
//!
//! [`IpPacket`] is the only reader of IP headers. It verifies little because captured packets may
//! be truncated anywhere and often have wrong checksums. [`decode_ip`](crate::decode_ip) adds the
//! checks of a receiver.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anabranch_core::packet::Ecn;

use super::{Protocol, Version};
use crate::{DecodeError, checksum::updated};

/// Octets of IPv4's header without options (RFC 791 §3.1).
pub(crate) const IPV4_HEADER: usize = 20;
/// Octets of IPv6's header without extension headers (RFC 8200 §3).
pub(crate) const IPV6_HEADER: usize = 40;
/// "Don't fragment" (RFC 791 §3.1).
pub(crate) const DONT_FRAGMENT: u16 = 1 << 14;
/// "More fragments", and the mask of the offset (RFC 791 §3.1).
const MORE_FRAGMENTS: u16 = 1 << 13;
const OFFSET: u16 = 0x1fff;

pub(crate) const ROUTING: u8 = 43;
pub(crate) const FRAGMENT: u8 = 44;
pub(crate) const ESP: u8 = 50;
pub(crate) const AUTHENTICATION: u8 = 51;
const NO_NEXT_HEADER: u8 = 59;
/// Maximum number of extension headers that are followed; no real packet has more.
const MOST_EXTENSIONS: usize = 32;

/// The position of a fragment in its packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fragment {
    /// The packet is not fragmented.
    Whole,
    /// The first fragment, which has the transport header.
    First,
    /// A later fragment.
    Later,
}

#[derive(Debug, Clone, Copy)]
enum Fixed<'a> {
    V4(&'a [u8; IPV4_HEADER]),
    V6(&'a [u8; IPV6_HEADER]),
}

/// An IP packet, or the part of it that is present.
#[derive(Debug, Clone, Copy)]
pub struct IpPacket<'a> {
    octets: &'a [u8],
    fixed: Fixed<'a>,
    header_len: usize,
    protocol: u8,
    fragment: Fragment,
    identification: u32,
}

impl<'a> IpPacket<'a> {
    /// Reads the headers of the packet that begins with `octets`. Extension headers are followed as
    /// far as they are present.
    ///
    /// # Errors
    /// [`DecodeError::IpTruncated`] if the fixed header is incomplete, [`DecodeError::Version`],
    /// and [`DecodeError::IpHeaderLength`] if IPv4's is below 20 octets.
    #[inline]
    pub fn read(octets: &'a [u8]) -> Result<Self, DecodeError> {
        match octets.first().ok_or(DecodeError::IpTruncated)? >> 4 {
            4 => Self::read_v4(octets),
            6 => Self::read_v6(octets),
            _ => Err(DecodeError::Version),
        }
    }

    #[inline]
    fn read_v4(octets: &'a [u8]) -> Result<Self, DecodeError> {
        let fixed: &[u8; IPV4_HEADER] = octets.first_chunk().ok_or(DecodeError::IpTruncated)?;
        let header_len = usize::from(fixed[0] & 15) * 4;
        if header_len < IPV4_HEADER {
            return Err(DecodeError::IpHeaderLength);
        }
        let field = be16(fixed, 6);
        Ok(Self {
            octets,
            fixed: Fixed::V4(fixed),
            header_len,
            protocol: fixed[9],
            fragment: fragment(field & OFFSET, field & MORE_FRAGMENTS != 0),
            identification: be16(fixed, 4).into(),
        })
    }

    #[inline]
    fn read_v6(octets: &'a [u8]) -> Result<Self, DecodeError> {
        let fixed: &[u8; IPV6_HEADER] = octets.first_chunk().ok_or(DecodeError::IpTruncated)?;
        let mut packet = Self {
            octets,
            fixed: Fixed::V6(fixed),
            header_len: IPV6_HEADER,
            protocol: fixed[6],
            fragment: Fragment::Whole,
            identification: 0,
        };
        if extension_len(packet.protocol, 0).is_some() {
            packet.follow_extensions();
        }
        Ok(packet)
    }

    /// Follows extension headers up to the transport header. A later fragment has none, so the
    /// search ends there.
    fn follow_extensions(&mut self) {
        let mut extensions = self.extensions();
        while self.fragment != Fragment::Later
            && let Some((kind, header)) = extensions.next()
        {
            if kind == FRAGMENT {
                let Some(&[_, _, high, low, a, b, c, d]) = header.first_chunk() else {
                    return;
                };
                let field = u16::from_be_bytes([high, low]);
                self.fragment = fragment(field >> 3, field & 1 != 0);
                self.identification = u32::from_be_bytes([a, b, c, d]);
            }
            self.protocol = extensions.kind;
            self.header_len = extensions.at;
        }
    }

    /// The extension headers of IPv6.
    pub(crate) const fn extensions(&self) -> Extensions<'a> {
        Extensions {
            octets: self.octets,
            at: IPV6_HEADER,
            kind: self.next_header(),
            left: match self.fixed {
                Fixed::V4(_) => 0,
                Fixed::V6(_) => MOST_EXTENSIONS,
            },
        }
    }

    pub(super) fn version(&self) -> Version {
        match self.fixed {
            Fixed::V4(fixed) => Version::V4 {
                source: octets_at(fixed, 12),
                destination: octets_at(fixed, 16),
                identification: be16(fixed, 4),
                dont_fragment: self.dont_fragment(),
            },
            Fixed::V6(fixed) => Version::V6 {
                source: octets_at(fixed, 8),
                destination: octets_at(fixed, 24),
                flow_label: u32::from_be_bytes([0, fixed[1] & 15, fixed[2], fixed[3]]),
            },
        }
    }

    /// Whether it is an IPv6 packet.
    #[must_use]
    #[inline]
    pub const fn is_v6(&self) -> bool {
        matches!(self.fixed, Fixed::V6(_))
    }

    /// The source address.
    #[must_use]
    #[inline]
    pub fn source(&self) -> IpAddr {
        match self.fixed {
            Fixed::V4(fixed) => Ipv4Addr::from(octets_at::<4, 20>(fixed, 12)).into(),
            Fixed::V6(fixed) => Ipv6Addr::from(octets_at::<16, 40>(fixed, 8)).into(),
        }
    }

    /// The destination address.
    #[must_use]
    #[inline]
    pub fn destination(&self) -> IpAddr {
        match self.fixed {
            Fixed::V4(fixed) => Ipv4Addr::from(octets_at::<4, 20>(fixed, 16)).into(),
            Fixed::V6(fixed) => Ipv6Addr::from(octets_at::<16, 40>(fixed, 24)).into(),
        }
    }

    /// Source and destination address as octets, 8 or 32.
    #[must_use]
    #[inline]
    pub fn addresses(&self) -> &'a [u8] {
        match self.fixed {
            Fixed::V4(fixed) => &fixed[12..],
            Fixed::V6(fixed) => &fixed[8..],
        }
    }

    /// Type of service or traffic class: DSCP and ECN field.
    #[must_use]
    #[inline]
    pub const fn traffic_class(&self) -> u8 {
        match self.fixed {
            Fixed::V4(fixed) => fixed[1],
            Fixed::V6(fixed) => fixed[0] << 4 | fixed[1] >> 4,
        }
    }

    /// Differentiated services code point (RFC 2474).
    #[must_use]
    #[inline]
    pub const fn dscp(&self) -> u8 {
        self.traffic_class() >> 2
    }

    /// ECN field (RFC 3168 §5).
    #[must_use]
    #[inline]
    pub const fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.traffic_class())
    }

    /// Time to live, or hop limit.
    #[must_use]
    #[inline]
    pub const fn hop_limit(&self) -> u8 {
        match self.fixed {
            Fixed::V4(fixed) => fixed[8],
            Fixed::V6(fixed) => fixed[7],
        }
    }

    /// Whether routers must not fragment the packet. In IPv6 they never do (RFC 8200 §5).
    #[must_use]
    pub const fn dont_fragment(&self) -> bool {
        match self.fixed {
            Fixed::V4(fixed) => be16(fixed, 6) & DONT_FRAGMENT != 0,
            Fixed::V6(_) => true,
        }
    }

    /// The protocol field of the fixed header, which in IPv6 may be an extension header's number.
    #[must_use]
    #[inline]
    pub const fn next_header(&self) -> u8 {
        match self.fixed {
            Fixed::V4(fixed) => fixed[9],
            Fixed::V6(fixed) => fixed[6],
        }
    }

    /// Number of the protocol after all IP headers, or of the first incomplete extension header.
    #[must_use]
    #[inline]
    pub const fn protocol(&self) -> u8 {
        self.protocol
    }

    /// Octets of the IP headers including extension headers, also if they are only partly present.
    #[must_use]
    #[inline]
    pub const fn header_len(&self) -> usize {
        self.header_len
    }

    /// Length of the packet according to its header; `None` if the field is zero, as in jumbograms
    /// (RFC 2675) and with segmentation offload.
    #[must_use]
    #[inline]
    pub const fn length(&self) -> Option<usize> {
        match self.fixed {
            Fixed::V4(fixed) => match be16(fixed, 2) {
                0 => None,
                length => Some(length as usize),
            },
            Fixed::V6(fixed) => match be16(fixed, 4) {
                0 if fixed[6] != NO_NEXT_HEADER => None,
                length => Some(IPV6_HEADER + length as usize),
            },
        }
    }

    /// The position of this fragment.
    #[must_use]
    #[inline]
    pub const fn fragment(&self) -> Fragment {
        self.fragment
    }

    /// The identification shared by the fragments of a packet; 0 for an IPv6 packet without a
    /// fragment header.
    #[must_use]
    #[inline]
    pub const fn identification(&self) -> u32 {
        self.identification
    }

    /// Octets after the IP headers, without a link's padding; fewer if the packet is truncated.
    /// `None` if the headers are incomplete or the length is impossible.
    #[must_use]
    #[inline]
    pub fn payload(&self) -> Option<&'a [u8]> {
        let end = self.length()?.min(self.octets.len());
        self.octets.get(self.header_len..end)
    }

    /// Source and destination port; `None` if the protocol has none, for a later fragment, and if
    /// they are not present.
    #[must_use]
    #[inline]
    pub fn ports(&self) -> Option<[u16; 2]> {
        if !Protocol::from_number(self.protocol).has_ports() || self.fragment == Fragment::Later {
            return None;
        }
        let &[a, b, c, d] = self.octets.get(self.header_len..)?.first_chunk()?;
        Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
    }
}

/// Position of a fragment by its offset and the "more fragments" flag.
const fn fragment(offset: u16, is_followed: bool) -> Fragment {
    match (offset, is_followed) {
        (0, false) => Fragment::Whole,
        (0, true) => Fragment::First,
        _ => Fragment::Later,
    }
}

/// Octets of an extension header of this kind with this length field; `None` if the kind is not an
/// extension header.
pub(crate) const fn extension_len(kind: u8, field: u8) -> Option<usize> {
    match kind {
        // Hop-by-hop, routing, destination (RFC 8200 §4.3, §4.4, §4.6), mobility (RFC 6275), HIP
        // (RFC 7401), shim6 (RFC 5533).
        0 | ROUTING | 60 | 135 | 139 | 140 => Some((field as usize + 1) * 8),
        FRAGMENT => Some(8),
        // RFC 4302 §2.2.
        AUTHENTICATION => Some((field as usize + 2) * 4),
        _ => None,
    }
}

/// Iterator over extension headers: the kind, and the octets present from its beginning. Afterwards
/// `kind` and `at` describe the header after the last one returned.
#[derive(Debug)]
pub(crate) struct Extensions<'a> {
    octets: &'a [u8],
    at: usize,
    kind: u8,
    left: usize,
}

impl<'a> Iterator for Extensions<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let header = self.octets.get(self.at..)?;
        let &[next, field] = header.first_chunk()?;
        let kind = self.kind;
        self.at += extension_len(kind, field)?;
        self.kind = next;
        Some((kind, header))
    }
}

/// Writes the ECN field and corrects the IPv4 checksum. Octets that are not an IP header are not
/// changed.
pub fn set_ecn(packet: &mut [u8], ecn: Ecn) {
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            if let Some(header) = packet.first_chunk_mut::<IPV4_HEADER>() {
                set_word(header, 0, [header[0], header[1] & !3 | ecn as u8]);
            }
        }
        Some(6) if packet.len() >= IPV6_HEADER => {
            packet[1] = packet[1] & !0x30 | (ecn as u8) << 4;
        }
        _ => {}
    }
}

/// Decrements the time to live or hop limit by `hops`, at most to 0, and corrects the IPv4
/// checksum. Octets that are not an IP header are not changed.
pub fn take_hops(packet: &mut [u8], hops: u8) {
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            if let Some(header) = packet.first_chunk_mut::<IPV4_HEADER>() {
                set_word(header, 8, [header[8].saturating_sub(hops), header[9]]);
            }
        }
        Some(6) if packet.len() >= IPV6_HEADER => packet[7] = packet[7].saturating_sub(hops),
        _ => {}
    }
}

/// Writes a word of the IPv4 header and updates the checksum.
fn set_word(header: &mut [u8; IPV4_HEADER], at: usize, word: [u8; 2]) {
    let checksum = updated(be16(header, 10), be16(header, at), u16::from_be_bytes(word));
    header[at..at + 2].copy_from_slice(&word);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Reads a 16-bit number at `at`.
#[inline]
pub(crate) const fn be16(octets: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([octets[at], octets[at + 1]])
}

/// The `N` octets from `at` on.
#[inline]
fn octets_at<const N: usize, const M: usize>(octets: &[u8; M], at: usize) -> [u8; N] {
    // `array::from_fn` is not inlined here.
    octets[at..].first_chunk().copied().unwrap_or([0; N])
}
