//! Link types and encapsulations: the same packets come out of each.

use anabranch_capture::{Fragment, Packet, Reader, Skip};

use crate::make::{
    MICROS, Order, ethernet, frames, lengths, pcap, plain, read, v4, v4_of, v6, v6_of,
};

/// All encapsulations of an IP packet in a frame: name, link type, frame.
type Encapsulation = (&'static str, u32, fn(&[u8]) -> Vec<u8>);

fn ip_type(packet: &[u8]) -> u16 {
    if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd }
}
fn ppp_type(packet: &[u8]) -> [u8; 2] {
    if packet[0] >> 4 == 4 {
        [0, 0x21]
    } else {
        [0, 0x57]
    }
}
fn in_ethernet(packet: &[u8]) -> Vec<u8> {
    ethernet(ip_type(packet), packet)
}
fn tag(packet: &[u8]) -> Vec<u8> {
    [&[0x20, 7][..], &ip_type(packet).to_be_bytes(), packet].concat()
}
fn pppoe(packet: &[u8]) -> Vec<u8> {
    let length = u16::try_from(packet.len() + 2)
        .expect("short")
        .to_be_bytes();
    [&[0x11, 0, 0, 7][..], &length, &ppp_type(packet), packet].concat()
}
fn label(bottom: bool, payload: &[u8]) -> Vec<u8> {
    [&[0, 1, 0x40 | u8::from(bottom), 64][..], payload].concat()
}
fn outer(protocol: u8, payload: &[u8]) -> Vec<u8> {
    v4_of(protocol, [10, 0, 0, 1], [10, 0, 0, 2], payload)
}
fn gre(flags: u16, kind: u16, payload: &[u8]) -> Vec<u8> {
    let words = [0x8000, 0x2000, 0x1000]
        .iter()
        .filter(|flag| flags & **flag != 0)
        .count();
    let header = [
        &flags.to_be_bytes()[..],
        &kind.to_be_bytes(),
        &vec![5; words * 4],
    ]
    .concat();
    outer(47, &[&header[..], payload].concat())
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + payload.len()).expect("short");
    let ports = [50_000_u16.to_be_bytes(), port.to_be_bytes()].concat();
    let header = [&ports[..], &length.to_be_bytes(), &[0, 0]].concat();
    outer(17, &[&header[..], payload].concat())
}
fn vxlan(port: u16, packet: &[u8]) -> Vec<u8> {
    let header = [8, 0, 0, 0, 0, 0, 100, 0];
    udp(port, &[&header[..], &in_ethernet(packet)].concat())
}
fn gtp(flags: u8, optional: &[u8], packet: &[u8]) -> Vec<u8> {
    let length = u16::try_from(optional.len() + packet.len()).expect("short");
    let length = length.to_be_bytes();
    let header = [0x30 | flags, 255, length[0], length[1], 0, 0, 0, 1];
    udp(2152, &[&header[..], optional, packet].concat())
}

const ALL: &[Encapsulation] = &[
    ("BSD loopback, IPv4's family little-endian", 0, |p| {
        let family = if p[0] >> 4 == 4 { 2 } else { 30 };
        [&[family, 0, 0, 0][..], p].concat()
    }),
    ("BSD loopback, big-endian", 0, |p| {
        let family = if p[0] >> 4 == 4 { 2 } else { 28 };
        [&[0, 0, 0, family][..], p].concat()
    }),
    ("OpenBSD loopback", 108, |p| {
        let family = if p[0] >> 4 == 4 { 2 } else { 24 };
        [&[0, 0, 0, family][..], p].concat()
    }),
    ("Ethernet", 1, in_ethernet),
    ("VLAN", 1, |p| ethernet(0x8100, &tag(p))),
    ("QinQ", 1, |p| {
        ethernet(0x88a8, &[&[0, 5, 0x81, 0][..], &tag(p)].concat())
    }),
    ("old QinQ, three tags", 1, |p| {
        ethernet(
            0x9100,
            &[&[0, 5, 0x91, 0, 0, 6, 0x81, 0][..], &tag(p)].concat(),
        )
    }),
    ("LLC and SNAP", 1, |p| {
        let llc = [&[0xaa, 0xaa, 3, 0, 0, 0][..], &ip_type(p).to_be_bytes(), p].concat();
        ethernet(u16::try_from(llc.len()).expect("short"), &llc)
    }),
    ("PPPoE", 1, |p| ethernet(0x8864, &pppoe(p))),
    ("PPPoE in a VLAN", 1, |p| {
        ethernet(0x8100, &[&[0, 7, 0x88, 0x64][..], &pppoe(p)].concat())
    }),
    ("PPPoE without Ethernet", 51, pppoe),
    ("PPP", 9, |p| [&ppp_type(p)[..], p].concat()),
    ("PPP with address and control", 9, |p| {
        [&[0xff, 3][..], &ppp_type(p), p].concat()
    }),
    ("PPP with a short protocol", 9, |p| {
        [&ppp_type(p)[1..], p].concat()
    }),
    ("PPP in HDLC framing", 50, |p| {
        [&[0xff, 3][..], &ppp_type(p), p].concat()
    }),
    ("PPP with a direction", 204, |p| {
        [&[1, 0xff, 3][..], &ppp_type(p), p].concat()
    }),
    ("pppd", 166, |p| [&[0, 3][..], &ppp_type(p), p].concat()),
    ("Cisco HDLC", 104, |p| {
        [&[0x0f, 0][..], &ip_type(p).to_be_bytes(), p].concat()
    }),
    ("Cisco HDLC as PPP", 50, |p| {
        [&[0x8f, 0][..], &ip_type(p).to_be_bytes(), p].concat()
    }),
    ("raw", 101, <[u8]>::to_vec),
    ("raw, OpenBSD", 14, <[u8]>::to_vec),
    ("raw, others", 12, <[u8]>::to_vec),
    ("Linux cooked", 113, |p| {
        [&[0; 14][..], &ip_type(p).to_be_bytes(), p].concat()
    }),
    ("Linux cooked with a VLAN", 113, |p| {
        [&[0; 14][..], &[0x81, 0], &tag(p)].concat()
    }),
    ("Linux cooked 2", 276, |p| {
        [&ip_type(p).to_be_bytes()[..], &[0; 18], p].concat()
    }),
    ("MPLS", 219, |p| label(true, p)),
    ("MPLS in Ethernet, three labels", 1, |p| {
        ethernet(0x8847, &label(false, &label(false, &label(true, p))))
    }),
    ("MPLS in PPP", 9, |p| {
        [&[2, 0x81][..], &label(true, p)].concat()
    }),
    ("Ethernet over MPLS with a control word", 1, |p| {
        ethernet(
            0x8847,
            &label(true, &[&[0; 4][..], &in_ethernet(p)].concat()),
        )
    }),
    ("Ethernet over MPLS", 1, |p| {
        ethernet(0x8847, &label(true, &in_ethernet(p)))
    }),
    ("GRE", 101, |p| gre(0, ip_type(p), p)),
    ("GRE with checksum, key and sequence", 101, |p| {
        gre(0xb000, ip_type(p), p)
    }),
    ("GRE with a key", 101, |p| gre(0x2000, ip_type(p), p)),
    ("Ethernet in GRE", 101, |p| gre(0, 0x6558, &in_ethernet(p))),
    ("ERSPAN I", 101, |p| gre(0, 0x88be, &in_ethernet(p))),
    ("ERSPAN II", 101, |p| {
        gre(0x1000, 0x88be, &[&[0x10; 8][..], &in_ethernet(p)].concat())
    }),
    ("ERSPAN III", 101, |p| {
        gre(0x1000, 0x22eb, &[&[0x20; 12][..], &in_ethernet(p)].concat())
    }),
    ("PPTP", 101, |p| {
        let ppp = [&ppp_type(p)[..], p].concat();
        let head = [0x30, 0x81, 0x88, 0x0b, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 2];
        outer(47, &[&head[..], &ppp].concat())
    }),
    ("IP in IP", 101, |p| {
        outer(if p[0] >> 4 == 4 { 4 } else { 41 }, p)
    }),
    ("IP in IPv6", 229, |p| {
        v6_of(if p[0] >> 4 == 4 { 4 } else { 41 }, p)
    }),
    ("IP in IP twice", 1, |p| {
        let inner = outer(if p[0] >> 4 == 4 { 4 } else { 41 }, p);
        ethernet(0x0800, &outer(4, &inner))
    }),
    ("MPLS in IP", 101, |p| outer(137, &label(true, p))),
    ("VXLAN", 101, |p| vxlan(4789, p)),
    ("VXLAN to Linux's first port", 101, |p| vxlan(8472, p)),
    ("Geneve with two options", 101, |p| {
        let header = [&[4, 0, 0x65, 0x58, 0, 0, 100, 0][..], &[7; 16]].concat();
        udp(6081, &[&header[..], &in_ethernet(p)].concat())
    }),
    ("Geneve of IP", 101, |p| {
        let header = [&[0, 0][..], &ip_type(p).to_be_bytes(), &[0, 0, 100, 0]].concat();
        udp(6081, &[&header[..], p].concat())
    }),
    ("GTP-U", 101, |p| gtp(0, &[], p)),
    ("GTP-U with a sequence number", 101, |p| {
        gtp(2, &[0, 1, 0, 0], p)
    }),
    ("GTP-U with an extension header", 101, |p| {
        gtp(4, &[0, 0, 0, 0x85, 1, 0, 9, 0], p)
    }),
];

#[test]
fn every_encapsulation_gives_the_same_packets() {
    for (name, link_type, wrap) in ALL {
        let packets = [v4(1_040), v6(300), v4(40), v6(48)];
        let file = plain(*link_type, &packets.map(|packet| wrap(&packet)));
        let mut reader = Reader::open(&file[..]).expect("a capture");
        let mut seen = Vec::new();
        while let Some(packet) = reader.next_packet().expect(name) {
            assert_eq!(packet.ip.ports, Some((5000, 80)), "{name}");
            assert_eq!(packet.octets.len(), packet.ip.length as usize, "{name}");
            seen.push((packet.ip.length, packet.ip.source.to_string()));
        }
        let expected = [
            (1_040, "192.0.2.1"),
            (300, "2001:db8::1"),
            (40, "192.0.2.1"),
            (48, "2001:db8::1"),
        ];
        let expected = expected.map(|(length, source)| (length, source.to_owned()));
        assert_eq!(seen, expected, "{name}");
    }
}

/// Link types 228 (IPv4 only) and 229 (IPv6 only).
#[test]
fn link_types_of_one_version() {
    assert_eq!(lengths(&plain(228, &[v4(100)])), [100]);
    assert_eq!(lengths(&plain(229, &[v6(100)])), [100]);
}

#[test]
fn frames_without_ip_are_counted_by_reason() {
    let all = [
        (ethernet(0x0806, &[0; 28]), Skip::Arp),
        (
            ethernet(0x8863, &[0x11, 9, 0, 0, 0, 0]),
            Skip::PppoeDiscovery,
        ),
        (
            ethernet(0x8864, &[0x11, 0, 0, 7, 0, 10, 0xc0, 0x21, 1, 1, 0, 4]),
            Skip::PppControl,
        ),
        (
            ethernet(0x8864, &[0x11, 0, 0, 7, 0, 10, 0x80, 0x21, 1, 1, 0, 4]),
            Skip::PppControl,
        ),
        (ethernet(38, &[0x42, 0x42, 3, 0, 0, 0]), Skip::Llc),
        (ethernet(0x88cc, &[2, 7, 4]), Skip::Lldp),
        (ethernet(0x8809, &[1; 20]), Skip::SlowProtocol),
        (ethernet(0x1234, &[0; 40]), Skip::OtherProtocol),
        (
            ethernet(0x8847, &[0, 1, 0x41, 64, 0xf0, 0, 0, 0]),
            Skip::MplsPayload,
        ),
        (ethernet(0x0800, &[0x45, 0]), Skip::CutShort),
        (ethernet(0x0800, &[0x42; 20]), Skip::MalformedIp),
        (ethernet(0x0800, &[0x55; 20]), Skip::MalformedIp),
        (vec![0; 13], Skip::CutShort),
    ];
    for (frame, expected) in all {
        let (packets, counts) = read(&plain(1, &[frame]));
        assert!(packets.is_empty());
        assert_eq!(
            counts.skipped.into_iter().collect::<Vec<_>>(),
            [(expected, 1)]
        );
    }
    let (_, counts) = read(&plain(105, &[vec![0; 40], vec![0; 40]]));
    assert_eq!(counts.skipped.get(&Skip::LinkType(105)), Some(&2));
}

/// The upper bits of the header's last field announce a check sequence of two words after each
/// frame.
#[test]
fn fcs_bits_are_not_the_link_type() {
    let with_fcs = |length: u16| [in_ethernet(&v4(length)), vec![1, 2, 3, 4]].concat();
    // A packet without a length has the length of the frame, less the check sequence.
    let mut offloaded = with_fcs(1_000);
    offloaded[16..18].copy_from_slice(&[0, 0]);
    let file = plain(0x2400_0001, &[with_fcs(100), offloaded]);
    assert_eq!(lengths(&file), [100, 1_000]);
    // Some writers set the bits although frames have no check sequence.
    assert_eq!(
        lengths(&plain(0x4400_0001, &[in_ethernet(&v4(100))])),
        [100]
    );
}

#[test]
fn a_packet_kept_in_part_has_its_own_length() {
    let mut all = frames(&[in_ethernet(&v4(1_500)), in_ethernet(&v6(1_280))]);
    for frame in &mut all {
        frame.octets.truncate(14 + 44);
    }
    assert_eq!(
        lengths(&pcap(Order::Little, MICROS, 1, &all)),
        [1_500, 1_280]
    );
}

/// IPv6 extension headers: hop-by-hop, routing, destination options, authentication, and a
/// fragment.
#[test]
fn extension_headers_lead_to_the_ports() {
    let udp = [0x13, 0x88, 0, 80, 0, 8, 0, 0];
    let eight = |next: u8| [next, 0, 0, 0, 0, 0, 0, 0];
    let chain = [
        &eight(43)[..],
        &eight(60),
        &eight(51),
        &[17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &udp,
    ]
    .concat();
    let fragment = |offset: u16| {
        let [high, low] = offset.to_be_bytes();
        v6_of(44, &[&[17, 0, high, low, 0, 0, 0, 9][..], &udp].concat())
    };
    let all = [
        v6_of(0, &chain),
        fragment(1),
        fragment(8 | 1),
        fragment(16),
        fragment(0),
    ];
    let file = plain(101, &all);
    let mut reader = Reader::open(&file[..]).expect("a capture");
    let mut seen = Vec::new();
    while let Some(Packet { ip, .. }) = reader.next_packet().expect("it is whole") {
        seen.push((ip.protocol, ip.ports.is_some(), ip.fragment));
    }
    let expected = [
        (17, true, Fragment::Whole),
        (17, true, Fragment::First),
        (17, false, Fragment::Later),
        (17, false, Fragment::Later),
        (17, true, Fragment::Whole),
    ];
    assert_eq!(seen, expected);
    assert_eq!(reader.counts().fragments, 3);
}

/// A fragment of a tunnel's packet contains only part of the inner packet.
#[test]
fn a_tunnel_that_is_no_packet_is_the_outer_one() {
    let mut fragment = outer(4, &v4(100));
    fragment[6] = 0x20;
    let unknown = gre(0, 0x1234, &[0; 10]);
    assert_eq!(lengths(&plain(101, &[fragment, unknown])), [120, 34]);
}
