//! Captures: they have no effect on the run, they are complete, and every packet in them is
//! correct.

use crate::support::{Shape, resolve, text};
use anabranch_core::{body::Length, packet::Direction};
use anabranch_engine::record::Tapping;
use anabranch_engine::{Finished, Simulation};
use anabranch_wire as wire;

const SHAPE: Shape = Shape {
    files_only: false,
    changes: true,
    mangle: true,
    seconds: 2,
};

/// A packet of a capture.
struct Captured {
    nanos: u64,
    octets: Vec<u8>,
    len: u32,
    comment: String,
}

fn be(octets: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(octets[at..at + 4].try_into().expect("four octets"))
}

/// The packets of a pcapng file, with the minimum of the format.
fn packets(file: &[u8]) -> Vec<Captured> {
    let (mut rest, mut packets) = (file, Vec::new());
    assert_eq!(be(file, 0), 0x0a0d_0d0a, "a section header comes first");
    while !rest.is_empty() {
        let len = be(rest, 4) as usize;
        let block = &rest[..len];
        assert_eq!(
            be(block, len - 4) as usize,
            len,
            "both lengths of a block agree"
        );
        assert!(len.is_multiple_of(4));
        rest = &rest[len..];
        if be(block, 0) != 6 {
            continue;
        }
        let captured = be(block, 20) as usize;
        let option = 28 + captured.next_multiple_of(4);
        let head = be(block, option);
        assert_eq!(head & 0xffff, 1, "a comment");
        let comment = &block[option + 4..][..(head >> 16) as usize];
        packets.push(Captured {
            nanos: u64::from(be(block, 12)) << 32 | u64::from(be(block, 16)),
            octets: block[28..28 + captured].to_vec(),
            len: be(block, 24),
            comment: String::from_utf8(comment.to_vec()).expect("text"),
        });
    }
    packets
}

fn run(number: u64, snap_length: Option<u32>) -> Finished {
    let resolved = resolve(&text(number, SHAPE));
    let tapping = snap_length.map(|snap_length| Tapping {
        places: (0..resolved.links.len())
            .flat_map(|link| Direction::BOTH.map(|direction| (link, direction)))
            .collect(),
        snap_length,
        addresses: None,
    });
    Simulation::new(&resolved)
        .tap(tapping)
        .run()
        .expect("no hosts")
}

fn capture(run: &Finished<Length>, link: usize, direction: Direction) -> Vec<Captured> {
    let taps = run.network.probe().taps().expect("it was asked for");
    let names = run.network.element_names();
    packets(
        &taps
            .pcapng(link, &[direction], names)
            .expect("it was tapped"),
    )
}

#[test]
fn captures_are_complete_and_have_no_effect() {
    let mut fates = [0; 4];
    for number in 0..150 {
        let plain = run(number, None);
        let tapped = run(number, Some(64));
        assert_eq!(
            plain.summary.digest, tapped.summary.digest,
            "scenario {number}"
        );
        assert_eq!(
            plain.summary.flows, tapped.summary.flows,
            "scenario {number}"
        );
        assert_eq!(
            plain.summary.links, tapped.summary.links,
            "scenario {number}"
        );
        let whole = resolve(&text(number, SHAPE)).warmup.is_zero();
        for (link, (name, _)) in tapped.links.iter().enumerate() {
            for direction in Direction::BOTH {
                let seen = capture(&tapped, link, direction);
                assert!(seen.is_sorted_by_key(|packet| packet.nanos));
                let count = |word: &str| {
                    seen.iter()
                        .filter(|packet| packet.comment.contains(word))
                        .count() as u64
                };
                let figures = &tapped.summary.links[name][direction.name()];
                let told = |what: &str| figures[what].as_u64().expect("a count");
                let (dropped, lost) = (count("dropped by"), count("lost by") + count("damaged by"));
                fates[0] += dropped;
                fates[1] += lost;
                fates[2] += count("moved by");
                fates[3] += count("doubled by");
                if whole {
                    let place = format!("{name}.{} of scenario {number}", direction.name());
                    assert_eq!(dropped, told("dropped_packets"), "dropped at {place}");
                    assert_eq!(lost, told("lost_packets"), "lost at {place}");
                    assert!(
                        seen.len() as u64 >= told("sent_packets") + dropped,
                        "{} entered {place}, {} left it",
                        seen.len(),
                        told("sent_packets"),
                    );
                }
            }
        }
    }
    assert!(
        fates.iter().all(|&n| n > 0),
        "every fate has been seen: {fates:?}"
    );
}

#[test]
fn every_captured_packet_is_correct() {
    for number in 0..20 {
        let tapped = run(number, Some(u32::MAX));
        for link in 0..tapped.links.len() {
            for direction in Direction::BOTH {
                for packet in capture(&tapped, link, direction) {
                    assert_eq!(packet.octets.len(), packet.len as usize);
                    let decoded = wire::decode(&packet.octets).expect("checksums and lengths hold");
                    assert!(decoded.segment.body.0.iter().all(|&octet| octet == 0));
                }
            }
        }
    }
}

/// The datagrams of a tunnel were missing in captures of its paths.
#[test]
fn a_capture_of_a_tunnels_path_has_every_datagram() {
    let resolved = resolve(
        r#"
duration = "3 s"
[link.a]
between = ["X", "Y"]
rate = "10 Mbit/s"
delay = "10 ms"
[link.b]
between = ["X", "Y"]
rate = "5 Mbit/s"
delay = "20 ms"
[gateway.g]
between = ["X", "Y"]
routes = ["a", "b"]
kind = "tunnel"
[flow.main]
from = "X"
to = "Y"
"#,
    );
    let tapping = Tapping {
        places: vec![(0, Direction::Forward), (1, Direction::Reverse)],
        snap_length: 96,
        addresses: None,
    };
    let run: Finished = Simulation::new(&resolved)
        .tap(Some(tapping))
        .run()
        .expect("no hosts");
    for (link, name, direction) in [(0, "a", Direction::Forward), (1, "b", Direction::Reverse)] {
        let seen = capture(&run, link, direction);
        let sent = &run.summary.gateways["g"][direction.name()]["routes"][name];
        assert_eq!(Some(seen.len() as u64), sent["sent_packets"].as_u64());
        let octets: u64 = seen.iter().map(|one| u64::from(one.len)).sum();
        assert_eq!(Some(octets), sent["sent_bytes"].as_u64());
        for one in seen {
            assert_eq!(one.octets[9], 17, "UDP");
            assert_eq!(one.octets[20..24], [0xca, 0xbc, 0xca, 0xbc], "port 51900");
            assert!(one.comment.contains("of the gateway: "), "{}", one.comment);
        }
    }
}

/// Places of connections are taken again; ports were, too, so that a reader of the capture took
/// the segments of later connections for retransmissions of the first.
#[test]
fn connections_of_a_capture_have_different_ports() {
    let resolved = resolve(
        r#"
duration = "5 s"
[link.a]
between = ["X", "Y"]
rate = "10 Mbit/s"
delay = "5 ms"
[flow.main]
from = "X"
to = "Y"
workload = { kind = "poisson", rate = "4 Mbit/s", sizes = { kind = "fixed", size = "14480 bytes" } }
"#,
    );
    let tapping = Tapping {
        places: vec![(0, Direction::Forward)],
        snap_length: 96,
        addresses: None,
    };
    let run: Finished = Simulation::new(&resolved)
        .tap(Some(tapping))
        .run()
        .expect("no hosts");
    let seen = capture(&run, 0, Direction::Forward);
    let syns = seen.iter().filter(|one| one.octets[33] & 2 != 0);
    let again = |one: &&Captured| one.comment.contains("retransmission");
    let ports: Vec<_> = syns
        .filter(|one| !again(one))
        .map(|one| one.octets[20..24].to_vec())
        .collect();
    let different: std::collections::BTreeSet<_> = ports.iter().collect();
    assert!(ports.len() > 100, "{}", ports.len());
    assert_eq!(different.len(), ports.len());
}
