//! An IP packet as the network carries it: octets, of which elements may look at the transport header. From an interface
//! it has its frame around it, and may be something else than IP.

mod icmp;

pub use icmp::Verdict;

use std::{borrow::Cow, net::IpAddr};

use anabranch_core::{
    body::Body,
    packet::{ConnectionId, Ecn},
};
use anabranch_path::host::Departing;
use anabranch_wire::transport::Transport;
use anabranch_wire::{Flags, Segment};

/// A whole IP packet. As a [`Body`] it is its payload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    octets: Vec<u8>,
    /// Octets before the IP packet: an interface's frame.
    before: u32,
    /// How many octets the transport's payload has.
    payload: u32,
    /// Octets behind it: what fills an interface's frame up.
    after: u32,
    /// Which of its flow's connections it is of, where that has been told.
    connection: Option<ConnectionId>,
}

impl Body for Frame {
    fn len(&self) -> u32 {
        self.payload
    }
    fn slice(&self, start: u32, len: u32) -> Self {
        let payload = self.octets().unwrap_or_default();
        Self::content(payload[start as usize..][..len as usize].to_vec())
    }
    fn filler(len: u32) -> Self {
        Self::content((0..=250).cycle().take(len as usize).collect())
    }
    fn from_octets(octets: &[u8], _len: u32) -> Self {
        Self::content(octets.to_vec())
    }
    fn append(&mut self, next: &Self) {
        self.octets
            .extend_from_slice(next.octets().unwrap_or_default());
        self.payload += next.payload;
    }
    fn octets(&self) -> Option<&[u8]> {
        let end = self.octets.len() - self.after as usize;
        Some(&self.octets[end - self.payload as usize..end])
    }
    fn connection(&self) -> Option<ConnectionId> {
        self.connection
    }
    fn ip_packet(&self, ecn: Ecn) -> Option<Cow<'_, [u8]>> {
        let before = self.before as usize;
        let packet = &self.octets[before..self.octets.len() - self.after as usize];
        Some(if is_ip(&self.octets, before) {
            marked(packet, 0, ecn)
        } else {
            Cow::default()
        })
    }
}

impl Frame {
    fn content(octets: Vec<u8>) -> Self {
        let payload = u32::try_from(octets.len()).expect("a body is far below 4 GiB");
        Self {
            octets,
            before: 0,
            payload,
            after: 0,
            connection: None,
        }
    }
    /// All of it, and where IP begins.
    fn whole(&self) -> (&[u8], usize) {
        (&self.octets, self.before as usize)
    }
}

/// Who sent a packet, who is to get it, and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    pub source: IpAddr,
    pub destination: IpAddr,
    /// Source and destination, over TCP and UDP; only the first fragment of a packet has them.
    pub ports: Option<[u16; 2]>,
    pub is_v6: bool,
    pub ecn: Ecn,
    pub dscp: u8,
    /// Routers that may pass it on, and one more.
    pub hop_limit: u8,
}

/// Who talks to whom, whichever of them sends: protocol, addresses and ports of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Conversation {
    protocol: u8,
    /// The lower first.
    ends: [([u8; 16], u16); 2],
}

impl Conversation {
    /// Between two ends of these addresses and ports.
    pub fn of(protocol: u8, ends: [(&[u8], u16); 2]) -> Self {
        let mut ends = ends.map(|(address, port)| {
            let mut octets = [0; 16];
            octets[..address.len()].copy_from_slice(address);
            (octets, port)
        });
        ends.sort_unstable();
        Self { protocol, ends }
    }

    /// That of a packet with so many octets before it; `None` if it has no ports.
    pub fn read(octets: &[u8], before: usize) -> Option<Self> {
        if !is_ip(octets, before) {
            return None;
        }
        let packet = octets.get(before..)?;
        let header = Header::of(packet)?;
        let [source, destination] = header.ports(packet.get(header.len..)?)?;
        let [from, to] = header.addresses;
        Some(Self::of(
            header.protocol,
            [(from, source), (to, destination)],
        ))
    }
}

/// Writes into a packet which connection it is of.
pub fn set_connection(transport: &mut Transport<Frame>, connection: ConnectionId) {
    let frame = match transport {
        Transport::Tcp(segment) => &mut segment.body,
        Transport::Datagram(frame) => frame,
        Transport::Redundant(redundant) => &mut redundant.body,
    };
    frame.connection = Some(connection);
}

/// The number of the SYN that asks for a connection, if it is one.
pub fn opens(transport: &Transport<Frame>) -> Option<u32> {
    match transport {
        Transport::Tcp(segment) => {
            (segment.flags.any(Flags::SYN) && !segment.flags.any(Flags::ACK)).then_some(segment.seq)
        }
        _ => None,
    }
}

/// The largest packet of IP.
pub const LARGEST: usize = 65_536;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Reads a packet that a host sends; `None` if it is none.
pub fn read(octets: &[u8]) -> Option<(Label, Transport<Frame>)> {
    let header = Header::of(octets)?;
    let transport = octets.get(header.len..)?;
    let label = Label {
        source: address(header.addresses[0])?,
        destination: address(header.addresses[1])?,
        ports: header.ports(transport),
        is_v6: header.addresses[0].len() == 16,
        ecn: Ecn::from_bits(header.class),
        dscp: header.class >> 2,
        hop_limit: octets[header.hop_limit_at()],
    };
    Some((label, carried(octets, 0, &header)?))
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    Some(match octets.len() {
        4 => <[u8; 4]>::try_from(octets).ok()?.into(),
        _ => <[u8; 16]>::try_from(octets).ok()?.into(),
    })
}

/// A packet of a host here as it leaves; `None` if it is none.
#[must_use]
pub fn departing(octets: &[u8]) -> Option<Departing<Frame>> {
    let (label, transport) = read(octets)?;
    Some(Departing {
        transport,
        size: u32::try_from(octets.len()).ok()?,
        ecn: label.ecn,
        dscp: label.dscp,
    })
}

/// Reads a frame with so many octets before its packet. What is not IP is carried like anything else.
pub fn read_frame(octets: &[u8], before: usize) -> (Ecn, u8, Transport<Frame>) {
    let packet = octets.get(before..).unwrap_or_default();
    let header = Header::of(packet).filter(|_| before > 0 && is_ip(octets, before));
    if let Some(header) = header
        && let Some(transport) = carried(octets, before, &header)
    {
        return (Ecn::from_bits(header.class), header.class >> 2, transport);
    }
    (
        Ecn::NotEct,
        0,
        Transport::Datagram(framed(octets, before, packet.len(), 0)),
    )
}

/// Whether IP begins there: in a frame of Ethernet the two octets before say so.
fn is_ip(octets: &[u8], before: usize) -> bool {
    let ether_type = before.checked_sub(2).and_then(|at| be16(octets, at));
    let is_said = before == 0 || matches!(ether_type, Some(IPV4 | IPV6));
    is_said && octets.get(before..).and_then(Header::of).is_some()
}

/// `ETH_P_IP` and `ETH_P_IPV6` (IEEE 802 numbers).
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// What stands in the header of IP.
struct Header<'a> {
    len: usize,
    /// Octets of the whole packet.
    total: usize,
    protocol: u8,
    /// A part of a packet that the transport's header is not in. Over IPv6 the protocol says so: it is then the fragment
    /// header's (RFC 8200 §4.5).
    is_later_fragment: bool,
    class: u8,
    addresses: [&'a [u8]; 2],
}

impl<'a> Header<'a> {
    fn of(packet: &'a [u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => {
                /// `Fragment Offset` (RFC 791 §3.1).
                const OFFSET: u16 = 0x1fff;
                let fixed: &[u8; 20] = packet.first_chunk()?;
                Some(Self {
                    len: usize::from(fixed[0] & 15) * 4,
                    total: be16(fixed, 2)?.into(),
                    protocol: fixed[9],
                    is_later_fragment: be16(fixed, 6)? & OFFSET != 0,
                    class: fixed[1],
                    addresses: [&fixed[12..16], &fixed[16..20]],
                })
            }
            6 => {
                let fixed: &[u8; 40] = packet.first_chunk()?;
                Some(Self {
                    len: 40,
                    total: 40 + usize::from(be16(fixed, 4)?),
                    protocol: fixed[6],
                    is_later_fragment: false,
                    class: (fixed[0] << 4) | (fixed[1] >> 4),
                    addresses: [&fixed[8..24], &fixed[24..40]],
                })
            }
            _ => None,
        }
    }
    /// Where the hop limit stands, which IPv4 calls time to live.
    const fn hop_limit_at(&self) -> usize {
        if self.addresses[0].len() == 4 { 8 } else { 7 }
    }
    /// Source and destination, of what follows it.
    fn ports(&self, transport: &[u8]) -> Option<[u16; 2]> {
        let has_ports = matches!(self.protocol, TCP | UDP) && !self.is_later_fragment;
        has_ports.then_some(())?;
        Some([be16(transport, 0)?, be16(transport, 2)?])
    }
}

fn be16(octets: &[u8], at: usize) -> Option<u16> {
    let octets = octets.get(at..at + 2)?;
    Some(u16::from_be_bytes([octets[0], octets[1]]))
}

fn framed(octets: &[u8], before: usize, payload: usize, after: usize) -> Frame {
    let small = |n: usize| u32::try_from(n).expect("a packet is below 64 KiB");
    Frame {
        octets: octets.to_vec(),
        before: small(before),
        payload: small(payload),
        after: small(after),
        connection: None,
    }
}

/// What an IP packet carries; `None` if its transport header is cut off.
fn carried(octets: &[u8], before: usize, header: &Header<'_>) -> Option<Transport<Frame>> {
    let packet = octets.get(before..)?;
    // A frame has at least 60 octets; what a packet lacks is filled up behind it (IEEE 802.3).
    let transport = packet.get(header.len..header.total.min(packet.len()))?;
    let after = packet.len() - header.len - transport.len();
    let frame = |offset: usize| {
        framed(
            octets,
            before,
            transport.len().saturating_sub(offset),
            after,
        )
    };
    if header.is_later_fragment {
        return Some(Transport::Datagram(frame(0)));
    }
    Some(match header.protocol {
        TCP => {
            let fixed: &[u8; 20] = transport.first_chunk()?;
            let be32 = |at: usize| {
                u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]])
            };
            Transport::Tcp(Segment {
                seq: be32(4),
                ack: be32(8),
                window: be16(fixed, 14)?,
                flags: Flags(be16(fixed, 12)? & 0x1ff),
                body: frame(usize::from(fixed[12] >> 4) * 4),
                ..Segment::default()
            })
        }
        UDP => Transport::Datagram(frame(8)),
        _ => Transport::Datagram(frame(0)),
    })
}

/// The packet inside, as it is to leave: with `ecn` in its header.
#[must_use]
pub fn write(transport: &Transport<Frame>, ecn: Ecn) -> Cow<'_, [u8]> {
    let (octets, before) = whole(transport);
    marked(octets, before, ecn)
}

/// What a router of these addresses, one of each version of IP, writes to the sender of this packet, which does not fit a link of this
/// MTU; `None` if it is no IP. Without a router the packet's destination writes it. A frame has its answer in a frame.
#[must_use]
pub fn too_big(
    transport: &Transport<Frame>,
    mtu: u32,
    router: Option<[IpAddr; 2]>,
) -> Option<Vec<u8>> {
    let (octets, before) = whole(transport);
    is_ip(octets, before).then_some(())?;
    let message = icmp::too_big(octets.get(before..)?, mtu, router)?;
    let mut answer = returned(octets.get(..before)?);
    answer.extend(message);
    Some(answer)
}

/// What stands before a packet that goes back: Ethernet's header with its two addresses exchanged, and nothing offloaded.
fn returned(before: &[u8]) -> Vec<u8> {
    let Some((offload, &[ref addresses @ .., high, low])) = before.split_last_chunk::<14>() else {
        return Vec::new();
    };
    let (to, from) = addresses.split_at(6);
    [&vec![0; offload.len()], from, to, &[high, low]].concat()
}

/// What a router of these addresses, one of each version of IP, does with a packet that ends there.
#[must_use]
pub fn at_router(packet: &[u8], addresses: [IpAddr; 2]) -> Verdict {
    icmp::at_router(packet, addresses)
}

/// Takes from a packet's hop limit what so many routers take.
pub fn pass_routers(packet: &mut [u8], count: u8) {
    let Some(at) = Header::of(packet).map(|header| header.hop_limit_at()) else {
        return;
    };
    let left = packet[at].saturating_sub(count);
    if packet[0] >> 4 == 4 {
        set_word(packet, at, [left, packet[at + 1]]);
    } else {
        packet[at] = left;
    }
}

/// Writes a word of IPv4's header, and into the checksum what that makes of it (RFC 1624, equation 3).
fn set_word(packet: &mut [u8], at: usize, word: [u8; 2]) {
    let old =
        |packet: &[u8], at: usize| u32::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
    let after = u32::from(u16::from_be_bytes(word));
    let mut sum = (!old(packet, 10) & 0xffff) + (!old(packet, at) & 0xffff) + after;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    #[expect(clippy::cast_possible_truncation, reason = "folded into 16 bits")]
    let sum = !(sum as u16);
    packet[at..at + 2].copy_from_slice(&word);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

fn whole(transport: &Transport<Frame>) -> (&[u8], usize) {
    match transport {
        Transport::Tcp(segment) => segment.body.whole(),
        Transport::Datagram(frame) => frame.whole(),
        Transport::Redundant(redundant) => redundant.body.whole(),
    }
}

/// A frame with `ecn` in its packet's header. Only what says that it can be marked is, so that is IP.
fn marked(octets: &[u8], before: usize, ecn: Ecn) -> Cow<'_, [u8]> {
    if ecn == Ecn::Ce && traffic_class(&octets[before..]) & 3 != ecn as u8 {
        let mut marked = octets.to_vec();
        mark(&mut marked[before..], ecn);
        return marked.into();
    }
    octets.into()
}

fn traffic_class(packet: &[u8]) -> u8 {
    match packet[0] >> 4 {
        4 => packet[1],
        _ => (packet[0] << 4) | (packet[1] >> 4),
    }
}

/// Writes the ECN field.
fn mark(packet: &mut [u8], ecn: Ecn) {
    if packet[0] >> 4 == 4 {
        set_word(packet, 0, [packet[0], (packet[1] & !3) | ecn as u8]);
    } else {
        packet[1] = (packet[1] & !0x30) | ((ecn as u8) << 4);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use anabranch_core::body::Octets;
    use anabranch_wire::{self as wire, IpHeader, Ports, Version};
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::address::{address_of, v4_of, v6_of};

    /// Octets of IPv4's header.
    const IP: usize = 20;

    /// A segment from host 0 to host 1, as octets.
    fn packet(version: Version, ecn: Ecn, body: Vec<u8>) -> Vec<u8> {
        let ip = IpHeader {
            version,
            dscp: 10,
            ecn,
            hop_limit: 64,
        };
        let ports = Ports {
            source: 40_000,
            destination: 10_000,
        };
        let segment = Segment {
            seq: 77,
            ack: 88,
            window: 99,
            flags: Flags::ACK | Flags::PSH,
            body: Octets(body),
            ..Segment::default()
        };
        let mut octets = Vec::new();
        wire::encode(&ip, ports, &segment, &mut octets).expect("it fits");
        octets
    }

    fn v4(source: Ipv4Addr, destination: Ipv4Addr) -> Version {
        Version::V4 {
            source: source.octets(),
            destination: destination.octets(),
            identification: 5,
            dont_fragment: true,
        }
    }

    fn v6(source: Ipv6Addr, destination: Ipv6Addr) -> Version {
        Version::V6 {
            source: source.octets(),
            destination: destination.octets(),
            flow_label: 3,
        }
    }

    #[test]
    fn what_elements_see_is_what_the_packet_says() {
        for version in [v4(v4_of(0), v4_of(1)), v6(v6_of(0), v6_of(1))] {
            let octets = packet(version, Ecn::Ect0, vec![1; 700]);
            let (label, transport) = read(&octets).expect("a packet of ours");
            let is_v6 = octets[0] >> 4 == 6;
            let expected = Label {
                source: address_of(0, is_v6),
                destination: address_of(1, is_v6),
                ports: Some([40_000, 10_000]),
                is_v6,
                ecn: Ecn::Ect0,
                dscp: 10,
                hop_limit: 64,
            };
            assert_eq!(label, expected);
            let Transport::Tcp(segment) = &transport else {
                panic!("it is TCP")
            };
            assert_eq!((segment.seq, segment.ack, segment.window), (77, 88, 99));
            assert_eq!(segment.flags, Flags::ACK | Flags::PSH);
            assert_eq!(segment.body.octets(), Some(&[1; 700][..]));
            assert_eq!(*write(&transport, Ecn::Ect0), octets[..]);
        }
    }

    /// The decoder verifies both checksums. Fails for a mark that leaves the header's as it was.
    #[test]
    fn a_mark_is_one_in_a_correct_header() {
        for version in [v4(v4_of(0), v4_of(1)), v6(v6_of(0), v6_of(1))] {
            for ecn in [Ecn::Ect0, Ecn::Ect1] {
                let octets = packet(version, ecn, vec![7; 100]);
                let (_, transport) = read(&octets).expect("a packet of ours");
                let marked = wire::decode(&write(&transport, Ecn::Ce)).expect("correct");
                assert_eq!((marked.ip.ecn, marked.ip.dscp), (Ecn::Ce, 10));
                assert_eq!(marked.ip.version, version);
            }
        }
    }

    /// The decoder verifies the header's checksum.
    #[test]
    fn routers_take_hops_from_a_correct_header() {
        for version in [v4(v4_of(0), v4_of(1)), v6(v6_of(0), v6_of(1))] {
            for (routers, left) in [(0, 64), (1, 63), (63, 1), (70, 0)] {
                let mut octets = packet(version, Ecn::Ect0, vec![7; 100]);
                pass_routers(&mut octets, routers);
                let passed = wire::decode(&octets).expect("correct");
                assert_eq!((passed.ip.hop_limit, passed.ip.version), (left, version));
            }
        }
        let mut nothing = [1, 2, 3];
        pass_routers(&mut nothing, 1);
        assert_eq!(nothing, [1, 2, 3]);
    }

    /// RFC 1812 §4.3.2.7 and RFC 4443 §2.4: no error is about an error or a later fragment.
    #[test]
    fn routers_say_nothing_about_errors_and_fragments() {
        let router = [address_of(5, false), address_of(5, true)];
        for version in [v4(v4_of(0), v4_of(1)), v6(v6_of(0), v6_of(1))] {
            let expired = packet(version, Ecn::NotEct, vec![7; 100]);
            let Verdict::Error(error) = at_router(&expired, router) else {
                panic!("time exceeded")
            };
            assert_eq!(at_router(&error, router), Verdict::Silence);
        }
        let mut fragment = packet(v4(v4_of(0), v4_of(1)), Ecn::NotEct, vec![7; 100]);
        fragment[7] = 9;
        assert_eq!(at_router(&fragment, router), Verdict::Silence);
        assert_eq!(at_router(&[0x45, 0, 0], router), Verdict::Silence);
    }

    /// Over IPv6 the sum includes the pseudo-header (RFC 8200 §8.1); that of IPv4's header is its own.
    #[test]
    fn what_routers_write_has_correct_checksums() {
        let router = [address_of(5, false), address_of(5, true)];
        for version in [v4(v4_of(0), v4_of(1)), v6(v6_of(0), v6_of(1))] {
            for payload in [0, 1, 700, 1400] {
                let expired = packet(version, Ecn::NotEct, vec![7; payload]);
                let Verdict::Error(error) = at_router(&expired, router) else {
                    panic!("time exceeded")
                };
                let transport = read(&expired).expect("IP").1;
                let too_big = too_big(&transport, 600, Some(router)).expect("IP");
                for message in [error, too_big] {
                    let mut sum = wire::Checksum::default();
                    if message[0] >> 4 == 4 {
                        let mut header = wire::Checksum::default();
                        header.add(&message[..20]);
                        assert_eq!(header.finish(), 0);
                        sum.add(&message[20..]);
                    } else {
                        sum.add(&message[8..40]);
                        sum.add(&[0, 0, message[4], message[5], 0, 0, 0, 58]);
                        sum.add(&message[40..]);
                    }
                    assert_eq!(sum.finish(), 0);
                    let most = if message[0] >> 4 == 4 { 576 } else { 1280 };
                    assert!(message.len() <= most);
                }
            }
        }
    }

    /// TCP is a protocol that routers do not have: RFC 1122 §3.2.2.1, RFC 4443 §3.4.
    #[test]
    fn routers_have_no_tcp() {
        let router = [address_of(5, false), address_of(5, true)];
        for (version, kind) in [
            (v4(v4_of(0), v4_of(5)), [3, 2]),
            (v6(v6_of(0), v6_of(5)), [4, 1]),
        ] {
            let Verdict::Error(error) = at_router(&packet(version, Ecn::NotEct, vec![]), router)
            else {
                panic!("an error")
            };
            let (label, _) = read(&error).expect("IP");
            assert_eq!(label.destination, address_of(0, label.is_v6));
            assert_eq!(label.source, address_of(5, label.is_v6));
            let start = if label.is_v6 { 40 } else { 20 };
            assert_eq!(error[start..start + 2], kind);
        }
    }

    /// A host believes only what is correct and quotes what it sent: addresses, ports and sequence number.
    #[test]
    fn a_report_of_a_router_quotes_the_packet() {
        let sum = |parts: &[&[u8]]| {
            let mut sum = wire::Checksum::default();
            for part in parts {
                sum.add(part);
            }
            sum.holds()
        };
        let octets = packet(v4(v4_of(0), v4_of(1)), Ecn::Ect0, vec![1; 1400]);
        let (_, transport) = read(&octets).expect("a packet of ours");
        let router = [address_of(5, false), address_of(5, true)];
        let message = too_big(&transport, 1000, Some(router)).expect("it is IP");
        assert_eq!(message.len(), 576);
        assert_eq!(message[12..16], v4_of(5).octets());
        assert_eq!(message[16..20], octets[12..16]);
        let routerless = too_big(&transport, 1000, None).expect("it is IP");
        assert_eq!(routerless[12..16], octets[16..20]);
        assert_eq!(message[20..22], [3, 4]);
        assert_eq!(message[26..28], 1000_u16.to_be_bytes());
        assert_eq!(message[28..], octets[..548]);
        assert!(sum(&[&message[..20]]) && sum(&[&message[20..]]));

        let octets = packet(v6(v6_of(0), v6_of(1)), Ecn::Ect0, vec![1; 1400]);
        let (_, transport) = read(&octets).expect("a packet of ours");
        let message = too_big(&transport, 1300, Some(router)).expect("it is IP");
        assert_eq!(message.len(), 1280);
        assert_eq!(message[8..24], v6_of(5).octets());
        assert_eq!(message[24..40], octets[8..24]);
        let routerless = too_big(&transport, 1300, None).expect("it is IP");
        assert_eq!(routerless[8..24], octets[24..40]);
        assert_eq!(message[40..42], [2, 0]);
        assert_eq!(message[44..48], 1300_u32.to_be_bytes());
        let upper = [0, 0, message[4], message[5], 0, 0, 0, 58];
        assert!(sum(&[&message[8..40], &upper, &message[40..]]));
    }

    /// Fails for a reader that takes the octets in the middle of a packet for ports.
    #[test]
    fn only_the_first_fragment_has_ports() {
        let mut octets = packet(v4(v4_of(0), v4_of(1)), Ecn::Ect0, vec![1; 700]);
        // More are to come; the first is told by its offset of 0.
        octets[6..8].copy_from_slice(&0x2000_u16.to_be_bytes());
        let (label, transport) = read(&octets).expect("a packet of ours");
        assert_eq!(label.ports, Some([40_000, 10_000]));
        assert!(matches!(transport, Transport::Tcp(_)));
        for offset in [0x2001_u16, 0x00b9] {
            octets[6..8].copy_from_slice(&offset.to_be_bytes());
            let (label, transport) = read(&octets).expect("a packet of ours");
            assert_eq!((label.ports, label.ecn), (None, Ecn::Ect0));
            assert_eq!(transport.payload_len(), 20 + 700);
            assert!(matches!(transport, Transport::Datagram(_)));
            assert_eq!(*write(&transport, Ecn::Ect0), octets[..]);
        }
        // A later fragment may be shorter than a header of TCP, or of ports.
        octets.truncate(IP + 2);
        assert!(read(&octets).is_some_and(|(label, _)| label.ports.is_none()));
    }

    /// A frame around a packet stays around it, and what is not IP passes as it is, whatever it looks like.
    #[test]
    fn frames_pass_whole() {
        let mut frame = vec![0; 22];
        frame.extend(IPV4.to_be_bytes());
        frame.extend(packet(v4(v4_of(0), v4_of(1)), Ecn::Ect0, vec![3; 10]));
        let (ecn, _, transport) = read_frame(&frame, 24);
        assert_eq!((ecn, transport.payload_len()), (Ecn::Ect0, 10));
        let marked = write(&transport, Ecn::Ce);
        assert_eq!(marked[..24], frame[..24]);
        // An answer goes back to the station that the frame came from.
        frame[10..22].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9]);
        let answer = too_big(&read_frame(&frame, 24).2, 1000, None).expect("it is IP");
        assert_eq!(answer[..10], [0; 10]);
        assert_eq!(answer[10..22], [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1]);
        assert_eq!(answer[22..24], IPV4.to_be_bytes());
        assert_eq!(answer[36..40], frame[40..44]);
        // Filled up to the least that a frame has.
        let mut short = frame.clone();
        short.resize(90, 0);
        let (_, _, transport) = read_frame(&short, 24);
        let Transport::Tcp(segment) = &transport else {
            panic!("it is TCP")
        };
        assert_eq!(segment.body.octets(), Some(&[3; 10][..]));
        assert_eq!(*write(&transport, Ecn::Ect0), short[..]);
        assert!(wire::decode(&marked[24..]).is_ok_and(|packet| packet.ip.ecn == Ecn::Ce));
        // The same with the type of ARP.
        frame[22..24].copy_from_slice(&0x0806_u16.to_be_bytes());
        let (ecn, _, transport) = read_frame(&frame, 24);
        assert_eq!(ecn, Ecn::NotEct);
        assert_eq!(*write(&transport, ecn), frame[..]);
    }

    proptest! {
        #[test]
        fn anything_can_come(octets in proptest::collection::vec(any::<u8>(), 0..200), before in 0_usize..30) {
            if let Some((label, transport)) = read(&octets) {
                prop_assert_eq!(&*write(&transport, label.ecn), &octets[..]);
            }
            let (ecn, _, transport) = read_frame(&octets, before.min(octets.len()));
            prop_assert_eq!(&*write(&transport, ecn), &octets[..]);
        }

        /// What begins as a packet of ours and is cut off or damaged anywhere.
        #[test]
        fn damage_is_survived(at in 0_usize..60, value in any::<u8>(), len in 0_usize..100) {
            let mut octets = packet(v4(v4_of(0), v4_of(1)), Ecn::Ect0, vec![7; 60]);
            octets[at] = value;
            octets.truncate(len);
            if let Some((_, transport)) = read(&octets) {
                prop_assert!(write(&transport, Ecn::Ce).len() == octets.len());
            }
        }
    }
}
