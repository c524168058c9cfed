//! The data of each workload arrives octet for octet. A run fails if its engine alters, swaps or
//! duplicates octets on the way to a kernel, with correct checksums.
use std::{env, fs};

use crate::common::{Fault, Wrong, exact, live, resolve};
use anabranch_core::units::Instant;
use anabranch_live::{Around, Frame, departing, write};
use anabranch_path::host::{Arrived, Host};
use anabranch_scenario::Extensions;
use anabranch_wire::{Checksum, updated};

/// Headers of IPv4, TCP with timestamps, and UDP.
const IP: usize = 20;
const TCP: usize = 32;
const UDP: usize = 8;
/// Protocol of IPv4.
const IS_UDP: u8 = 17;

/// Workloads by name, all of which carry enough data in half a second.
const WORKLOADS: [(&str, &str); 7] = [
    ("file", "workload = { kind = \"file\", size = \"300 kB\" }"),
    (
        "requests",
        "workload = { kind = \"request-response\", request = \"20 kB\", response = \"20 kB\" }",
    ),
    (
        "transfers",
        "workload = { kind = \"poisson\", rate = \"8 Mbit/s\", sizes = { kind = \"fixed\", size = \"20 kB\" } }",
    ),
    (
        "paced",
        "protocol = \"udp\"\nworkload = { kind = \"paced\", rate = \"8 Mbit/s\", payload = \"1000 bytes\" }",
    ),
    (
        "poisson",
        "protocol = \"udp\"\nworkload = { kind = \"poisson\", rate = \"8 Mbit/s\", sizes = { kind = \"fixed\", size = \"1000 bytes\" } }",
    ),
    (
        "on-off",
        "protocol = \"udp\"\nworkload = { kind = \"on-off\", rate = \"8 Mbit/s\", payload = \"1000 bytes\", on = { kind = \"fixed\", time = \"50 ms\" }, off = { kind = \"fixed\", time = \"10 ms\" } }",
    ),
    (
        "replay",
        "protocol = \"udp\"\nworkload = { kind = \"replay\", file = \"recording.pcap\" }",
    ),
];

/// A pcap file with raw IP: a packet of 1028 bytes every millisecond, truncated after its headers.
fn recording() -> Vec<u8> {
    let words = |of: &[u32]| -> Vec<u8> { of.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let mut octets = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101]);
    for n in 0..400 {
        octets.extend(words(&[1, n * 1000, 28, 1028]));
        octets.extend([
            0x45, 0, 4, 4, 0, 0, 0, 0, 64, IS_UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        octets.extend([0, 1, 0, 2, 3, 240, 0, 0]);
    }
    octets
}

/// The outcome of a run of one flow.
fn run(workload: &str, around: Around) -> Result<(), String> {
    // In the guest the checkout is read-only.
    let folder = env::temp_dir();
    fs::write(folder.join("recording.pcap"), recording()).expect("a temporary file");
    let file = folder.join("contents.toml");
    let text = format!(
        "duration = \"700 ms\"\nwarmup = \"0 s\"\n[link.path]\nbetween = [\"A\", \"B\"]\nrate = \"50 Mbit/s\"\ndelay = \"2 ms\"\n\
         impair = [{{ kind = \"duplicate\", rate = 0.05 }}, {{ kind = \"bernoulli-loss\", rate = 0.02 }}]\n\
         [flow.main]\nfrom = \"A\"\nto = \"B\"\n{workload}\n"
    );
    let extensions =
        Extensions::default().files(|path, _| fs::read(path).map_err(|error| error.to_string()));
    let resolved = resolve(&text, &file, extensions);
    let done = exact(live(&resolved).around_kernel_ends(around).run());
    done.map(drop).map_err(|error| error.to_string())
}

/// A change to the content of the packets that the engine gives to a kernel.
#[derive(Debug)]
struct Altered(fn(&mut [u8]));

impl Fault for Altered {
    fn on_packet(&mut self, right: &mut dyn Host<Frame>, now: Instant, packet: Arrived<'_, Frame>) {
        let mut octets = write(packet.transport, packet.ecn).into_owned();
        // Content begins after the number of a datagram, which is not part of the pattern.
        let (content, checksum) = if octets[9] == IS_UDP {
            (IP + UDP + 8, IP + 6)
        } else {
            (IP + TCP, IP + 16)
        };
        if octets.len() >= content + 500 {
            let sum = |octets: &[u8]| !Checksum::of(&octets[content..]).finish();
            let before = sum(&octets);
            (self.0)(&mut octets[content..]);
            let had = u16::from_be_bytes([octets[checksum], octets[checksum + 1]]);
            let is = updated(had, before, sum(&octets));
            octets[checksum..checksum + 2].copy_from_slice(&is.to_be_bytes());
        }
        let changed = departing(&octets).expect("still a packet");
        let packet = Arrived {
            transport: &changed.transport,
            ..packet
        };
        right.on_packet(now, packet);
    }
}

fn all(does: Around, is_right: bool) {
    for (name, workload) in WORKLOADS {
        let done = run(workload, does);
        let is_found = done
            .as_ref()
            .is_err_and(|told| told.contains("differs from the written data"));
        if is_right {
            assert_eq!(done, Ok(()), "{name}");
        } else {
            assert!(is_found, "{name}: {done:?}");
        }
    }
}

/// Duplicate and lost packets are not wrong content.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn correct_content_is_accepted() {
    all(
        |right| {
            Box::new(Wrong {
                right,
                fault: Altered(|_| {}),
            })
        },
        true,
    );
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn an_altered_octet_is_detected() {
    all(
        |right| {
            Box::new(Wrong {
                right,
                fault: Altered(|content| content[301] ^= 0x10),
            })
        },
        false,
    );
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn swapped_octets_are_detected() {
    all(
        |right| {
            Box::new(Wrong {
                right,
                fault: Altered(|content| content.swap(100, 200)),
            })
        },
        false,
    );
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_duplicated_octet_is_detected() {
    all(
        |right| {
            Box::new(Wrong {
                right,
                fault: Altered(|content| {
                    let len = content.len();
                    content.copy_within(250..len - 1, 251);
                }),
            })
        },
        false,
    );
}
