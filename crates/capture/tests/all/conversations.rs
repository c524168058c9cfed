//! Who sends to whom, and what a selection leaves.

use anabranch_capture::{Conversations, Endpoint, Fragments, Ip, Reader, Selection};

use crate::make::{plain, v4_of};

/// Packets of UDP, each from host and port to host and port in 10.0.0.0/8.
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
    let (largest, more) = count(&all).largest(10);
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
    let (largest, more) = count(&many).largest(3);
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
fn a_selection_leaves_what_it_says() {
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
            protocols: &[17],
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
        protocols: &[6],
        ..Selection::default()
    };
    assert!(!tcp.has(&all[0], None));
}

/// Later fragments have no ports of their own.
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
