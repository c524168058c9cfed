//! ICMP messages, compared with another implementation, and the rules for sending none.

use core::net::IpAddr;

use anabranch_wire::{
    Flags, IpPacket,
    icmp::{Error, Reaction, at_router},
};
use etherparse::{Icmpv4Type, Icmpv6Type, PacketBuilder, TransportSlice};
use proptest::prelude::*;

use crate::support::{is_summed, v4, v6, with_options};

const OWN_V4: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 1));
const OWN_V6: IpAddr = IpAddr::V6(core::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
const ROUTER: [IpAddr; 2] = [OWN_V4, OWN_V6];

/// TCP packets of both IP versions with a payload of this length.
fn packets(payload: usize) -> [Vec<u8>; 2] {
    [v4(), v6()].map(|ip| {
        let mut packet = with_options(&ip, Flags::ACK, &[]);
        let (at, headers) = if packet[0] >> 4 == 4 {
            (2, 40)
        } else {
            (4, 20)
        };
        packet.resize(packet.len() - 3 + payload, 7);
        let length = u16::try_from(headers + payload).expect("small");
        packet[at..at + 2].copy_from_slice(&length.to_be_bytes());
        packet
    })
}

/// UDP or ICMP from `source` to the router.
fn to_router(is_v6: bool, message: Option<(Icmpv4Type, Icmpv6Type)>) -> Vec<u8> {
    let mut packet = Vec::new();
    let (IpAddr::V4(four), IpAddr::V6(six)) = (OWN_V4, OWN_V6) else {
        panic!("one of each")
    };
    let builder = if is_v6 {
        PacketBuilder::ipv6([9; 16], six.octets(), 3)
    } else {
        PacketBuilder::ipv4([10, 0, 0, 9], four.octets(), 3)
    };
    let done = match message {
        None => builder.udp(4000, 33_434).write(&mut packet, &[1, 2, 3]),
        Some((_, kind)) if is_v6 => builder.icmpv6(kind).write(&mut packet, &[1, 2, 3]),
        Some((kind, _)) => builder.icmpv4(kind).write(&mut packet, &[1, 2, 3]),
    };
    done.expect("it fits");
    packet
}

/// Type, code and the four octets after the checksum.
fn header(message: &[u8]) -> ([u8; 2], [u8; 4]) {
    let ip = IpPacket::read(message).expect("IP");
    let icmp = ip.payload().expect("whole");
    ([icmp[0], icmp[1]], [icmp[4], icmp[5], icmp[6], icmp[7]])
}

/// RFC 1191 §4 and RFC 4443 §3.2: the error reports the MTU and quotes the packet up to the size
/// limit.
#[test]
fn too_big_quotes_the_packet() {
    let mtu = 1_300;
    for (packet, (own, kind, rest)) in packets(1_400).iter().zip([
        (OWN_V4, [3, 4], [0, 0, 5, 20]),
        (OWN_V6, [2, 0], [0, 0, 5, 20]),
    ]) {
        let message = Error::TooBig { mtu }.about(packet, own).expect("a message");
        assert!(is_summed(&message));
        let (sent, ip) = (
            IpPacket::read(packet).expect("IP"),
            IpPacket::read(&message).expect("IP"),
        );
        assert_eq!((ip.source(), ip.destination()), (own, sent.source()));
        assert_eq!(message.len(), if ip.is_v6() { 1280 } else { 576 });
        assert_eq!(header(&message), (kind, rest));
        let quoted = &ip.payload().expect("whole")[8..];
        assert_eq!(quoted, &packet[..quoted.len()]);
    }
}

/// RFC 1812 §5.3.1, RFC 1122 §3.2.2.1, RFC 4443 §3.1 to §3.4; also compared with etherparse.
#[test]
fn errors_of_routers_and_hosts() {
    for (error, expected) in [
        (Error::TimeExceeded, [([11, 0], 0), ([3, 0], 0)]),
        (Error::PortUnreachable, [([3, 3], 0), ([1, 4], 0)]),
        (Error::ProtocolUnreachable, [([3, 2], 0), ([4, 1], 6)]),
    ] {
        for ((packet, own), (kind, pointer)) in packets(100).iter().zip(ROUTER).zip(expected) {
            let message = error.about(packet, own).expect("a message");
            assert!(is_summed(&message));
            assert_eq!(header(&message), (kind, [0, 0, 0, pointer]));
            let sliced = etherparse::SlicedPacket::from_ip(&message).expect("it is right");
            assert!(matches!(
                sliced.transport,
                Some(TransportSlice::Icmpv4(_) | TransportSlice::Icmpv6(_))
            ));
            assert_eq!(IpPacket::read(&message).expect("IP").dscp(), 48);
        }
    }
}

/// RFC 1122 §3.2.2 and RFC 4443 §2.4 (e). Each change makes a packet about which no error may be
/// sent.
#[test]
fn no_error_is_about_these() {
    type Change = fn(&mut Vec<u8>);
    let cases: [(&str, usize, Change); 9] = [
        ("a later fragment", 0, |packet| packet[7] = 9),
        ("an unspecified source", 0, |packet| packet[12..16].fill(0)),
        ("a broadcast source", 0, |packet| packet[12..16].fill(255)),
        ("a group's address", 0, |packet| packet[16] = 224),
        ("an ICMP error", 0, |packet| {
            packet[9] = 1;
            packet[20] = 3;
        }),
        ("half a header", 0, |packet| packet.truncate(19)),
        ("no packet", 0, Vec::clear),
        ("a group's address of IPv6", 1, |packet| packet[24] = 0xff),
        ("an ICMPv6 error", 1, |packet| {
            packet[6] = 58;
            packet[40] = 1;
        }),
    ];
    for (about, version, change) in cases {
        let mut packet = packets(100)[version].clone();
        assert!(
            Error::TimeExceeded
                .about(&packet, ROUTER[version])
                .is_some()
        );
        assert_eq!(
            Error::TimeExceeded.about(&packet, ROUTER[1 - version]),
            None
        );
        change(&mut packet);
        assert_eq!(
            Error::TimeExceeded.about(&packet, ROUTER[version]),
            None,
            "{about}"
        );
    }
}

/// RFC 792 and RFC 4443 §4.2: the reply has the request's identifier, sequence number and data.
#[test]
fn echo_requests_to_a_router_are_answered() {
    let echo = etherparse::IcmpEchoHeader { id: 5, seq: 6 };
    for is_v6 in [false, true] {
        let asked = to_router(
            is_v6,
            Some((Icmpv4Type::EchoRequest(echo), Icmpv6Type::EchoRequest(echo))),
        );
        let Reaction::Answer(reply) = at_router(&asked, ROUTER) else {
            panic!("an answer")
        };
        assert!(is_summed(&reply));
        let (from, to) = (
            IpPacket::read(&asked).expect("IP"),
            IpPacket::read(&reply).expect("IP"),
        );
        assert_eq!(
            (from.source(), from.destination()),
            (to.destination(), to.source())
        );
        assert_eq!(
            header(&reply),
            ([if is_v6 { 129 } else { 0 }, 0], [0, 5, 0, 6])
        );
        assert!(reply.ends_with(&[1, 2, 3]));
        // A reply or another ICMP message gets no answer.
        let other = to_router(
            is_v6,
            Some((Icmpv4Type::EchoReply(echo), Icmpv6Type::EchoReply(echo))),
        );
        assert_eq!(at_router(&other, ROUTER), Reaction::Silence);
    }
}

/// A router has no ports and no TCP, and forwards no packet whose hop limit is used up.
#[test]
fn other_packets_at_a_router_are_errors() {
    for is_v6 in [false, true] {
        let Reaction::Error(error) = at_router(&to_router(is_v6, None), ROUTER) else {
            panic!("an error")
        };
        assert_eq!(header(&error).0, if is_v6 { [1, 4] } else { [3, 3] });
        assert_eq!(
            at_router(&error, ROUTER),
            Reaction::Silence,
            "about an error"
        );
        let passing = &packets(9)[usize::from(is_v6)];
        let Reaction::Error(error) = at_router(passing, ROUTER) else {
            panic!("an error")
        };
        assert_eq!(header(&error).0, if is_v6 { [3, 0] } else { [11, 0] });
        let mut to_tcp = to_router(is_v6, None);
        to_tcp[if is_v6 { 6 } else { 9 }] = 6;
        let Reaction::Error(error) = at_router(&to_tcp, ROUTER) else {
            panic!("an error")
        };
        assert_eq!(header(&error).0, if is_v6 { [4, 1] } else { [3, 2] });
    }
    assert_eq!(at_router(&[0x45, 0, 0], ROUTER), Reaction::Silence);
}

proptest! {
    #[test]
    fn any_octets_have_a_reaction(mut octets in prop::collection::vec(any::<u8>(), 0..700), first in 0x40_u8..0x70) {
        if let Some(octet) = octets.first_mut() {
            *octet = first;
        }
        if let Reaction::Answer(packet) | Reaction::Error(packet) = at_router(&octets, ROUTER) {
            prop_assert!(is_summed(&packet));
        }
        let _ = Error::TooBig { mtu: 1_000 }.about(&octets, OWN_V4);
    }
}
