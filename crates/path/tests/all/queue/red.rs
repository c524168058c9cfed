//! RED against the equations of its papers, on scripted arrivals.

use crate::queue::support;

use anabranch_core::units::{Duration, Instant, Rate};
use serde_json::{Value, json};
use support::scripted::{Arrival, Fate, Scripted, binomial, chi_square, config, red};

const N: u32 = 40_000;

/// A line from 100 to 300 packets with 0.2 at the top.
fn params(mut more: Value) -> Value {
    let mut params = json!({
        "min_threshold": "100 packets",
        "max_threshold": "300 packets",
        "max_probability": 0.2,
        "spacing": "geometric",
    });
    let table = params.as_object_mut().expect("it is one");
    table.append(more.as_object_mut().expect("a table"));
    params
}

fn power(base: f64, times: usize) -> f64 {
    std::iter::repeat_n(base, times).product()
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1e-9), "{a} is not {b}");
}

/// Floyd and Jacobson, equation in §4: p_b = max_p (avg - min_th) / (max_th - min_th).
#[test]
fn the_probability_rises_in_a_line_between_the_thresholds() {
    for (length, p) in [(101, 0.001), (120, 0.02), (200, 0.1), (299, 0.199)] {
        let mut queue = red(params(json!({})));
        let dropped = queue.drops(N, Arrival::at_length(length));
        assert_eq!(binomial(dropped, N, p), Ok(()), "at {length}");
    }
    // A line that starts at 0 instead of the threshold is detected.
    let mut wrong = red(params(json!({ "min_threshold": "0 packets" })));
    let dropped = wrong.drops(N, Arrival::at_length(120));
    assert!(binomial(dropped, N, 0.02).is_err());
}

#[test]
fn below_the_minimum_nothing_is_dropped_and_from_the_maximum_on_everything() {
    let mut queue = red(params(json!({})));
    assert_eq!(queue.drops(1_000, Arrival::at_length(99)), 0);
    assert_eq!(queue.drops(1_000, Arrival::at_length(100)), 0);
    assert_eq!(queue.drops(1_000, Arrival::at_length(300)), 1_000);
    assert_eq!(queue.drops(1_000, Arrival::at_length(10_000)), 1_000);
}

/// Floyd 2000: from max_p at max_th to 1 at twice max_th.
#[test]
fn gentle_has_a_second_line() {
    for (length, p) in [
        (200, 0.1),
        (300, 0.2),
        (450, 0.6),
        (599, 0.2 + 0.8 * 299.0 / 300.0),
    ] {
        let mut queue = red(params(json!({ "gentle": true })));
        let dropped = queue.drops(N, Arrival::at_length(length));
        assert_eq!(binomial(dropped, N, p), Ok(()), "at {length}");
        let mut not_gentle = red(params(json!({})));
        let dropped = not_gentle.drops(N, Arrival::at_length(length));
        assert_eq!(binomial(dropped, N, p).is_ok(), length < 300, "at {length}");
    }
    let mut queue = red(params(json!({ "gentle": true })));
    assert_eq!(queue.drops(1_000, Arrival::at_length(600)), 1_000);
}

/// Distribution of the gaps at p = 1/20, by kind of spacing.
fn spacings() -> [(&'static str, Vec<f64>); 4] {
    let uniform = vec![0.05; 20];
    let waiting = [vec![0.0; 20], vec![0.05; 20]].concat();
    // From 10 to 30; the packets at both ends have half the probability.
    let summed = [vec![0.0; 9], vec![0.025], vec![0.05; 19], vec![0.025]].concat();
    // The tail beyond 100 is one cell.
    let mut rest = 1.0;
    let mut geometric: Vec<f64> = (0..100)
        .map(|_| {
            let share = rest * 0.05;
            rest -= share;
            share
        })
        .collect();
    geometric.push(rest);
    [
        ("uniform", uniform),
        ("waiting", waiting),
        ("geometric", geometric),
        ("summed", summed),
    ]
}

/// Floyd and Jacobson §7: method 2 makes gaps uniform in 1..1/p, method 1 geometric.
#[test]
fn gaps_have_the_distribution_of_their_spacing() {
    for (name, _) in spacings() {
        let mut queue = red(params(json!({ "spacing": name })));
        // p = 0.2 × 50 ÷ 200.
        let gaps: Vec<u32> = queue
            .gaps(20_000, Arrival::at_length(150))
            .into_iter()
            .map(|gap| gap.min(101))
            .collect();
        for (other, shares) in spacings() {
            let fits = chi_square(&gaps, &shares);
            assert_eq!(fits.is_ok(), name == other, "{name} as {other}: {fits:?}");
        }
    }
}

/// Floyd and Jacobson §11: one random number per gap gives the gaps of method 2.
#[test]
fn one_random_number_per_gap_makes_gaps_uniform() {
    let mut queue = red(params(json!({ "spacing": "drawn" })));
    let gaps = queue.gaps(20_000, Arrival::at_length(150));
    for (other, shares) in spacings() {
        let fits = chi_square(&gaps, &shares);
        assert_eq!(fits.is_ok(), other == "uniform", "as {other}: {fits:?}");
    }
}

/// A period below the threshold ends the spacing, and so does a drop at the limit.
#[test]
fn spacing_restarts_after_a_pause_or_an_overflow() {
    let longest = |interrupt: Option<Arrival>| {
        let mut queue = red(params(
            json!({ "spacing": "uniform", "limit": "400 packets" }),
        ));
        let mut longest = 0;
        let mut run = 0;
        for k in 0..100_000 {
            if queue.offer(Arrival::at_length(150)) == Fate::Dropped {
                run = 0;
            } else {
                run += 1;
                longest = longest.max(run);
            }
            if k % 7 == 6
                && let Some(interrupt) = interrupt
            {
                queue.offer(interrupt);
            }
        }
        longest
    };
    assert_eq!(longest(None), 19, "1/p is 20");
    assert!(longest(Some(Arrival::at_length(50))) > 19);
    assert!(longest(Some(Arrival::at_length(400))) > 19);
}

/// Each arrival moves the average towards the backlog by the weight.
#[test]
fn the_average_is_exponentially_weighted() {
    let lengths = (0..2_000_u32).map(|k| (k * k) % 91);
    let (mut expected, mut frozen) = (0.0, 0.0);
    let mut queue = red(params(json!({ "weight": 0.002 })));
    for length in lengths {
        queue.offer(Arrival::at_length(length));
        expected = 0.998 * expected + 0.002 * f64::from(length);
        near(queue.average(), expected);
        frozen = f64::max(frozen, queue.average());
    }
    assert!(frozen > 20.0, "the average never moved: {frozen}");
}

/// Floyd and Jacobson §6: effect of a burst into an empty queue on the average; here the n-th
/// packet finds n - 1.
#[test]
fn a_burst_moves_the_average_by_the_closed_form() {
    let (w, burst) = (0.002_f64, 50_u32);
    let mut queue = red(params(json!({ "weight": w })));
    for k in 1..burst {
        queue.offer(Arrival::at_length(k));
    }
    let expected = f64::from(burst) + (power(1.0 - w, 50) - 1.0) / w;
    near(queue.average(), expected);
}

/// §4: an idle period counts as m small packets that find an empty queue.
#[test]
fn an_idle_period_counts_as_small_packets() {
    let config = config(
        "red",
        params(json!({ "weight": 0.25, "idle_packet": "500 bytes" })),
    );
    let at = |ms: u64| Instant::from_millis(ms);
    let mut queue = Scripted::new(&config);
    for _ in 0..10 {
        queue.offer(Arrival::at_length(80));
    }
    let before = queue.average();
    queue.ran_out(at(100));
    // 500 bytes take 0.4 ms at 10 Mbit/s: 2 ms are five of them.
    queue.offer(Arrival::at_length(0).at(at(102)));
    near(queue.average(), before * power(0.75, 5));
    // Without an idle period there is no decay, and a busy period is not idle.
    let before = queue.average();
    queue.ran_out(at(110));
    queue.offer(Arrival::at_length(0).at(at(110)));
    near(queue.average(), before);
    queue.offer(Arrival::at_length(0).at(at(500)));
    near(queue.average(), before * 0.75);
    // A tenth of the rate gives a tenth of the packets.
    queue.queue_rate(Rate::from_mbit_per_s(1));
    let before = queue.average();
    queue.ran_out(at(600));
    queue.offer(Arrival::at_length(0).at(at(620)));
    near(queue.average(), before * power(0.75, 5));
}

#[test]
fn a_link_without_a_rate_resets_the_average() {
    let mut queue = Scripted::behind(&config("red", params(json!({ "weight": 0.25 }))), None);
    for _ in 0..10 {
        queue.offer(Arrival::at_length(80));
    }
    assert!(queue.average() > 50.0);
    queue.ran_out(Instant::from_nanos(1));
    queue.offer(Arrival::at_length(0).at(Instant::from_nanos(2)));
    near(queue.average(), 0.0);
}

/// A packet dropped on an idle link leaves it idle.
#[test]
fn the_idle_period_continues_after_a_dropped_packet() {
    let more = json!({ "weight": 0.25, "idle_packet": "500 bytes", "limit": "400 packets" });
    let mut queue = Scripted::new(&config("red", params(more)));
    let at = |ms: u64| Instant::from_millis(ms);
    for _ in 0..100 {
        queue.offer(Arrival::at_length(399));
    }
    let before = queue.average();
    queue.ran_out(at(100));
    assert_eq!(
        queue.offer(Arrival::at_length(0).at(at(100))),
        Fate::Dropped
    );
    near(queue.average(), before);
    queue.offer(Arrival::at_length(0).at(at(102)));
    near(queue.average(), before * power(0.75, 5));
}

/// §8: in bytes the probability is proportional to the size; RFC 7141 §2.2 advises against it.
#[test]
fn in_bytes_the_probability_scales_with_size() {
    let bytes = |mut more: Value| {
        let mut all = json!({ "min_threshold": "150 kB", "max_threshold": "450 kB" });
        let table = all.as_object_mut().expect("it is one");
        table.append(more.as_object_mut().expect("a table"));
        red(params(all))
    };
    for (size, share) in [(1500, 1.0), (750, 0.5), (60, 0.04)] {
        let arrival = Arrival::at_length(200).sized(size);
        let dropped = bytes(json!({})).drops(N, arrival);
        assert_eq!(binomial(dropped, N, 0.1 * share), Ok(()), "{size} bytes");
        let dropped = bytes(json!({ "scale_by_size": false })).drops(N, arrival);
        assert_eq!(binomial(dropped, N, 0.1), Ok(()), "{size} bytes");
        let dropped = bytes(json!({ "reference_packet": "3000 bytes" })).drops(N, arrival);
        assert_eq!(binomial(dropped, N, 0.05 * share), Ok(()), "{size} bytes");
        // In packets it does not depend on the size.
        let dropped = red(params(json!({}))).drops(N, arrival);
        assert_eq!(binomial(dropped, N, 0.1), Ok(()), "{size} bytes");
    }
    // The average counts bytes: the same number of packets of a tenth of the size is below the
    // minimum.
    let small = Arrival {
        held_bytes: 30_000,
        ..Arrival::at_length(200)
    };
    assert_eq!(bytes(json!({})).drops(N, small), 0);
}

/// RFC 3168 §5 and §7.
#[test]
fn capable_packets_are_marked_instead() {
    let mut queue = red(params(json!({ "ecn": true, "limit": "400 packets" })));
    let mut fates = |arrival: Arrival| {
        let mut counts = [0_u32; 3];
        for _ in 0..N {
            counts[queue.offer(arrival) as usize] += 1;
        }
        counts
    };
    let [_, marked, dropped] = fates(Arrival::at_length(200).capable());
    assert_eq!(dropped, 0);
    assert_eq!(binomial(marked, N, 0.1), Ok(()));
    let [_, marked, dropped] = fates(Arrival::at_length(200));
    assert_eq!(marked, 0);
    assert_eq!(binomial(dropped, N, 0.1), Ok(()));
    // Above the maximum, and without room.
    assert_eq!(fates(Arrival::at_length(300).capable()), [0, 0, N]);
    assert_eq!(fates(Arrival::at_length(400).capable()), [0, 0, N]);
    let mut soft = red(params(
        json!({ "ecn": true, "hard_drop": false, "limit": "400 packets" }),
    ));
    assert_eq!(soft.offer(Arrival::at_length(300).capable()), Fate::Marked);
    assert_eq!(soft.offer(Arrival::at_length(300)), Fate::Dropped);
    assert_eq!(soft.offer(Arrival::at_length(400).capable()), Fate::Dropped);
    let mut off = red(params(json!({})));
    assert_eq!(off.offer(Arrival::at_length(300).capable()), Fate::Dropped);
    let mut marked = 0;
    for _ in 0..1_000 {
        marked += u32::from(off.offer(Arrival::at_length(200).capable()) == Fate::Marked);
    }
    assert_eq!(marked, 0, "ECN is off");
}

/// Adaptive RED §4: up by min(0.01, max_p ÷ 4) above the target, down to 0.9 of it below, every
/// half second, within 0.01..0.5.
#[test]
fn the_maximum_probability_follows_the_average() {
    let interval = Duration::from_millis(500);
    let ratio = |length: u32, intervals: u32, start: f64| {
        let more = json!({ "adaptive": true, "max_probability": start });
        let mut queue = red(params(more));
        let mut now = Instant::START;
        for _ in 0..intervals {
            now = now + interval;
            // Twice per interval; only the first has an effect.
            queue.offer(Arrival::at_length(length).at(now));
            queue.offer(Arrival::at_length(length).at(now + Duration::from_millis(499)));
        }
        // Measured at the middle of the line, where the probability is half of max_p; the middle is
        // in the target range.
        queue.drops(
            N,
            Arrival::at_length(200).at(now + Duration::from_millis(499)),
        )
    };
    for (length, intervals, start, max_p) in [
        (221, 3, 0.02, {
            let first = 0.02 + 0.005;
            let second = first + first / 4.0;
            second + second / 4.0
        }),
        (290, 4, 0.2, 0.24),
        (179, 5, 0.2, 0.2 * 0.59049),
        (200, 9, 0.2, 0.2),
        (181, 9, 0.2, 0.2),
        (219, 9, 0.2, 0.2),
        (290, 400, 0.2, 0.5),
        (110, 400, 0.2, 0.01),
    ] {
        let dropped = ratio(length, intervals, start);
        assert_eq!(
            binomial(dropped, N, max_p / 2.0),
            Ok(()),
            "{length}, {intervals}"
        );
    }
    // A queue that does not adapt is detected.
    assert!(binomial(ratio(200, 9, 0.2), N, 0.25).is_err());
}

#[test]
fn outcomes_depend_only_on_seed_and_packet_number() {
    let fates = |name: &str| {
        let mut queue = red(params(json!({})));
        queue.stream = anabranch_core::rng::Stream::new(1, name);
        let mut drops = Vec::new();
        for k in 0..1_000 {
            drops.push(queue.offer(Arrival::at_length(200).of(k % 3)));
        }
        drops
    };
    assert!(fates("link.a.forward") == fates("link.a.forward"));
    assert!(fates("link.a.forward") != fates("link.b.forward"));
}
