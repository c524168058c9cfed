//! An IP packet as the network carries it: octets, of which elements may look at the transport header. From an interface
//! it has its frame around it, and may be something else than IP.

use std::{borrow::Cow, net::IpAddr};

use anabranch_core::{
    body::Body,
    packet::{ConnectionId, Ecn},
};
use anabranch_path::host::Departing;
use anabranch_wire::{
    Flags, Fragment, IpPacket, Protocol, Segment, TcpHeader, Transport, icmp, set_ecn,
};

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
        let ip = IpPacket::read(octets.get(before..)?).ok()?;
        let [source, destination] = ip.ports()?;
        let (from, to) = ip.addresses().split_at(ip.addresses().len() / 2);
        Some(Self::of(ip.protocol(), [(from, source), (to, destination)]))
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

/// Reads a packet that a host sends; `None` if it is none.
pub fn read(octets: &[u8]) -> Option<(Label, Transport<Frame>)> {
    let ip = IpPacket::read(octets).ok()?;
    let label = Label {
        source: ip.source(),
        destination: ip.destination(),
        ports: ip.ports(),
        is_v6: ip.is_v6(),
        ecn: ip.ecn(),
        dscp: ip.dscp(),
        hop_limit: ip.hop_limit(),
    };
    Some((label, carried(octets, 0, &ip)?))
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
    if before > 0
        && is_ip(octets, before)
        && let Ok(ip) = IpPacket::read(packet)
        && let Some(transport) = carried(octets, before, &ip)
    {
        return (ip.ecn(), ip.dscp(), transport);
    }
    (
        Ecn::NotEct,
        0,
        Transport::Datagram(framed(octets, before, packet.len(), 0)),
    )
}

/// Whether IP begins there: in a frame of Ethernet the two octets before say so.
fn is_ip(octets: &[u8], before: usize) -> bool {
    let ether_type = before.checked_sub(2).and_then(|at| octets.get(at..before));
    let is_said = before == 0 || ether_type.is_some_and(|two| two == IPV4 || two == IPV6);
    is_said
        && octets
            .get(before..)
            .is_some_and(|packet| IpPacket::read(packet).is_ok())
}

/// `ETH_P_IP` and `ETH_P_IPV6` (IEEE 802 numbers).
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];

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

/// The content of an IP packet; `None` if its headers are incomplete.
fn carried(octets: &[u8], before: usize, ip: &IpPacket<'_>) -> Option<Transport<Frame>> {
    let transport = ip.payload()?;
    // A frame has at least 60 octets; what a packet lacks is filled up behind it (IEEE 802.3).
    let after = octets.len() - before - ip.header_len() - transport.len();
    let frame = |header: usize| {
        let payload = transport.len().saturating_sub(header);
        framed(octets, before, payload, after)
    };
    if ip.fragment() == Fragment::Later {
        return Some(Transport::Datagram(frame(0)));
    }
    Some(match Protocol::from_number(ip.protocol()) {
        Protocol::Tcp => match TcpHeader::read(transport) {
            Ok((tcp, header_len)) => Transport::Tcp(Segment {
                seq: tcp.seq,
                ack: tcp.ack,
                window: tcp.window,
                flags: tcp.flags,
                body: frame(header_len),
                ..Segment::default()
            }),
            Err(_) => Transport::Datagram(frame(0)),
        },
        Protocol::Udp => Transport::Datagram(frame(8)),
        Protocol::Other(_) => Transport::Datagram(frame(0)),
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
    let packet = octets.get(before..)?;
    let ip = IpPacket::read(packet).ok()?;
    let own = router.map(|addresses| addresses[usize::from(ip.is_v6())]);
    let message = icmp::Error::TooBig { mtu }.about(packet, own.unwrap_or(ip.destination()))?;
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

fn whole(transport: &Transport<Frame>) -> (&[u8], usize) {
    match transport {
        Transport::Tcp(segment) => segment.body.whole(),
        Transport::Datagram(frame) => frame.whole(),
        Transport::Redundant(redundant) => redundant.body.whole(),
    }
}

/// A frame with `ecn` in its packet's header. Only what says that it can be marked is, so that is IP.
fn marked(octets: &[u8], before: usize, ecn: Ecn) -> Cow<'_, [u8]> {
    let is_marked = |packet| IpPacket::read(packet).is_ok_and(|ip| ip.ecn() == ecn);
    if ecn == Ecn::Ce && !is_marked(&octets[before..]) {
        let mut marked = octets.to_vec();
        set_ecn(&mut marked[before..], ecn);
        return marked.into();
    }
    octets.into()
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

    /// The message comes from the router, or from the packet's destination without one.
    #[test]
    fn a_packet_that_does_not_fit_is_reported_to_its_sender() {
        let router = [address_of(5, false), address_of(5, true)];
        for version in [v4(v4_of(0), v4_of(1)), v6(v6_of(0), v6_of(1))] {
            let octets = packet(version, Ecn::Ect0, vec![1; 1400]);
            let (label, transport) = read(&octets).expect("a packet of ours");
            let own = router[usize::from(label.is_v6)];
            for (router, source) in [(Some(router), own), (None, label.destination)] {
                let message = too_big(&transport, 1300, router).expect("it is IP");
                let (report, _) = read(&message).expect("it is IP");
                assert_eq!((report.source, report.destination), (source, label.source));
            }
        }
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
        frame.extend(IPV4);
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
        assert_eq!(answer[22..24], IPV4);
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
