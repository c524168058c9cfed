//! Captures to replay: what is read of them, and what is said of broken ones. The files are built here, octet by
//! octet, after draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.

use std::path::Path;

use anabranch_core::units::Duration;
use anabranch_model::{
    scenario::{Extensions, Resolved, Scenario},
    workload::{Recording, RecordingError},
};
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

/// The beginning of an IPv4 packet of this length.
fn v4(length: u16) -> Vec<u8> {
    let [high, low] = length.to_be_bytes();
    let mut packet = vec![0x45, 0, high, low];
    packet.resize(20, 0);
    packet
}

/// In Ethernet, with so many VLAN tags.
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

/// Ethernet with microseconds: VLAN tags, padding, ARP and a packet of which only the head was kept.
#[test]
fn ethernet_in_microseconds() {
    let mut padded = ethernet(0, 0x0800, &v4(40));
    padded.resize(60, 0);
    let frames = [
        (5_000_007, ethernet(0, 0x0800, &v4(1_500)), 1_514),
        (5_000_008, ethernet(0, 0x0806, &[0; 28]), 42),
        (5_000_009, padded, 60),
        (6_000_007, ethernet(2, 0x0800, &v4(576)), 598),
        // The head alone, and no IP length at all: it follows from the frame's.
        (6_000_007, ethernet(0, 0x0800, &[0x45, 0]), 1_014),
        (6_000_010, ethernet(0, 0x86dd, &[0x60, 0, 0, 0, 1, 0]), 310),
    ];
    let expected = [
        (0, 1_500),
        (2_000, 40),
        (1_000_000_000, 576),
        (1_000_000_000, 1_000),
        (1_000_003_000, 296),
    ];
    assert_eq!(packets(&pcap(MICROS, 1, &frames)), expected);
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
fn broken_captures_say_what_is_wrong() {
    let good = pcap(
        MICROS,
        101,
        &[(1, v4(100), 100), (2, v4(200), 200), (3, v4(300), 300)],
    );
    let wrong = |file: &[u8]| Recording::parse(file).expect_err("it must be refused");
    assert_eq!(wrong(b""), RecordingError::NotACapture);
    assert_eq!(
        wrong(b"duration = \"10 s\"\n[link.a]"),
        RecordingError::NotACapture
    );
    let cut = &good[..good.len() - 1];
    assert_eq!(wrong(cut), RecordingError::Truncated { after: 2 });
    assert_eq!(
        wrong(&good[..good.len() - 25]),
        RecordingError::Truncated { after: 2 }
    );
    assert_eq!(wrong(&good[..20]), RecordingError::Truncated { after: 0 });
    let ng = pcapng(6, &[(1, v4(100)), (2, v4(200))]);
    assert_eq!(
        wrong(&ng[..ng.len() - 3]),
        RecordingError::Truncated { after: 1 }
    );
    // A block of unknown kind that says it is shorter than its own head and tail, in either byte order.
    for order in [u32::to_le_bytes, u32::to_be_bytes] {
        let magic: [u8; 4] = order(0x1a2b_3c4d);
        let section = [&magic[..], &[0; 12]].concat();
        let mut short = block(0x0a0d_0d0a, &section);
        let length = order(u32::try_from(short.len()).expect("short"));
        short[4..8].copy_from_slice(&length);
        let end = short.len() - 4;
        short[end..].copy_from_slice(&length);
        short.extend([&order(0x8000_0001)[..], &order(10), &[0; 24]].concat());
        assert_eq!(wrong(&short), RecordingError::Broken { after: 0 });
    }
    let back = pcap(MICROS, 101, &[(9, v4(100), 100), (6, v4(200), 200)]);
    let by = Duration::from_micros(3);
    assert_eq!(wrong(&back), RecordingError::GoesBack { packet: 2, by });
    let arp = pcap(MICROS, 1, &[(1, ethernet(0, 0x0806, &[0; 28]), 42)]);
    assert_eq!(wrong(&arp), RecordingError::NoPackets { frames: 1 });
    assert_eq!(
        wrong(&pcap(MICROS, 1, &[])),
        RecordingError::NoPackets { frames: 0 }
    );
    let wireless = pcap(MICROS, 105, &[(1, vec![0; 40], 40)]);
    assert_eq!(
        wrong(&wireless),
        RecordingError::LinkType {
            packet: 1,
            link_type: 105
        }
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

/// 400 bytes in 2 us are 1.6 Gbit/s; at 16 Mbit/s that takes a hundred times as long.
#[test]
fn a_rate_stretches_the_times() {
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

/// Every message names the scenario's place and the capture.
#[test]
fn scenarios_name_what_cannot_be_replayed() {
    let good = pcap(MICROS, 101, &[(1, v4(100), 100), (3, v4(300), 300)]);
    let one = pcap(MICROS, 101, &[(1, v4(100), 100)]);
    let long = pcap(MICROS, 101, &[(1, vec![0x60, 0, 0, 0, 255, 255], 65_575)]);
    let cases: [(Vec<u8>, &[&str], &[&str]); 9] = [
        (
            good.clone(),
            &["flow.trace.workload.file='y.pcap'"],
            &["some/where/y.pcap", "no such file"],
        ),
        (
            good[..30].to_vec(),
            &[],
            &["trace.toml:10:", "data/x.pcap", "middle"],
        ),
        (
            b"no capture".to_vec(),
            &[],
            &["trace.toml:10:", "is no capture", "pcapng"],
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
            &["both say"],
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
    /// Broken anywhere, a capture is read or refused.
    #[test]
    fn nothing_panics(place in 0..400_usize, octet: u8, cut in 0..400_usize) {
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
