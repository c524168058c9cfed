//! The policer, against RFC 2697.

use anabranch_core::{
    packet::Ecn,
    rng::Stream,
    units::{Duration, Instant, Rate},
};
use anabranch_path::{
    impair::{
        Impairment, Verdict, View,
        policer::{BucketSize, Params, Policer},
    },
    queue::bounded::Bandwidth,
};
use proptest::prelude::*;

fn params(mbit: u64, burst: u64, excess: u64) -> Params {
    Params {
        rate: Bandwidth(Some(Rate::from_mbit_per_s(mbit))),
        burst: BucketSize::new(burst),
        excess: BucketSize::new(excess),
    }
}

/// Times and sizes of the packets that pass.
fn passing(params: &Params, packets: &[(Instant, u32)]) -> Vec<(Instant, u32)> {
    let mut policer = Policer::new(params);
    let stream = Stream::new(1, "policer");
    let judged = packets.iter().zip(0_u64..).filter(|((at, size), index)| {
        let view = View {
            size: *size,
            ecn: Ecn::NotEct,
            index: *index,
            has_data: true,
        };
        policer.judge(*at, view, &mut stream.at(*index)) == Verdict::Pass
    });
    judged.map(|(packet, _)| *packet).collect()
}

fn every(gap: Duration, size: u32, count: u64) -> Vec<(Instant, u32)> {
    (0..count)
        .map(|k| (Instant::START + gap.saturating_mul(k), size))
        .collect()
}

fn bytes(of: &[(Instant, u32)]) -> u64 {
    of.iter().map(|(_, size)| u64::from(*size)).sum()
}

/// Both buckets are full at first: their bytes pass, and then the bytes of the rate.
#[test]
fn full_buckets_pass_and_then_the_rate() {
    for (burst, excess) in [(15_000, 0), (15_000, 30_000), (1_500, 0)] {
        // Ten times the rate of 8 Mbit/s for three seconds.
        let packets = every(Duration::from_micros(150), 1500, 20_000);
        let passed = bytes(&passing(&params(8, burst, excess), &packets));
        let expected = burst + excess + 3_000_000;
        assert!(passed.abs_diff(expected) <= 3_000, "{passed} of {expected}");
    }
}

#[test]
fn traffic_within_the_rate_passes() {
    let packets = every(Duration::from_micros(1_500), 1500, 5_000);
    assert_eq!(passing(&params(8, 1_500, 0), &packets).len(), 5_000);
}

/// RFC 2697 §3: the committed bucket fills first, the excess bucket from its overflow.
#[test]
fn a_pause_fills_both_buckets() {
    let burst = |pause: Duration| {
        let mut packets = every(Duration::ZERO, 1500, 100);
        let again = Instant::START + pause;
        packets.extend(vec![(again, 1500); 100]);
        let passed = passing(&params(12, 15_000, 15_000), &packets);
        passed.iter().filter(|(at, _)| *at == again).count()
    };
    // A packet's tokens arrive in a millisecond; ten packets fill each bucket.
    let ms = Duration::from_millis;
    assert_eq!(
        [ms(5), ms(10), ms(15), ms(20), ms(1000)].map(burst),
        [5, 10, 15, 20, 20]
    );
}

#[test]
fn a_packet_larger_than_both_buckets_never_passes() {
    let packets = every(Duration::from_secs(10), 1501, 10);
    assert_eq!(passing(&params(8, 1500, 1500), &packets).len(), 0);
}

#[test]
fn without_a_rate_everything_passes() {
    let packets = every(Duration::ZERO, 65_535, 1_000);
    assert_eq!(passing(&Params::default(), &packets).len(), 1_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// RFC 2697 §1: in any interval the passing bytes are at most the buckets' capacity and the
    /// rate's bytes.
    #[test]
    fn no_span_passes_more_than_buckets_and_rate(
        gaps in prop::collection::vec((0..5_000_u64, 40..1_500_u32), 1..300),
        burst in 0..20_000_u64,
        excess in 0..20_000_u64,
    ) {
        let mut at = Instant::START;
        let packets: Vec<(Instant, u32)> = gaps
            .into_iter()
            .map(|(gap, size)| {
                at = at + Duration::from_micros(gap);
                (at, size)
            })
            .collect();
        let passed = passing(&params(8, burst, excess), &packets);
        for first in 0..passed.len() {
            let mut sum = 0.0;
            for (at, size) in &passed[first..] {
                sum += f64::from(*size);
                let span = at.saturating_since(passed[first].0).as_secs_f64();
                prop_assert!(sum <= (burst + excess) as f64 + 1e6 * span + 1e-3);
            }
        }
    }
}
