//! Capacity traces: deliveries and their times, compared with a model that walks through the
//! opportunities individually.

use std::sync::Arc;

use anabranch_core::{
    rng::Stream,
    units::{Duration, Instant, Rate},
};
use anabranch_path::link::service::{Service, Trace, Traced};

fn ms(n: u64) -> Instant {
    Instant::from_millis(n)
}

fn traced(text: &str) -> Traced {
    Traced::new(Arc::new(Trace::parse(text).expect("a trace")))
}

/// Departure times of packets of the given sizes that all wait from the start on.
fn departures(text: &str, sizes: &[u64]) -> Vec<u64> {
    let mut service = traced(text);
    let mut now = Instant::START;
    sizes
        .iter()
        .map(|size| {
            now = service.finish(now, size * 8);
            now.as_picos() / ms(1).as_picos()
        })
        .collect()
}

#[test]
fn an_opportunity_is_1500_bytes() {
    assert_eq!(departures("1", &[1_500; 4]), [1, 2, 3, 4]);
    // Small packets share it, and a packet that does not fit continues in the next.
    assert_eq!(departures("1", &[500, 500, 500, 500]), [1, 1, 1, 2]);
    assert_eq!(departures("1", &[1_000, 1_000, 1_000, 1]), [1, 2, 2, 3]);
    assert_eq!(departures("1", &[4_000, 500, 1]), [3, 3, 4]);
    // Two at once.
    assert_eq!(departures("5\n5\n10", &[1_500; 3]), [5, 5, 10]);
    assert_eq!(departures("5\n5\n10", &[3_000, 1_500]), [5, 10]);
}

#[test]
fn the_trace_repeats_after_its_last_line() {
    assert_eq!(departures("2\n3\n7", &[1_500; 7]), [2, 3, 7, 9, 10, 14, 16]);
    // With an opportunity at 0, the last of a round and the first of the next coincide.
    assert_eq!(departures("0\n1\n2", &[1_500; 7]), [0, 1, 2, 2, 3, 4, 4]);
}

#[test]
fn unused_opportunities_are_lost() {
    let mut service = traced("1");
    assert_eq!(service.finish(ms(0), 500 * 8), ms(1));
    // The remainder of the first is lost, and so are the second to the fifth.
    let late = ms(5) + Duration::from_micros(500);
    assert_eq!(service.finish(late, 1_500 * 8), ms(6));
    // At the very instant of an opportunity.
    assert_eq!(service.finish(ms(9), 100 * 8), ms(9));
    assert_eq!(service.finish(ms(9), 1_400 * 8), ms(9));
    assert_eq!(service.finish(ms(9), 100 * 8), ms(10));
}

/// Reference model: each opportunity in turn gives its 1,500 bytes to packets that have arrived by
/// then.
fn one_by_one(times_ms: &[u64], packets: &[(Instant, u64)]) -> Vec<Instant> {
    let period = *times_ms.last().expect("one");
    let mut left: Vec<u64> = packets.iter().map(|(_, size)| *size).collect();
    let mut through = Vec::new();
    for round in 0.. {
        for time in times_ms {
            let now = ms(round * period + time);
            let mut budget = 1_500;
            while budget > 0 && through.len() < packets.len() && packets[through.len()].0 <= now {
                let head = through.len();
                let sent = left[head].min(budget);
                budget -= sent;
                left[head] -= sent;
                if left[head] == 0 {
                    through.push(now);
                }
            }
            if through.len() == packets.len() {
                return through;
            }
        }
    }
    unreachable!("the last packet gets through")
}

#[test]
fn random_traffic_leaves_as_in_the_reference_model() {
    for seed in 0..500 {
        let mut d = Stream::new(seed, "trace").at(0);
        let mut time = u64::from(d.bits() % 3);
        let mut times = Vec::new();
        for _ in 0..=d.bits() % 12 {
            times.push(time);
            time += u64::from(d.bits() % 5);
        }
        if times.last() == Some(&0) {
            times.push(1);
        }
        let mut at = Instant::START;
        let packets: Vec<(Instant, u64)> = (0..40)
            .map(|_| {
                // Bursts, gaps, and arrivals at the instants of opportunities.
                at = at
                    + match d.bits() % 4 {
                        0 => Duration::from_millis(u64::from(d.bits() % 8)),
                        1 => Duration::from_micros(u64::from(d.bits() % 9_000)),
                        _ => Duration::ZERO,
                    };
                (at, 1 + u64::from(d.bits() % 3_000))
            })
            .collect();
        let text: Vec<String> = times.iter().map(ToString::to_string).collect();
        let mut service = traced(&text.join("\n"));
        let mut done = Instant::START;
        let through: Vec<Instant> = packets
            .iter()
            .map(|(arrived, size)| {
                done = service.finish(done.max(*arrived), size * 8);
                done
            })
            .collect();
        assert_eq!(
            through,
            one_by_one(&times, &packets),
            "{times:?} {packets:?}"
        );
        // Capacity counts each opportunity once, however the time is cut.
        let cuts = [ms(0), ms(1), ms(2), at, at + Duration::from_millis(7)];
        let end = *cuts.iter().max().expect("some");
        let parts: f64 = [(cuts[0], ms(1)), (ms(1), ms(2)), (ms(2), end)]
            .map(|(from, to)| service.capacity(from, to.max(from)))
            .iter()
            .sum();
        assert!((parts - service.capacity(ms(0), end.max(ms(2)))).abs() < 1.0 || end < ms(2));
    }
}

#[test]
fn capacity_and_mean_rate_follow_the_lines() {
    let service = traced("2\n3\n7");
    let opportunities = |from, to| service.capacity(ms(from), ms(to)) / 12_000.0;
    for (from, to, count) in [
        (0, 1, 0),
        (0, 2, 1),
        (2, 3, 1),
        (3, 7, 1),
        (0, 7, 3),
        (0, 70, 30),
        (7, 9, 1),
    ] {
        assert!(
            (opportunities(from, to) - f64::from(count)).abs() < 1e-9,
            "{from} {to}"
        );
    }
    let mean = |text: &str| Trace::parse(text).expect("a trace").mean_rate();
    assert_eq!(mean("1"), Rate::from_mbit_per_s(12));
    assert_eq!(mean("1000"), Rate::new(12_000).expect("above zero"));
    assert_eq!(mean("2\n4"), Rate::from_mbit_per_s(6));
    // One opportunity in 49 days.
    assert_eq!(mean("4294967295"), Rate::new(1).expect("above zero"));
}

#[test]
fn bits_sent_before_an_interruption_stay_sent() {
    let mut service = traced("10");
    assert_eq!(service.finish(ms(0), 4_000 * 8), ms(30));
    // Two of three opportunities have passed.
    assert_eq!(service.interrupt(ms(0), ms(25)), 3_000 * 8);
    assert_eq!(service.finish(ms(42), 1_000 * 8), ms(50));
    assert_eq!(service.finish(ms(50), 500 * 8), ms(50));
    // Interrupted before its first opportunity.
    assert_eq!(service.finish(ms(50), 100 * 8), ms(60));
    assert_eq!(service.interrupt(ms(50), ms(55)), 0);
    assert_eq!(service.finish(ms(58), 1_500 * 8), ms(60));
}

#[test]
fn an_invalid_trace_is_reported_with_its_place() {
    for (text, place, message) in [
        ("", "", "the trace has no opportunity to send"),
        ("# nothing\n\n", "", "the trace has no opportunity to send"),
        (
            "0\n0\n",
            "0",
            "the trace takes no time: all of it is at 0 ms",
        ),
        (
            "1\n5\n3\n",
            "3",
            "the trace goes back in time: 3 ms after 5 ms",
        ),
        ("1\n2.5\n", "2.5", "\"2.5\" is no time"),
        ("1 2\n", "1 2", "\"1 2\" is no time"),
        ("-1\n", "-1", "\"-1\" is no time"),
        (
            "4294967296\n",
            "4294967296",
            "4294967296 ms is too late for a trace",
        ),
    ] {
        let wrong = Trace::parse(text).expect_err(text);
        assert_eq!(
            (&text[wrong.at.clone()], wrong.message.as_str()),
            (place, message)
        );
        assert!(!wrong.expected.is_empty());
    }
}
