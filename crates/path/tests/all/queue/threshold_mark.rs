//! Threshold marking on scripted arrivals.

use crate::queue::support;

use anabranch_core::units::{Bytes, Duration, Rate, text::Limit};
use anabranch_path::queue::{Config, QueueParams, threshold_mark::Params};
use support::{Bench, Fate, Op, arrive, arrive_capable};

/// 1,500 bytes take 1.2 ms.
const RATE: Rate = Rate::from_mbit_per_s(10);

fn run(params: Params, script: &[Op]) -> Vec<Fate> {
    Bench::of(&Config::ThresholdMark(params), Some(RATE))
        .run(script)
        .expect("the laws hold")
}

/// One packet is being sent, and `count - 1` find 0, 1, 2, … packets waiting.
fn burst(count: usize, packet: fn(Duration, u32, u32) -> Op) -> Vec<Op> {
    (0..count)
        .map(|_| packet(Duration::ZERO, 1_500, 0))
        .collect()
}

fn marked(fates: &[Fate]) -> Vec<usize> {
    (0..fates.len()).filter(|&k| fates[k].marked).collect()
}

#[test]
fn marks_packets_that_find_more_than_the_threshold_waiting() {
    let params = Params {
        threshold: Limit::Packets(3),
        ..Params::default()
    };
    // Packet k finds k - 1 waiting.
    let fates = run(params, &burst(8, arrive_capable));
    assert_eq!(marked(&fates), [5, 6, 7]);
}

#[test]
fn a_threshold_in_bytes_counts_bytes() {
    let params = Params {
        threshold: Limit::Bytes(Bytes::new(3_000)),
        ..Params::default()
    };
    let fates = run(params, &burst(6, arrive_capable));
    assert_eq!(marked(&fates), [4, 5]);
}

/// Detects marking by an average: the queue was long before the last packets arrive, and is short
/// again.
#[test]
fn marking_follows_the_queue_at_this_moment() {
    let params = Params {
        threshold: Limit::Packets(2),
        ..Params::default()
    };
    let mut script = burst(20, arrive_capable);
    script.push(arrive_capable(Duration::from_millis(22), 1_500, 0));
    script.push(arrive_capable(Duration::from_secs(1), 1_500, 0));
    let fates = run(params, &script);
    assert_eq!(marked(&fates), (4..20).collect::<Vec<_>>());
}

#[test]
fn packets_that_are_not_ecn_capable_are_dropped_only_at_the_limit() {
    let params = Params {
        threshold: Limit::Packets(2),
        limit: Limit::Packets(6),
    };
    let fates = run(params, &burst(10, arrive));
    assert!(marked(&fates).is_empty());
    let dropped: Vec<usize> = (0..10).filter(|&k| fates[k].dropped.is_some()).collect();
    assert_eq!(dropped, [7, 8, 9]);
}

#[test]
fn a_threshold_that_never_marks_is_a_contradiction() {
    let of = |threshold, limit| Params { limit, threshold }.check().is_err();
    assert!(of(Limit::Unlimited, Limit::Unlimited));
    assert!(of(Limit::Packets(20), Limit::Packets(20)));
    assert!(of(Limit::Packets(19), Limit::Packets(20)));
    assert!(!of(Limit::Packets(18), Limit::Packets(20)));
    assert!(of(Limit::Packets(u64::MAX), Limit::Packets(u64::MAX)));
    assert!(of(
        Limit::Bytes(Bytes::new(30)),
        Limit::Bytes(Bytes::new(30))
    ));
    assert!(!of(Limit::Packets(0), Limit::Unlimited));
}

/// The tightest threshold that the check admits marks packets.
#[test]
fn the_tightest_threshold_marks() {
    let params = Params {
        threshold: Limit::Packets(18),
        limit: Limit::Packets(20),
    };
    assert_eq!(marked(&run(params, &burst(25, arrive_capable))), [20]);
}

#[test]
fn a_threshold_may_be_a_multiple_of_the_bandwidth_delay_product() {
    let mut params = Params {
        threshold: Limit::Bdp(0.5),
        ..Params::default()
    };
    assert_eq!(params.in_bdp(), Some(&["threshold"][..]));
    params.set_bdp(Bytes::new(1_000));
    assert_eq!(params.threshold, Limit::Bytes(Bytes::new(500)));
}
