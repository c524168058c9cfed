//! IP packets: flows and prefixes.

use anabranch_core::packet::Ecn;
use anabranch_gateway::inner::{FLOWS, Prefix, clamp_mss, decapsulated, read};
use proptest::prelude::*;

proptest! {
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
    fn a_prefix_contains_the_addresses_of_its_range(bits: u32, length in 0_u8..=32) {
        let bits = bits & u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
        let first_address = core::net::Ipv4Addr::from(bits);
        let first = Prefix::new(first_address.into(), length).expect("no bits beyond");
        prop_assert!(first.contains(first_address.into()));
        let [low, high] = first.range();
        prop_assert_eq!(low, core::net::IpAddr::from(first_address));
        prop_assert!(first.contains(high) && low <= high);
        let beyond = match high { core::net::IpAddr::V4(high) => high.to_bits().checked_add(1), core::net::IpAddr::V6(_) => None };
        prop_assert!(beyond.is_none_or(|beyond| !first.contains(core::net::Ipv4Addr::from(beyond).into())));
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

/// All fragments of a packet are in one flow, and a SYN in a fragment keeps its MSS.
#[test]
fn fragments_have_no_ports() {
    let mut packet = vec![0; 44];
    packet[..4].copy_from_slice(&[0x45, 0, 0, 44]);
    packet[9] = 6;
    packet[20..24].copy_from_slice(&[0x12, 0x34, 0, 80]);
    packet[32..34].copy_from_slice(&[0x60, 2]);
    packet[40..44].copy_from_slice(&[2, 4, 5, 180]);
    let whole = read(&packet).expect("a whole packet");
    assert_eq!(whole.ports, Some([0x1234, 80]));
    let mut fragments = [packet.clone(), packet.clone()];
    fragments[0][6] = 0x20;
    fragments[1][7] = 3;
    let [first, later] = fragments.each_ref().map(|packet| read(packet).expect("IP"));
    assert_eq!((first.ports, later.ports), (None, None));
    assert_eq!(first.flow, later.flow);
    assert!(!clamp_mss(&mut fragments[0], &first, 1_000));
    assert!(clamp_mss(&mut packet, &whole, 1_000));
    assert_eq!(packet[42..], 960_u16.to_be_bytes());
}
