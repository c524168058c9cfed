//! Jitter: distributions of its delays, slots, and order, each compared with a wrong system that
//! the same check rejects.

use crate::impair::support;

use anabranch_core::{
    math,
    units::{Duration, Instant},
};
use anabranch_path::impair::{Config, Impairment, Verdict};
use serde_json::{Value, json};
use support::{Bench, config, delays, fits, follow, late};

const PACKETS: usize = 100_000;
const MS: Duration = Duration::from_millis(1);

/// Jitter that lets packets overtake, so that each is delayed by its drawn value.
fn jitter(params: Value) -> Config {
    let Value::Object(mut params) = params else {
        panic!("a table")
    };
    params.insert("reorder".to_owned(), true.into());
    config("jitter", params.into())
}

/// Quantile of the standard normal distribution, by bisection on its integral (Simpson's rule).
fn normal_quantile(p: f64) -> f64 {
    let density = |x: f64| math::exp(-x * x / 2.0) / std::f64::consts::TAU.sqrt();
    let below = |x: f64| {
        let steps = 200;
        let h = x / f64::from(steps);
        let sum: f64 = (0..=steps)
            .map(|k| {
                let weight = match k {
                    0 => 1.0,
                    k if k == steps => 1.0,
                    k if k % 2 == 1 => 4.0,
                    _ => 2.0,
                };
                weight * density(h * f64::from(k))
            })
            .sum();
        0.5 + sum * h / 3.0
    };
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if below(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[test]
fn delays_follow_their_distribution() {
    type Quantile<'a> = &'a dyn Fn(f64) -> f64;
    let mean = 0.05;
    let exponential = |p: f64| -mean * math::log1p(-p);
    let normal = |p: f64| mean + 0.01 * normal_quantile(p);
    let shape = 2.5;
    let least = mean * (shape - 1.0) / shape;
    let pareto = |p: f64| least * math::powf(1.0 - p, -1.0 / shape);
    let quantiles: [(&str, Value, Quantile<'_>); 3] = [
        ("exponential", json!({ "mean": "50 ms" }), &exponential),
        (
            "normal",
            json!({ "distribution": "normal", "mean": "50 ms", "deviation": "10 ms" }),
            &normal,
        ),
        (
            "pareto",
            json!({ "distribution": "pareto", "mean": "50 ms", "shape": shape }),
            &pareto,
        ),
    ];
    for (name, params, _) in &quantiles {
        let seen = delays(&jitter(params.clone()), 1, PACKETS);
        for (other, _, quantile) in &quantiles {
            assert_eq!(follow(&seen, quantile), name == other, "{name} as {other}");
        }
        // The same shape with a mean that is 3 % off.
        let off: Vec<Duration> = seen.iter().map(|delay| delay.mul_f64(1.03)).collect();
        let (_, _, quantile) = quantiles
            .iter()
            .find(|(own, _, _)| own == name)
            .expect("it is there");
        assert!(!follow(&off, quantile), "{name}, 3 % off");
    }
}

#[test]
fn table_delays_are_drawn_equally_often() {
    let table =
        jitter(json!({ "distribution": "table", "table": ["0 s", "5 ms", "5 ms", "40 ms"] }));
    let count = |config: &Config| {
        let seen = delays(config, 1, PACKETS);
        [0, 5, 40].map(|ms| seen.iter().filter(|seen| **seen == MS * ms).count())
    };
    assert_eq!(count(&table).iter().sum::<usize>(), PACKETS);
    assert!(fits(&count(&table), &[0.25, 0.5, 0.25]));
    // A table in which a value given twice counts once.
    let once = jitter(json!({ "distribution": "table", "table": ["0 s", "5 ms", "40 ms"] }));
    assert!(!fits(&count(&once), &[0.25, 0.5, 0.25]));
}

/// Counts of successions: how often a delay of each quarter of the exponential distribution follows
/// a delay of each quarter.
fn successions(delays: &[Duration], mean: f64) -> [usize; 16] {
    let edges = [0.25, 0.5, 0.75].map(|p: f64| -mean * math::log1p(-p));
    let quarter = |delay: Duration| {
        edges
            .iter()
            .filter(|edge| delay.as_secs_f64() >= **edge)
            .count()
    };
    let mut cells = [0; 16];
    for pair in delays.chunks_exact(2) {
        cells[quarter(pair[0]) * 4 + quarter(pair[1])] += 1;
    }
    cells
}

#[test]
fn delays_are_independent_by_packet_and_constant_within_a_slot() {
    let each = jitter(json!({ "mean": "5 ms" }));
    let slots = jitter(json!({ "mean": "5 ms", "every": "10 ms" }));
    let even = [1.0 / 16.0; 16];
    assert!(fits(&successions(&delays(&each, 1, PACKETS), 0.005), &even));
    // Packets arrive every millisecond: ten per slot.
    let slotted = delays(&slots, 1, PACKETS);
    assert!(!fits(&successions(&slotted, 0.005), &even));
    for slot in slotted.chunks(10) {
        assert!(slot.iter().all(|delay| *delay == slot[0]));
    }
    let of_slots: Vec<Duration> = slotted.iter().step_by(10).copied().collect();
    assert!(fits(&successions(&of_slots, 0.005), &even));
    assert!(follow(&of_slots, |p| -0.005 * math::log1p(-p)));
}

/// The draw of a slot depends only on the slot; the draw of a packet depends only on its number.
#[test]
fn draws_belong_to_slots_and_to_packets() {
    let at = |config: &Config, times_ms: &[u64]| -> Vec<Duration> {
        let mut bench = Bench::new(config, 7);
        let times = times_ms.iter().map(|ms| Instant::START + MS * *ms);
        times.map(|now| late(bench.packet(now))).collect()
    };
    let slots = jitter(json!({ "mean": "50 ms", "every": "1 s" }));
    let (dense, sparse) = (
        at(&slots, &[0, 500, 999, 1_000, 5_000]),
        at(&slots, &[5_999]),
    );
    assert_eq!((dense[0], dense[1]), (dense[2], dense[2]));
    assert_ne!(dense[2], dense[3]);
    assert_eq!(dense[4], sparse[0]);
    let each = jitter(json!({ "mean": "50 ms" }));
    assert_eq!(at(&each, &[0, 1, 2]), at(&each, &[0, 900, 2_000]));
}

#[test]
fn a_fifo_route_keeps_order_with_minimal_delay() {
    let arrivals = |params: Value, fifo: bool| -> Vec<Duration> {
        let mut params = params.as_object().expect("a table").clone();
        params.insert("reorder".to_owned(), (!fifo).into());
        let mut bench = Bench::new(&config("jitter", params.into()), 3);
        assert_eq!(bench.impairment.reorders(), !fifo);
        (0..5_000_u64)
            .map(|k| {
                let now = Instant::START + MS * k;
                let by = match bench.packet(now) {
                    Verdict::Delay { by, may_overtake } => {
                        assert_eq!(may_overtake, !fifo);
                        by
                    }
                    _ => Duration::ZERO,
                };
                now + by - Instant::START
            })
            .collect()
    };
    for params in [
        json!({ "mean": "5 ms" }),
        json!({ "mean": "5 ms", "every": "20 ms" }),
        json!({ "distribution": "pareto", "mean": "2 ms" }),
    ] {
        let free = arrivals(params.clone(), false);
        assert!(
            !free.is_sorted(),
            "a route where nothing overtakes tells nothing"
        );
        let fifo = arrivals(params.clone(), true);
        // The running maximum of the arrival times without the FIFO.
        let expected: Vec<Duration> = free
            .iter()
            .scan(Duration::ZERO, |latest, &own| {
                *latest = own.max(*latest);
                Some(*latest)
            })
            .collect();
        assert_eq!(fifo, expected, "{params}");
    }
}

/// Detects jitter that delays every packet, accepts a slightly shorter pause, or lets later packets
/// overtake the first.
#[test]
fn packets_after_a_pause_are_delayed_and_bursts_compressed() {
    let us = Duration::from_micros;
    let waking = |reorder: bool| {
        let params = json!({
            "distribution": "table", "table": ["100 us"], "after_pause": "5 ms", "reorder": reorder,
        });
        let mut bench = Bench::new(&config("jitter", params), 1);
        // The first packet, four after it, a pause that is slightly too short, and a sufficient
        // one.
        [0, 30, 60, 99, 150, 5_149, 10_149, 10_150]
            .map(|at| late(bench.packet(Instant::START + us(at))))
    };
    assert_eq!(waking(false), [100, 70, 40, 1, 0, 0, 100, 99].map(us));
    assert_eq!(waking(true), [100, 0, 0, 0, 0, 0, 100, 0].map(us));
}

/// Detects jitter that delays every packet, counts from 1, reads a list as a range, or lets later
/// packets overtake.
#[test]
fn only_the_packets_of_a_list_are_late() {
    let us = Duration::from_micros;
    let late_ones = |reorder: bool| {
        let params = json!({
            "distribution": "table", "table": ["100 us"], "packets": [4, 1], "reorder": reorder,
        });
        let mut bench = Bench::new(&config("jitter", params), 1);
        [0, 500, 530, 599, 1_000, 1_200].map(|at| late(bench.packet(Instant::START + us(at))))
    };
    assert_eq!(late_ones(false), [0, 100, 70, 1, 100, 0].map(us));
    assert_eq!(late_ones(true), [0, 100, 0, 0, 100, 0].map(us));
}

#[test]
fn zero_jitter_delays_nothing() {
    for params in [
        json!({ "mean": "0 s" }),
        json!({ "distribution": "normal", "mean": "0 s" }),
        json!({ "distribution": "pareto", "mean": "0 s", "every": "1 s" }),
        json!({ "distribution": "table", "table": ["0 s"] }),
    ] {
        let mut bench = Bench::new(&jitter(params), 1);
        assert!((0..100).all(|k| bench.packet(Instant::START + MS * k) == Verdict::Pass));
    }
}

#[test]
fn contradictory_parameters_are_rejected() {
    for (params, key) in [
        (json!({}), ""),
        (json!({ "distribution": "normal" }), ""),
        (
            json!({ "distribution": "normal", "mean": "9 ms", "deviation": "4 ms" }),
            "deviation",
        ),
        (
            json!({ "distribution": "pareto", "mean": "9 ms", "deviation": "1 ms" }),
            "deviation",
        ),
        (json!({ "mean": "9 ms", "shape": 2.0 }), "shape"),
        (json!({ "mean": "9 ms", "table": ["1 ms"] }), "table"),
        (json!({ "distribution": "table" }), "distribution"),
        (
            json!({ "distribution": "table", "table": ["1 ms"], "mean": "1 ms" }),
            "mean",
        ),
    ] {
        let wrong = config("jitter", params.clone()).check();
        let wrong = wrong.expect_err(&params.to_string());
        assert_eq!(wrong.key.concat(), key, "{params}");
    }
}
