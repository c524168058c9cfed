//! The work of a diagnosis is linear in the size of its capture, whatever the packets.

use std::io::Cursor;

use anabranch_diagnose::{Bounds, diagnose};
use rustix::time::{ClockId, clock_gettime};

use crate::make::{Script, pcap};

/// Packets of the shorter capture; the longer one has [`TIMES`] times as many. The bounds on stored
/// data are between the two.
const PACKETS: u32 = 4_000;
const TIMES: u32 = 8;
/// Quadratic work takes 64 times as long. Caches make linear work take up to five times its share,
/// because the bounded state is larger than they are.
const MOST: f64 = 40.0;

/// CPU time of this thread in seconds, excluding other programs.
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// A number below `most`, derived from `k`.
fn scattered(k: u32, most: u32) -> u32 {
    k.wrapping_mul(2_654_435_761) % most.max(1)
}

/// Retransmissions of any size that overlap each other anywhere.
fn overlapping(script: &mut Script, count: u32) {
    for k in 0..count {
        script.data(
            30 + u64::from(k),
            scattered(k, 1 << 22),
            1 + scattered(k + 1, 1400),
        );
    }
}

/// Segments of one octet, and retransmissions that each cover thousands of them.
fn covering(script: &mut Script, count: u32) {
    for k in 0..count / 2 {
        script.data(30, k, 1);
    }
    for k in 0..count / 2 {
        script.data(31 + u64::from(k), scattered(k, count / 4), 60_000);
    }
}

/// Every second segment, then the segments in between, the highest first.
fn holes(script: &mut Script, count: u32) {
    for k in 0..count / 2 {
        script.data(30, 20 * k, 10);
    }
    for k in (0..count / 2).rev() {
        script.data(31, 20 * k + 10, 10);
    }
}

/// All segments in reverse.
fn reversed(script: &mut Script, count: u32) {
    for k in (0..count).rev() {
        script.data(30, 10 * k, 10);
    }
}

/// SACK blocks anywhere above a missing segment.
fn selective(script: &mut Script, count: u32) {
    for k in 0..count / 4 {
        script.data(30, 10 * k, 10);
    }
    for k in 0..3 * count / 4 {
        let block = |j: u32| {
            let start = 10 + 20 * scattered(4 * k + j, count / 8);
            (start, start + 10)
        };
        script.ack(40 + u64::from(k), 0, &[block(0), block(1), block(2)]);
    }
}

/// All data is sent twice, and each D-SACK covers all of it.
fn duplicates(script: &mut Script, count: u32) {
    for k in 0..count / 4 {
        script.data(30, 10 * k, 10).data(31, 10 * k, 10);
    }
    let all = 10 * (count / 4);
    for _ in 0..count / 2 {
        script.ack(40, all, &[(0, all)]);
    }
}

/// Large retransmissions of acknowledged data.
fn acknowledged(script: &mut Script, count: u32) {
    for k in 0..count / 4 {
        script.data(30, 10 * k, 10).data(31, 10 * k, 10);
    }
    script.ack(40, 10 * (count / 4), &[]);
    for k in 0..count / 2 {
        script.data(41, scattered(k, count), 60_000);
    }
}

/// One connection per packet.
fn connections(script: &mut Script, count: u32) {
    for k in 0..count {
        script.data(30, 10 * k, 10);
        script.last().ports = (u16::try_from(1000 + k % 60_000).expect("a port"), 80);
    }
}

/// Times in random order.
fn disordered(script: &mut Script, count: u32) {
    for k in 0..count {
        script.data(30 + u64::from(scattered(k, count)), 10 * k, 10);
    }
}

/// Adds about this many packets.
type Kind = fn(&mut Script, u32);

fn took(add: Kind, count: u32) -> f64 {
    let mut script = Script::opened();
    add(&mut script, count);
    let file = pcap(&script.packets, 96);
    let measure = || {
        let start = cpu_s();
        let found = diagnose(Cursor::new(&file), "made", Bounds::default(), || false);
        assert!(found.is_ok());
        cpu_s() - start
    };
    measure().min(measure())
}

#[test]
fn the_work_doubles_with_the_capture() {
    let kinds: [(&str, Kind); 9] = [
        ("overlapping retransmissions", overlapping),
        ("retransmissions of thousands of segments", covering),
        ("holes", holes),
        ("reverse order", reversed),
        ("SACK blocks", selective),
        ("duplicate SACKs", duplicates),
        ("retransmissions of acknowledged data", acknowledged),
        ("connections", connections),
        ("disorder", disordered),
    ];
    for (name, add) in kinds {
        let (one, many) = (took(add, PACKETS), took(add, TIMES * PACKETS));
        // Below a millisecond, the clock's resolution and the start-up dominate.
        let times = many / one.max(1e-3);
        assert!(times < MOST, "{name}: {one:.4} s, then {many:.4} s");
    }
}
