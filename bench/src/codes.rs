//! Error-correcting codes: processor time per byte of data.
//!
//! Groups of 1,448-byte packets lose as many packets as the code can repair. For comparison, the
//! table has a plain copy of the same data, which is the limit of the memory, and the checksum of
//! redundant packets.

use std::hint::black_box;

use anabranch::{
    erasure::{AnyCode, Code, Cover, reed_solomon::ReedSolomon, sliding_rlc::SlidingRlc, xor::Xor},
    wire::redundant::checksum,
};

use crate::cost::thread_cpu_s;

const SIZE: usize = 1_448;
/// Data per measurement, many times the size of a cache.
const VOLUME: usize = 256 << 20;
/// Packets in memory at a time, 64 MB.
const PACKETS: usize = 46_000;
/// Number of repetitions; the best counts.
const TIMES: u32 = 3;

/// Gigabytes of data per processor second.
fn speed(mut work: impl FnMut(&[&[u8]]) -> usize, packets: &[&[u8]]) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..TIMES {
        let start = thread_cpu_s();
        let mut done = 0;
        while done < VOLUME {
            done += work(packets);
        }
        best = best.min((thread_cpu_s() - start) / done as f64);
    }
    1.0 / best / 1e9
}

/// Prints a table.
pub fn print() {
    let memory: Vec<Vec<u8>> = (0..PACKETS)
        .map(|n| {
            let octets = (0..SIZE).map(|k| (n * 31 + k * 7).to_le_bytes()[0]);
            octets.collect()
        })
        .collect();
    let packets: Vec<&[u8]> = memory.iter().map(Vec::as_slice).collect();
    println!(
        "{:<24}{:>6}{:>6}{:>14}{:>14}",
        "code", "data", "red.", "encode GB/s", "rebuild GB/s"
    );
    let mut to = vec![0; SIZE * PACKETS];
    let copy = speed(
        |packets| {
            for (to, packet) in to.chunks_exact_mut(SIZE).zip(packets) {
                to.copy_from_slice(packet);
            }
            black_box(&to);
            SIZE * packets.len()
        },
        &packets,
    );
    println!("{:<24}{:>6}{:>6}{copy:>14.2}", "(copy)", "", "");
    let sums = speed(
        |packets| {
            for packet in packets {
                black_box(checksum(7, packet));
            }
            SIZE * packets.len()
        },
        &packets,
    );
    println!("{:<24}{:>6}{:>6}{sums:>14.2}", "(checksum)", "", "");
    let codes = [
        ("xor", AnyCode::Xor(Xor), 10, 1),
        ("xor", AnyCode::Xor(Xor), 40, 1),
        ("reed-solomon", AnyCode::ReedSolomon(ReedSolomon), 10, 1),
        ("reed-solomon", AnyCode::ReedSolomon(ReedSolomon), 40, 4),
        ("reed-solomon", AnyCode::ReedSolomon(ReedSolomon), 200, 20),
        ("sliding-rlc", AnyCode::SlidingRlc(SlidingRlc), 10, 1),
        ("sliding-rlc", AnyCode::SlidingRlc(SlidingRlc), 40, 4),
        ("sliding-rlc", AnyCode::SlidingRlc(SlidingRlc), 200, 20),
    ];
    for (name, code, data, redundant) in codes {
        let encode = speed(
            |packets| {
                for group in packets.chunks_exact(data) {
                    black_box(code.encode(group, 0, redundant));
                }
                packets.len() / data * data * SIZE
            },
            &packets,
        );
        let rebuild = speed(
            |packets| rebuild(code, packets, data, redundant),
            &packets[..data * (4_000 / data)],
        );
        println!("{name:<24}{data:>6}{redundant:>6}{encode:>14.2}{rebuild:>14.2}");
    }
}

/// Rebuilds the first packets of each group. The redundant packets are those of the first group,
/// computed once, so that only rebuilding is timed; the rebuilt packets are not checked.
fn rebuild(code: AnyCode, packets: &[&[u8]], data: usize, redundant: u16) -> usize {
    let parities = code.encode(&packets[..data], 0, redundant);
    let parities: Vec<(Cover, &[u8])> = (0..)
        .zip(&parities)
        .map(|(key, parity)| {
            let cover = Cover {
                first: 0,
                count: data,
                key,
                of: redundant,
            };
            (cover, parity.as_slice())
        })
        .collect();
    for group in packets.chunks_exact(data) {
        let left: Vec<Option<&[u8]>> = group
            .iter()
            .enumerate()
            .map(|(place, packet)| (place >= usize::from(redundant)).then_some(*packet))
            .collect();
        let rebuilt = code.decode(&left, &parities);
        assert_eq!(rebuilt.len(), usize::from(redundant), "all come back");
        black_box(rebuilt);
    }
    packets.len() / data * data * SIZE
}
