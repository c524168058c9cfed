//! IP headers that are read and changed in place.

use anabranch_core::packet::Ecn;
use anabranch_wire::{
    DecodeError, Flags, Fragment, IpHeader, IpPacket, decode_ip, encode_ip, set_ecn, take_hops,
};
use proptest::prelude::*;

use crate::support::{holds, is_summed, v4, v6, with_options};

/// RFC 791 §3.1, field by field, with a word of options.
#[test]
fn rfc_791_the_fields_of_ipv4() {
    let mut octets = vec![0x46, 0xb9, 0, 32, 0x12, 0x34, 0x60, 0, 55, 17, 0, 0];
    octets.extend([192, 0, 2, 1, 198, 51, 100, 2, 1, 1, 1, 0]);
    octets.extend([0xc0, 0, 0, 53, 0, 8, 0, 0, 0xee]);
    let ip = IpPacket::read(&octets).expect("IPv4");
    assert!(!ip.is_v6() && ip.dont_fragment());
    assert_eq!((ip.dscp(), ip.ecn(), ip.hop_limit()), (46, Ecn::Ect1, 55));
    assert_eq!((ip.header_len(), ip.length()), (24, Some(32)));
    assert_eq!((ip.protocol(), ip.next_header()), (17, 17));
    assert_eq!(ip.fragment(), Fragment::First);
    assert_eq!(ip.identification(), 0x1234);
    assert_eq!(ip.source().to_string(), "192.0.2.1");
    assert_eq!(ip.destination().to_string(), "198.51.100.2");
    assert_eq!(ip.addresses(), [192, 0, 2, 1, 198, 51, 100, 2]);
    assert_eq!(ip.ports(), Some([0xc000, 53]));
    assert_eq!(ip.payload(), Some(&octets[24..32]));
}

/// RFC 8200 §3, and hop-by-hop options, a routing header, a fragment header and destination options
/// (§4).
#[test]
fn rfc_8200_the_fields_of_ipv6() {
    let mut octets = vec![0x6b, 0x91, 0x23, 0x45, 0, 44, 0, 9];
    octets.extend([[0x20; 16], [0x30; 16]].concat());
    octets.extend([43, 0, 1, 4, 0, 0, 0, 0]);
    octets.extend([44, 1, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    octets.extend([60, 0, 0, 1, 0xde, 0xad, 0xbe, 0xef]);
    octets.extend([6, 0, 1, 4, 0, 0, 0, 0, 0, 80, 0x1f, 0x90]);
    let ip = IpPacket::read(&octets).expect("IPv6");
    assert!(ip.is_v6() && ip.dont_fragment());
    assert_eq!((ip.dscp(), ip.ecn(), ip.hop_limit()), (46, Ecn::Ect1, 9));
    assert_eq!((ip.header_len(), ip.length()), (80, Some(84)));
    assert_eq!((ip.protocol(), ip.next_header()), (6, 0));
    assert_eq!(
        (ip.fragment(), ip.identification()),
        (Fragment::First, 0xdead_beef)
    );
    assert_eq!(ip.ports(), Some([80, 8080]));
    assert_eq!(ip.payload(), Some(&[0, 80, 0x1f, 0x90][..]));
    // Octets after the header of a later fragment are not headers.
    octets[40 + 8 + 16 + 3] = 9;
    let ip = IpPacket::read(&octets).expect("IPv6");
    assert_eq!((ip.protocol(), ip.header_len()), (60, 72));
    assert_eq!((ip.fragment(), ip.ports()), (Fragment::Later, None));
}

#[test]
fn offset_and_more_fragments_give_the_fragment_position() {
    for (field, expected) in [
        (0x0000_u16, Fragment::Whole),
        (0x4000, Fragment::Whole),
        (0x2000, Fragment::First),
        (0x2001, Fragment::Later),
        (0x00b9, Fragment::Later),
    ] {
        let mut octets = with_options(&v4(), Flags::ACK, &[]);
        octets[6..8].copy_from_slice(&field.to_be_bytes());
        let ip = IpPacket::read(&octets).expect("IPv4");
        assert_eq!(ip.fragment(), expected, "{field:#06x}");
        assert_eq!(ip.ports().is_none(), expected == Fragment::Later);
    }
}

/// A length of zero means unknown: segmentation offload leaves it to the network card, and
/// jumbograms (RFC 2675 §3) have it in an option. With "no next header" (RFC 8200 §4.7) zero is the
/// length of the payload.
#[test]
fn a_length_of_zero_is_none() {
    let mut octets = with_options(&v4(), Flags::ACK, &[]);
    octets[2..4].fill(0);
    assert_eq!(IpPacket::read(&octets).expect("IPv4").length(), None);
    let mut octets = with_options(&v6(), Flags::ACK, &[]);
    octets[4..6].fill(0);
    assert_eq!(IpPacket::read(&octets).expect("IPv6").length(), None);
    octets[6] = 59;
    assert_eq!(IpPacket::read(&octets).expect("IPv6").length(), Some(40));
}

/// Any prefix of a packet gives an error or the headers of the whole packet.
#[test]
fn a_packet_may_be_truncated_at_any_length() {
    let mut extended = with_options(&v6(), Flags::ACK, &[]);
    extended.splice(
        40..40,
        [
            60, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0,
        ],
    );
    extended[5] += 24;
    extended[6] = 0;
    for (whole, fixed) in [
        (with_options(&v4(), Flags::ACK, &[1; 40]), 20),
        (with_options(&v6(), Flags::ACK, &[]), 40),
        (extended, 40),
    ] {
        let expected = IpPacket::read(&whole).expect("IP");
        for len in 0..whole.len() {
            let part = &whole[..len];
            match IpPacket::read(part) {
                Ok(ip) => {
                    assert!(len >= fixed);
                    assert_eq!(ip.length(), Some(whole.len()));
                    assert_eq!(ip.addresses(), expected.addresses());
                    assert!(ip.header_len() <= expected.header_len());
                    let payload = part.get(expected.header_len()..);
                    assert!(ip.payload() == payload || ip.header_len() < expected.header_len());
                }
                Err(error) => assert!(len < fixed && error == DecodeError::IpTruncated),
            }
            assert!(decode_ip(part).is_err());
        }
    }
}

proptest! {
    #[test]
    fn any_octets_are_read_and_changed_without_panic(
        mut octets in prop::collection::vec(any::<u8>(), 0..120), first in 0x40_u8..0x70, ecn: u8, hops: u8,
    ) {
        if let Some(octet) = octets.first_mut() {
            *octet = first;
        }
        if let Ok(ip) = IpPacket::read(&octets) {
            let _ = (ip.ports(), ip.payload(), ip.source(), IpHeader::of(&ip));
        }
        let _ = decode_ip(&octets);
        set_ecn(&mut octets, Ecn::from_bits(ecn));
        take_hops(&mut octets, hops);
    }

    /// RFC 1624: the checksum stays correct, and no other octet changes.
    #[test]
    fn changed_fields_leave_the_rest(from in 0_u8..4, to in 0_u8..4, dscp in 0_u8..64, hops: u8, left: u8) {
        for ip in [v4(), v6()] {
            let ip = IpHeader { dscp, ecn: Ecn::from_bits(from), hop_limit: left, ..ip };
            let mut octets = Vec::new();
            encode_ip(&ip, anabranch_wire::Protocol::Udp, 0, &mut octets).expect("it fits");
            set_ecn(&mut octets, Ecn::from_bits(to));
            take_hops(&mut octets, hops);
            prop_assert!(octets[0] >> 4 == 6 || holds(&[&octets]));
            let hop_limit = left.saturating_sub(hops);
            let expected = IpHeader { ecn: Ecn::from_bits(to), hop_limit, ..ip };
            prop_assert_eq!(IpHeader::of(&IpPacket::read(&octets).expect("IP")), expected);
        }
    }
}

#[test]
fn octets_that_are_no_header_are_not_changed() {
    for octets in [vec![], vec![0x45; 19], vec![0x60; 39], vec![0x15; 60]] {
        let mut changed = octets.clone();
        set_ecn(&mut changed, Ecn::Ce);
        take_hops(&mut changed, 1);
        assert_eq!(changed, octets);
    }
}

/// RFC 8200 §4.4, RFC 4302, RFC 4303: a packet for another address, and packets that need a key.
#[test]
fn extension_headers_with_a_meaning_are_refused() {
    let good = with_options(&v6(), Flags::ACK, &[]);
    assert!(is_summed(&good));
    for (kind, header) in [
        (43, [6, 0, 0, 1, 0, 0, 0, 0]),
        (51, [6, 0, 0, 0, 0, 0, 0, 0]),
        (50, [6, 0, 0, 0, 0, 0, 0, 0]),
    ] {
        let mut packet = good.clone();
        packet.splice(40..40, header);
        packet[5] += 8;
        packet[6] = kind;
        assert_eq!(decode_ip(&packet), Err(DecodeError::Extension), "{kind}");
    }
    // An endless chain of extension headers.
    let mut packet = good;
    packet.splice(40..40, [0; 8 * 33]);
    packet[4..6].copy_from_slice(&(8 * 33 + 23_u16).to_be_bytes());
    packet[6] = 0;
    assert_eq!(decode_ip(&packet), Err(DecodeError::Extension));
}
