//! IP packets: flows, the MSS option and prefixes.

use anabranch_core::packet::Ecn;
use anabranch_gateway::inner::{self, FLOWS, Prefix, clamp_mss, decapsulated, read, set_ecn};
use proptest::prelude::*;

fn sum(octets: &[u8]) -> u32 {
    octets
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)))
        .sum()
}

/// The checksum of a TCP segment over its pseudo-header, which is zero if it is correct.
fn checksum(addresses: &[u8], tcp: &[u8]) -> u16 {
    let length = u32::try_from(tcp.len()).expect("small");
    let mut total = sum(addresses) + 6 + length + sum(tcp);
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    !u16::try_from(total).expect("folded")
}

/// A SYN with `padding` no-operations before its MSS option.
fn syn(is_v4: bool, mss: u16, padding: usize) -> Vec<u8> {
    let mut tcp = vec![0; 20];
    tcp[..4].copy_from_slice(&[0x12, 0x34, 0, 80]);
    tcp[13] = 2;
    tcp.extend(vec![1; padding]);
    tcp.extend([2, 4]);
    tcp.extend(mss.to_be_bytes());
    while !tcp.len().is_multiple_of(4) {
        tcp.push(0);
    }
    tcp[12] = u8::try_from(tcp.len() / 4).expect("small") << 4;
    let addresses: Vec<u8> = (1..=if is_v4 { 8 } else { 32 }).collect();
    let code = checksum(&addresses, &tcp);
    tcp[16..18].copy_from_slice(&code.to_be_bytes());
    let length = u16::try_from(tcp.len()).expect("small");
    let mut packet = vec![0; 4];
    if is_v4 {
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(length + 20).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 6, 0, 0]);
    } else {
        packet[0] = 0x60;
        packet.extend(length.to_be_bytes());
        packet.extend([6, 64]);
    }
    packet.extend(addresses);
    packet.extend(tcp);
    packet
}

proptest! {
    #[test]
    fn a_clamped_syn_keeps_a_correct_checksum(is_v4: bool, mss: u16, padding in 0_usize..4, mtu in 576_usize..1_500) {
        let mut packet = syn(is_v4, mss, padding);
        let summary = read(&packet).expect("a whole packet");
        let headers = if is_v4 { 40 } else { 60 };
        let limit = u16::try_from(mtu - headers).expect("small");
        prop_assert_eq!(clamp_mss(&mut packet, &summary, mtu), mss > limit);
        let ip = if is_v4 { 20 } else { 40 };
        let addresses = if is_v4 { &packet[12..20] } else { &packet[8..40] };
        let option = ip + 20 + padding + 2;
        let now = u16::from_be_bytes([packet[option], packet[option + 1]]);
        prop_assert_eq!(now, mss.min(limit));
        let code = checksum(addresses, &packet[ip..]);
        prop_assert!(code == 0 || code == 0xffff, "{:#06x}", code);
    }

    #[test]
    fn any_octets_are_read_without_panic(octets in proptest::collection::vec(any::<u8>(), 0..120), first in 0x40_u8..0x70) {
        let mut octets = octets;
        if let Some(version) = octets.first_mut() {
            *version = first;
        }
        let length = u16::try_from(octets.len()).expect("small");
        if octets.len() > 5 {
            let (at, value) = if first < 0x60 { (2, length) } else { (4, length.saturating_sub(40)) };
            octets[at..at + 2].copy_from_slice(&value.to_be_bytes());
        }
        if let Some(summary) = read(&octets) {
            prop_assert!(summary.flow < FLOWS);
            let before = octets.clone();
            if !clamp_mss(&mut octets, &summary, 1_000) {
                prop_assert_eq!(before, octets);
            }
        }
    }

    #[test]
    fn prefixes_overlap_if_one_contains_the_other(a: u32, b: u32, long in 0_u8..=32, short in 0_u8..=32) {
        let cut = |bits: u32, length: u8| bits & u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
        let prefix = |bits: u32, length: u8| {
            let address = core::net::Ipv4Addr::from(cut(bits, length));
            (Prefix::new(address.into(), length).expect("no bits beyond"), address)
        };
        let ((first, first_address), (second, second_address)) = (prefix(a, long), prefix(b, short));
        let contained = first.contains(second_address.into()) || second.contains(first_address.into());
        prop_assert_eq!(first.overlaps(&second), contained);
        prop_assert!(first.contains(first_address.into()) && first.overlaps(&first));
    }
}

#[test]
fn a_prefix_has_no_bits_beyond_its_length() {
    let prefix = |text: &str, length| Prefix::new(text.parse().expect("an address"), length);
    assert!(prefix("10.0.0.1", 24).is_none());
    assert!(prefix("10.0.0.0", 33).is_none());
    assert!(prefix("2001:db8::", 129).is_none());
    assert!(
        prefix("0.0.0.0", 0).is_some_and(|all| !all.contains("::1".parse().expect("an address")))
    );
    assert!(prefix("2001:db8::1", 128).is_some());
}

/// RFC 6040 §4.2 figure 4: rows are the packet's field, columns the datagram's.
#[test]
fn decapsulation_sets_the_ecn_field_of_rfc_6040() {
    use Ecn::{Ce, Ect0, Ect1, NotEct};
    let outer = [NotEct, Ect0, Ect1, Ce];
    let rows = [
        (NotEct, [Some(NotEct), Some(NotEct), Some(NotEct), None]),
        (Ect0, [Some(Ect0), Some(Ect0), Some(Ect1), Some(Ce)]),
        (Ect1, [Some(Ect1), Some(Ect1), Some(Ect1), Some(Ce)]),
        (Ce, [Some(Ce); 4]),
    ];
    for (inner, expected) in rows {
        assert_eq!(outer.map(|outer| decapsulated(inner, outer)), expected);
    }
}

#[test]
fn a_changed_ecn_field_keeps_class_and_checksum_correct() {
    for first in [0x45, 0x60] {
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            let mut packet = vec![0x5a; 60];
            packet[0] = first;
            let (before, whole) = (packet.clone(), sum(&packet[..20]));
            set_ecn(&mut packet, ecn);
            assert_eq!(inner::ecn(&packet), ecn);
            if first == 0x45 {
                assert_eq!(packet[1] >> 2, before[1] >> 2);
                // Equal in one's complement, in which 0xffff is 0.
                assert_eq!(sum(&packet[..20]) % 0xffff, whole % 0xffff);
            } else {
                assert_eq!(packet[1] & !0x30, before[1] & !0x30);
                assert_eq!(packet[2..], before[2..]);
            }
        }
    }
    // Too short to have the field.
    set_ecn(&mut [0x45; 19], Ecn::Ce);
    set_ecn(&mut [], Ecn::Ce);
}
