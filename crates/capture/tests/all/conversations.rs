//! Conversations of a capture, and selections.

use std::net::IpAddr;

use anabranch_capture::{
    Conversations, Endpoint, Fragment, Fragments, Ip, Protocol, Reader, Selection,
};
use proptest::{collection::vec, prelude::*};

use crate::make::{plain, v4_of};

/// UDP packets, each given by host and port of both ends in 10.0.0.0/8.
fn packets(all: &[(u8, u16, u8, u16)]) -> Vec<Ip> {
    let frames: Vec<_> = all
        .iter()
        .map(|(source, from, target, to)| {
            let payload = [&from.to_be_bytes()[..], &to.to_be_bytes(), &[0; 8]].concat();
            v4_of(17, [10, 0, 0, *source], [10, 0, 0, *target], &payload)
        })
        .collect();
    let file = plain(101, &frames);
    let mut reader = Reader::open(&file[..]).expect("a capture");
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().expect("it is whole") {
        packets.push(packet.ip);
    }
    packets
}

fn count(all: &[(u8, u16, u8, u16)]) -> Conversations {
    let mut conversations = Conversations::default();
    for ip in packets(all) {
        conversations.add(&ip, ip.ports);
    }
    conversations
}

#[test]
fn hosts_that_answer_each_other_are_two_way() {
    assert!(!count(&[(1, 10, 2, 20), (1, 10, 3, 30), (4, 1, 1, 1)]).is_two_way());
    assert!(count(&[(1, 10, 2, 20), (2, 20, 1, 10)]).is_two_way());
    // Other connections of the same hosts.
    assert!(count(&[(1, 10, 2, 20), (2, 5, 1, 6)]).is_two_way());
    // A host that talks to itself.
    assert!(!count(&[(1, 10, 1, 20), (1, 10, 1, 20)]).is_two_way());
    assert!(count(&[(1, 10, 1, 20), (1, 20, 1, 10)]).is_two_way());
    assert!(!count(&[(1, 10, 1, 10), (1, 10, 1, 10)]).is_two_way());
}

#[test]
fn the_largest_come_first_and_as_keys() {
    let mut all = vec![(1, 10, 2, 20); 3];
    all.push((2, 20, 1, 10));
    let all = count(&all);
    let (largest, more) = all.largest(10, &all, false);
    let lines: Vec<_> = largest.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "from = \"10.0.0.1:10\", to = \"10.0.0.2:20\"  (3 packets, 96 bytes, UDP)",
            "from = \"10.0.0.2:20\", to = \"10.0.0.1:10\"  (1 packet, 32 bytes, UDP)",
        ]
    );
    assert_eq!(more, 0);
    // Many connections of many hosts: by host.
    let many: Vec<_> = (0..50)
        .map(|k| (1, k, 2 + u8::try_from(k % 5).expect("small"), 80))
        .collect();
    let many = count(&many);
    let (largest, more) = many.largest(3, &many, false);
    assert_eq!((largest.len(), more), (3, 2));
    assert_eq!(
        largest[0].to_string(),
        "from = \"10.0.0.1\", to = \"10.0.0.2\"  (10 packets, 320 bytes)"
    );
}

#[test]
fn endpoints_are_read_and_written() {
    for text in [
        "10.0.0.1",
        "10.0.0.1:443",
        "10.0.0.0/8",
        "10.0.0.0/8:53",
        "*:443",
        "2001:db8::1",
        "[2001:db8::1]:443",
        "2001:db8::/32",
        "[2001:db8::/32]:443",
        "0.0.0.0/0",
        "::/0",
    ] {
        let endpoint: Endpoint = text
            .parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(endpoint.to_string(), text);
    }
    for text in [
        "",
        "*",
        "10.0.0",
        "10.0.0.1:",
        "10.0.0.1:x",
        "10.0.0.1:65536",
        "10.0.0.0/33",
        "[::1",
        "[::1]x",
        "host",
        "10.0.0.1:+5",
    ] {
        assert!(text.parse::<Endpoint>().is_err(), "{text}");
    }
}

#[test]
fn a_selection_keeps_matching_packets() {
    let all = packets(&[
        (1, 10, 2, 20),
        (1, 11, 2, 20),
        (2, 20, 1, 10),
        (3, 10, 2, 80),
    ]);
    let left = |from: &str, to: &str| -> Vec<usize> {
        let parse = |text: &str| (!text.is_empty()).then(|| text.parse().expect("an endpoint"));
        let selection = Selection {
            from: parse(from),
            to: parse(to),
            protocol: Some(Protocol::Udp),
        };
        let numbers = all.iter().enumerate();
        numbers
            .filter(|(_, ip)| selection.has(ip, ip.ports))
            .map(|(k, _)| k)
            .collect()
    };
    assert_eq!(left("10.0.0.1", ""), [0, 1]);
    assert_eq!(left("10.0.0.1:10", ""), [0]);
    assert_eq!(left("", "10.0.0.2"), [0, 1, 3]);
    assert_eq!(left("*:10", "10.0.0.2"), [0, 3]);
    assert_eq!(left("10.0.0.2/31", ""), [2, 3]);
    assert_eq!(left("0.0.0.0/0", ""), [0, 1, 2, 3]);
    assert!(left("2001:db8::1", "").is_empty());
    let tcp = Selection {
        protocol: Some(Protocol::Tcp),
        ..Selection::default()
    };
    assert!(!tcp.has(&all[0], None));
}

/// Later fragments have no ports.
#[test]
fn fragments_belong_to_the_connection_of_the_first() {
    let mut first = v4_of(
        17,
        [10, 0, 0, 1],
        [10, 0, 0, 2],
        &[0, 10, 0, 20, 0, 0, 0, 0],
    );
    let mut later = first.clone();
    first[6] = 0x20;
    later[7] = 1;
    let mut other = later.clone();
    other[5] = 99;
    let file = plain(101, &[first, later, other]);
    let mut reader = Reader::open(&file[..]).expect("a capture");
    let mut fragments = Fragments::default();
    let mut ports = Vec::new();
    while let Some(packet) = reader.next_packet().expect("it is whole") {
        ports.push(fragments.ports(&packet.ip));
    }
    assert_eq!(ports, [Some((10, 20)), Some((10, 20)), None]);
}

/// A packet among few hosts, protocols and ports, so that conversations overlap in them.
fn any_packet() -> impl Strategy<Value = (Ip, Option<(u16, u16)>)> {
    let host = (1..4_u8, any::<bool>());
    let protocol = prop::sample::select(vec![1_u8, 6, 17, 50, 58, 89, 132]);
    let ports = prop::option::of((1..3_u16, 1..3_u16));
    (host, 1..4_u8, protocol, ports, 20..60_u32).prop_map(
        |((source, is_v6), target, protocol, ports, length)| {
            let address = |last: u8| -> IpAddr {
                if is_v6 {
                    [0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(last)].into()
                } else {
                    [10, 0, 0, last].into()
                }
            };
            let ip = Ip {
                source: address(source),
                target: address(target),
                protocol,
                hop_limit: 64,
                length,
                header: 20,
                fragment: Fragment::Whole,
                identification: 0,
                ports,
            };
            (ip, ports.filter(|_| matches!(protocol, 6 | 17 | 132)))
        },
    )
}

proptest! {
    /// Holds also for the packets of a previous selection.
    #[test]
    fn offered_selections_select_the_packets_they_count(
        packets in vec(any_packet(), 1..60),
        most in 1..40_usize,
        port in prop::option::of(1..3_u16),
        protocol in prop::option::of(prop::sample::select(Protocol::NAMED.to_vec())),
    ) {
        let given = Selection {
            from: port.map(|port| format!("*:{port}").parse().expect("an endpoint")),
            to: None,
            protocol,
        };
        let (mut all, mut selected) = (Conversations::default(), Conversations::default());
        for (ip, ports) in &packets {
            all.add(ip, *ports);
            if given.has(ip, *ports) {
                selected.add(ip, *ports);
            }
        }
        let (largest, _) = selected.largest(most, &all, protocol.is_some());
        let mut lines: Vec<_> = largest.iter().map(|one| one.selection.to_string()).collect();
        for one in &largest {
            let is_meant = |(ip, ports): &&(Ip, _)| one.selection.has(ip, *ports);
            let meant: Vec<_> = packets.iter().filter(is_meant).collect();
            prop_assert_eq!(one.packets, meant.len() as u64, "{}", one);
            let bytes: u64 = meant.iter().map(|(ip, _)| u64::from(ip.length)).sum();
            prop_assert_eq!(one.bytes, bytes, "{}", one);
            prop_assert!(meant.windows(2).all(|pair| pair[0].0.source == pair[1].0.source));
        }
        lines.sort_unstable();
        prop_assert!(lines.windows(2).all(|pair| pair[0] != pair[1]), "{:?}", lines);
    }
}

#[test]
fn protocols_on_the_same_ports_are_distinguished() {
    let ip = |protocol, ports| Ip {
        source: [10, 0, 0, 1].into(),
        target: [10, 0, 0, 2].into(),
        protocol,
        hop_limit: 64,
        length: 30,
        header: 20,
        fragment: Fragment::Whole,
        identification: 0,
        ports,
    };
    let mut all = Conversations::default();
    for (protocol, ports, count) in [
        (6, Some((10, 20)), 5),
        (17, Some((10, 20)), 4),
        (6, Some((11, 20)), 3),
        (50, None, 2),
        (89, None, 1),
    ] {
        for _ in 0..count {
            all.add(&ip(protocol, ports), ports);
        }
    }
    let (largest, _) = all.largest(10, &all, false);
    let lines: Vec<_> = largest.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "from = \"10.0.0.1:10\", to = \"10.0.0.2:20\", protocol = \"tcp\"  (5 packets, 150 bytes)",
            "from = \"10.0.0.1:10\", to = \"10.0.0.2:20\", protocol = \"udp\"  (4 packets, 120 bytes)",
            "from = \"10.0.0.1:11\", to = \"10.0.0.2:20\"  (3 packets, 90 bytes, TCP)",
            "from = \"10.0.0.1\", to = \"10.0.0.2\", protocol = \"esp\"  (2 packets, 60 bytes)",
            "from = \"10.0.0.1\", to = \"10.0.0.2\", protocol = 89  (1 packet, 30 bytes)",
        ]
    );
}
