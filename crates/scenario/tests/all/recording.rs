//! Captures to replay: the packets read from them, and the errors of broken ones. The files are
//! built here, octet by octet, after draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.

use std::path::Path;

use anabranch_capture::Error;
use anabranch_scenario::{Extensions, Resolved, Scenario, workload::Recording};
use proptest::prelude::*;

/// A pcap: (microseconds or nanoseconds, frame, length on the wire).
fn pcap(magic: u32, link_type: u32, frames: &[(u64, Vec<u8>, u32)]) -> Vec<u8> {
    let per_s = if magic == 0xa1b2_3c4d {
        1_000_000_000
    } else {
        1_000_000
    };
    let mut file = Vec::new();
    let word = |word: u32, file: &mut Vec<u8>| file.extend(word.to_le_bytes());
    word(magic, &mut file);
    file.extend([2, 0, 4, 0]);
    for field in [0, 0, 65_535, link_type] {
        word(field, &mut file);
    }
    for (time, frame, length) in frames {
        let part = |value: u64| u32::try_from(value).expect("32 bits");
        for field in [
            part(time / per_s),
            part(time % per_s),
            part(frame.len() as u64),
            *length,
        ] {
            word(field, &mut file);
        }
        file.extend(frame);
    }
    file
}

const MICROS: u32 = 0xa1b2_c3d4;
const NANOS: u32 = 0xa1b2_3c4d;

/// The header of an IPv4 packet of this length.
fn v4(length: u16) -> Vec<u8> {
    let [high, low] = length.to_be_bytes();
    let mut packet = vec![0x45, 0, high, low];
    packet.resize(20, 0);
    packet
}

/// The packet in an Ethernet frame with `tags` VLAN tags.
fn ethernet(tags: usize, kind: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    for _ in 0..tags {
        frame.extend([0x81, 0x00, 0, 7]);
    }
    frame.extend(kind.to_be_bytes());
    frame.extend(packet);
    frame
}

/// A block of pcapng.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len().next_multiple_of(4) + 12)
        .expect("short")
        .to_le_bytes();
    let mut block = [&kind.to_le_bytes()[..], &length, body].concat();
    block.resize(block.len().next_multiple_of(4), 0);
    block.extend(length);
    block
}

/// A pcapng of raw IP whose clock has units of 10^-resolution s.
fn pcapng(resolution: u8, packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let section = [
        0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255,
    ];
    let mut file = block(0x0a0d_0d0a, &section);
    let interface = [
        101, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, resolution, 0, 0, 0, 0, 0, 0, 0,
    ];
    file.extend(block(1, &interface));
    for (time, packet) in packets {
        let half = |bits: u64| u32::try_from(bits).expect("half").to_le_bytes();
        let length = half(packet.len() as u64);
        let times = [half(time >> 32), half(time & 0xffff_ffff)].concat();
        file.extend(block(
            6,
            &[&[0; 4], &times[..], &length, &length, packet].concat(),
        ));
    }
    file
}

fn packets(file: &[u8]) -> Vec<(u64, u32)> {
    let recording = Recording::parse(file).unwrap_or_else(|error| panic!("{error}"));
    let packets = recording.packets().iter();
    packets
        .map(|packet| (packet.time.as_picos() / 1_000, packet.size))
        .collect()
}

/// Ethernet with microseconds: VLAN tags, padding, ARP and a truncated packet.
#[test]
fn ethernet_in_microseconds() {
    let mut padded = ethernet(0, 0x0800, &v4(40));
    padded.resize(60, 0);
    let frames = [
        (5_000_007, ethernet(0, 0x0800, &v4(1_500)), 1_514),
        (5_000_008, ethernet(0, 0x0806, &[0; 28]), 42),
        (5_000_009, padded, 60),
        (6_000_007, ethernet(2, 0x0800, &v4(576)), 598),
        // Without addresses the packet cannot be attributed to a flow: it is skipped, and counted.
        (6_000_007, ethernet(0, 0x0800, &[0x45, 0]), 1_014),
        (6_000_010, ethernet(0, 0x86dd, &[0x60, 0, 0, 0, 1, 0]), 310),
    ];
    let expected = [(0, 1_500), (2_000, 40), (1_000_000_000, 576)];
    let file = pcap(MICROS, 1, &frames);
    assert_eq!(packets(&file), expected);
    let summary = Recording::parse(&file).expect("it is read").summary();
    assert_eq!(summary.skipped["cut-short"], 2);
    assert_eq!(summary.skipped["arp"], 1);
}

#[test]
fn nanoseconds_and_raw_ip() {
    let frames = [(1_000_000_003, v4(100), 100), (2_000_000_001, v4(99), 99)];
    for link_type in [12, 14, 101, 228] {
        let file = pcap(NANOS, link_type, &frames);
        assert_eq!(packets(&file), [(0, 100), (999_999_998, 99)]);
    }
    let frames = [(1 << 40, v4(100)), ((1 << 40) + 7, v4(99))];
    assert_eq!(packets(&pcapng(9, &frames)), [(0, 100), (7, 99)]);
    assert_eq!(packets(&pcapng(6, &frames)), [(0, 100), (7_000, 99)]);
}

#[test]
fn errors_of_broken_captures_name_the_defect() {
    let good = pcap(
        MICROS,
        101,
        &[(1, v4(100), 100), (2, v4(200), 200), (3, v4(300), 300)],
    );
    let wrong = |file: &[u8]| Recording::parse(file).expect_err("it must be refused");
    assert_eq!(wrong(b""), Error::NotACapture.into());
    assert_eq!(
        wrong(b"duration = \"10 s\"\n[link.a]"),
        Error::NotACapture.into()
    );
    assert_eq!(wrong(&good[..20]), Error::NoHeader.into());
    let nothing = wrong(&good[..30]).to_string();
    assert!(
        nothing.contains("no IP packet and no other before it is cut off"),
        "{nothing}"
    );
    let arp = pcap(MICROS, 1, &[(1, ethernet(0, 0x0806, &[0; 28]), 42)]);
    let said = wrong(&arp).to_string();
    assert!(
        said.contains("no IP packet in 1 frame (1 of ARP)"),
        "{said}"
    );
    let said = wrong(&pcap(MICROS, 1, &[])).to_string();
    assert!(said.contains("no IP packet and no other"), "{said}");
    let wireless = wrong(&pcap(MICROS, 105, &[(1, vec![0; 40], 40)])).to_string();
    assert!(
        wireless.contains("1 of link type 105, which is not read"),
        "{wireless}"
    );
}

/// Of a truncated capture, the complete packets are read. Unsorted packets are sorted by time;
/// packets of one time keep the order of the file.
#[test]
fn cut_off_and_unsorted_captures_are_read_with_counts() {
    let good = pcap(
        MICROS,
        101,
        &[(1, v4(100), 100), (2, v4(200), 200), (3, v4(300), 300)],
    );
    let cut = Recording::parse(&good[..good.len() - 1]).expect("two are whole");
    assert_eq!((cut.packets().len(), cut.counts().is_cut_off), (2, true));
    let back = pcap(
        MICROS,
        101,
        &[(9, v4(100), 100), (6, v4(200), 200), (9, v4(300), 300)],
    );
    assert_eq!(packets(&back), [(0, 200), (3_000, 100), (3_000, 300)]);
    let summary = Recording::parse(&back).expect("it is sorted").summary();
    assert_eq!(summary.time_went_back, 1);
    assert_eq!(summary.replayed_packets, 3);
}

/// A packet from one host of 10.0.0.0/24 to another, over UDP from and to this port.
fn between(source: u8, target: u8, port: u16) -> Vec<u8> {
    let mut packet = v4(40);
    packet[9] = 17;
    packet[12..20].copy_from_slice(&[10, 0, 0, source, 10, 0, 0, target]);
    packet.extend([port.to_be_bytes(), port.to_be_bytes()].concat());
    packet.resize(40, 0);
    packet
}

/// Three packets from 10.0.0.1 to 10.0.0.2, one back, and one from 10.0.0.3.
fn two_way() -> Vec<u8> {
    let all = [
        between(1, 2, 443),
        between(2, 1, 443),
        between(1, 2, 443),
        between(1, 2, 80),
        between(3, 2, 443),
    ];
    let frames: Vec<_> = (1..)
        .zip(all)
        .map(|(time, packet)| (time, packet, 40))
        .collect();
    pcap(MICROS, 101, &frames)
}

#[test]
fn a_two_way_capture_needs_a_selection() {
    let error = resolve(two_way(), &[]).expect_err("it has two directions");
    for part in [
        "trace.toml:10:",
        "packets in both directions",
        "from = \"10.0.0.1:443\", to = \"10.0.0.2:443\"  (2 packets, 80 bytes, UDP)",
        "from = \"10.0.0.2:443\", to = \"10.0.0.1:443\"",
    ] {
        assert!(error.contains(part), "{error} without {part}");
    }
    // A protocol alone still leaves two directions.
    let udp = ["flow.trace.workload.protocol=udp"];
    let error = resolve(two_way(), &udp).expect_err("it has two directions");
    assert!(error.contains("both directions"), "{error}");
}

#[test]
fn a_selection_leaves_one_direction() {
    let count = |sets: &[&str]| {
        let resolved = resolve(two_way(), sets).unwrap_or_else(|error| panic!("{error}"));
        let summary = &resolved.captures()["trace"];
        (
            summary["replayed_packets"].as_u64(),
            summary["not_selected_packets"].as_u64(),
        )
    };
    let from = "flow.trace.workload.from=";
    let to = "flow.trace.workload.to=";
    let set = |key: &str, value: &str| format!("{key}'{value}'");
    assert_eq!(count(&[&set(from, "10.0.0.1")]), (Some(3), Some(2)));
    assert_eq!(count(&[&set(from, "10.0.0.1:443")]), (Some(2), Some(3)));
    assert_eq!(
        count(&[&set(from, "*:443"), &set(to, "10.0.0.2")]),
        (Some(3), Some(2))
    );
    assert_eq!(count(&[&set(to, "10.0.0.1")]), (Some(1), Some(4)));
    assert_eq!(
        count(&[&set(to, "10.0.0.2"), "flow.trace.workload.protocol=udp"]),
        (Some(4), Some(1))
    );
}

#[test]
fn a_selection_of_nothing_lists_the_choices() {
    let nobody = ["flow.trace.workload.from='10.9.9.9'"];
    let error = resolve(two_way(), &nobody).expect_err("nobody is selected");
    for part in [
        "flow.trace.workload.from",
        "none of its 5 IP packets is selected",
        "from = \"10.0.0.1:443\"",
    ] {
        assert!(error.contains(part), "{error} without {part}");
    }
    let wrong = ["flow.trace.workload.from='somewhere'"];
    let error = resolve(two_way(), &wrong).expect_err("it is no address");
    assert!(error.contains("[2001:db8::1]:443"), "{error}");
    let wrong = ["flow.trace.workload.protocol=tpc"];
    let error = resolve(two_way(), &wrong).expect_err("it is no protocol");
    assert!(error.contains("tcp"), "{error}");
}

/// Each line of the message, used as keys of a scenario, selects exactly its packets.
#[test]
fn every_listed_choice_selects_its_packets() {
    let packet = |source: u8, target: u8, protocol: u8, length: usize| {
        let mut packet = between(source, target, 443);
        packet[9] = protocol;
        packet[3] = u8::try_from(length).expect("short");
        packet.resize(length, 0);
        packet
    };
    let mut all = Vec::new();
    for (protocol, count) in [(6, 3), (17, 2), (1, 4), (50, 1), (89, 2)] {
        for k in 0..count {
            all.push(packet(1, 2, protocol, 40 + k));
            all.push(packet(2, 1, protocol, 50 + k));
        }
    }
    let frames: Vec<_> = (1..)
        .zip(&all)
        .map(|(time, packet)| (time, packet.clone(), 60))
        .collect();
    let file = pcap(MICROS, 101, &frames);
    for sets in [&[][..], &["flow.trace.workload.protocol=icmp"]] {
        let error = resolve(file.clone(), sets).expect_err("it has two directions");
        let lines: Vec<_> = error
            .lines()
            .filter(|line| line.contains("from = \""))
            .collect();
        assert_eq!(lines.len(), if sets.is_empty() { 10 } else { 2 }, "{error}");
        for line in lines {
            let (keys, said) = line.split_once("  (").expect("keys and a count");
            let keys = &keys[keys.find("from").expect("keys")..];
            let workload =
                format!("flow.trace.workload={{ kind = 'replay', file = 'data/x.pcap', {keys} }}");
            let resolved = resolve(file.clone(), &[&workload]);
            let resolved = resolved.unwrap_or_else(|error| panic!("{line}: {error}"));
            let replayed = &resolved.captures()["trace"]["replayed_packets"];
            let count = said.split(' ').next().expect("a count");
            assert_eq!(replayed.to_string(), count, "{line}");
        }
    }
    let far = ["flow.trace.workload.protocol=256"];
    let error = resolve(file, &far).expect_err("it is no protocol");
    assert!(
        error.contains("its number in IP headers, 0 to 255"),
        "{error}"
    );
}

const SCENARIO: &str = "duration = \"10 s\"
[link.path]
between = [\"A\", \"B\"]
rate = \"10 Mbit/s\"
delay = \"1 ms\"
[flow.trace]
from = \"A\"
to = \"B\"
protocol = \"udp\"
workload = { kind = \"replay\", file = \"data/x.pcap\" }
";

fn resolve(content: Vec<u8>, sets: &[&str]) -> Result<Resolved, String> {
    let extensions = Extensions::default().files(move |path: &Path, _| {
        if path == Path::new("some/where/data/x.pcap") {
            Ok(content.clone())
        } else {
            Err("no such file".to_owned())
        }
    });
    let scenario = Scenario::parse(SCENARIO, "some/where/trace.toml", &extensions);
    let mut scenario = scenario.map_err(|error| error.to_string())?;
    for set in sets {
        scenario.set(set).map_err(|error| error.to_string())?;
    }
    scenario.resolve(None).map_err(|error| error.to_string())
}

/// 400 bytes in 2 us are 1.6 Gbit/s; at 16 Mbit/s they take a hundred times as long.
#[test]
fn a_rate_scales_the_times() {
    let file = pcap(MICROS, 101, &[(1, v4(100), 100), (3, v4(300), 300)]);
    let factor = |sets: &[&str]| {
        let resolved = resolve(file.clone(), sets).unwrap_or_else(|error| panic!("{error}"));
        resolved.flows[0]
            .replayed
            .as_ref()
            .expect("it is read")
            .factor
    };
    assert!((factor(&[]) - 1.0).abs() < 1e-12);
    assert!((factor(&["flow.trace.workload.speed=2.5"]) - 2.5).abs() < 1e-12);
    assert!((factor(&["flow.trace.workload.rate='16 Mbit/s'"]) - 0.01).abs() < 1e-12);
}

/// Every message contains the position in the scenario and the capture.
#[test]
fn errors_of_replays_name_the_scenario_and_the_capture() {
    let good = pcap(MICROS, 101, &[(1, v4(100), 100), (3, v4(300), 300)]);
    let one = pcap(MICROS, 101, &[(1, v4(100), 100)]);
    let long = pcap(
        MICROS,
        101,
        &[(
            1,
            [&[0x60, 0, 0, 0, 255, 255][..], &[0; 34]].concat(),
            65_575,
        )],
    );
    let cases: [(Vec<u8>, &[&str], &[&str]); 9] = [
        (
            good.clone(),
            &["flow.trace.workload.file='y.pcap'"],
            &["some/where/y.pcap", "no such file"],
        ),
        (
            good[..30].to_vec(),
            &[],
            &["trace.toml:10:", "data/x.pcap", "cut off"],
        ),
        (
            b"no capture".to_vec(),
            &[],
            &["trace.toml:10:", "is not a capture", "pcapng"],
        ),
        (long, &[], &["65575 bytes", "65535 bytes at most"]),
        (
            one.clone(),
            &["flow.trace.workload.rate='1 Mbit/s'"],
            &["has no rate"],
        ),
        (
            one,
            &["flow.trace.workload.repeat=true"],
            &["cannot repeat"],
        ),
        (
            good.clone(),
            &["flow.trace.workload.speed=0"],
            &["0.001 to 1000"],
        ),
        (
            good.clone(),
            &[
                "flow.trace.workload.speed=2",
                "flow.trace.workload.rate='1 Mbit/s'",
            ],
            &["`speed` and `rate` contradict"],
        ),
        (good, &["flow.trace.protocol=tcp"], &["`replay` needs UDP"]),
    ];
    for (content, sets, parts) in cases {
        let error = resolve(content, sets).expect_err("it must be refused");
        for part in parts {
            assert!(error.contains(part), "{error} without {part}");
        }
    }
    let scenario = Scenario::parse(SCENARIO, "x.toml", &Extensions::default()).expect("TOML");
    let error = scenario
        .resolve(None)
        .expect_err("nobody reads files")
        .to_string();
    assert!(error.contains("reads no files"), "{error}");
}

proptest! {
    /// A capture with any octet changed is read or refused.
    #[test]
    fn broken_captures_do_not_panic(place in 0..400_usize, octet: u8, cut in 0..400_usize) {
        let frames: Vec<_> = (0..5).map(|k| (k, ethernet(1, 0x0800, &v4(60)), 78)).collect();
        let raw: Vec<_> = (0..5).map(|k| (k, v4(60))).collect();
        for mut file in [pcap(MICROS, 1, &frames), pcapng(9, &raw)] {
            let at = place % file.len();
            file[at] = octet;
            file.truncate(file.len() - cut % file.len());
            if let Ok(recording) = Recording::parse(&file) {
                let packets = recording.packets();
                prop_assert!(packets.windows(2).all(|pair| pair[0].time <= pair[1].time));
            }
        }
    }
}
