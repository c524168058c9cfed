//! The data of charts agrees with the report of the same capture.

use std::io::Cursor;

use std::collections::{BTreeMap, BTreeSet};

use anabranch_diagnose::{
    Bounds, Watch,
    limit::Limit,
    trace,
    trace::{Span, Trace},
};

use crate::make::{MSS, Script, pcap};

fn traced(script: &Script, frames: &[u64], points: usize) -> Vec<Trace> {
    let file = pcap(&script.packets, 96);
    let watch = Watch {
        connections: vec![1],
        frames: frames.iter().copied().collect::<BTreeSet<_>>(),
        points,
    };
    trace(Cursor::new(&file), Bounds::default(), &watch, || false).expect("a capture")
}

/// Ten segments, the first of them lost and retransmitted after a pause.
fn lossy() -> Script {
    let mut script = Script::opened();
    for number in 0..10 {
        script.data(30, number * MSS, MSS);
    }
    for number in 2..=10 {
        script.ack(52, 0, &[(MSS, number * MSS)]);
    }
    script.data(300, 0, MSS).ack(320, 10 * MSS, &[]);
    script
}

fn sums(spans: &[Span]) -> BTreeMap<Limit, i64> {
    let mut sums = BTreeMap::new();
    for (start, end, limit) in spans {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "microseconds of a short capture"
        )]
        let micros = ((end - start) * 1e6).round() as i64;
        *sums.entry(*limit).or_default() += micros;
    }
    sums
}

#[test]
fn limits_over_time_sum_up_to_the_reports() {
    let script = lossy();
    let traces = traced(&script, &[], 1_000);
    let connection = script.connection();
    let report = &connection.directions.a_to_b.limits_s;
    for (limit, micros) in sums(&traces[0].a_to_b.limits) {
        #[expect(
            clippy::cast_precision_loss,
            reason = "microseconds of a short capture"
        )]
        let seconds = micros as f64 / 1e6;
        assert!((report[&limit] - seconds).abs() < 1e-4, "{limit:?}");
    }
}

#[test]
fn sequences_and_blocks_are_relative_to_the_first_octet() {
    let traces = traced(&lossy(), &[], 1_000);
    let way = &traces[0].a_to_b;
    assert_eq!(way.sent.of, 11);
    let mss = i64::from(MSS);
    assert_eq!((way.sent.points[0].2, way.sent.points[0].3), (0, mss));
    let last = way.sacked.points.last().expect("a block");
    assert_eq!((last.1, last.2), (mss, 10 * mss));
    assert_eq!(
        way.acknowledged.points.last().map(|point| point.1),
        Some(10 * mss)
    );
}

#[test]
fn points_beyond_the_bound_are_thinned_and_counted() {
    let traces = traced(&lossy(), &[], 4);
    let sent = &traces[0].a_to_b.sent;
    assert!(sent.points.len() <= 4);
    assert_eq!(sent.of, 11);
}

#[test]
fn packets_around_a_watched_frame_are_kept() {
    let script = lossy();
    let again = script.retransmission().packet;
    let traces = traced(&script, &[again], 1_000);
    let frames: Vec<u64> = traces[0].packets.iter().map(|near| near.packet).collect();
    let expected: Vec<u64> = (again - 6..=again + 1).collect();
    assert_eq!(frames, expected);
}

#[test]
fn only_watched_connections_are_followed() {
    let file = pcap(&lossy().packets, 96);
    let watch = Watch {
        connections: vec![2],
        frames: BTreeSet::new(),
        points: 10,
    };
    let traces = trace(Cursor::new(&file), Bounds::default(), &watch, || false);
    assert!(traces.expect("a capture").is_empty());
}
