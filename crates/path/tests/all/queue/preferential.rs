//! Preferential RED: drop rates of heavy and other flows.

use crate::queue::support;

use serde_json::{Value, json};
use support::scripted::{Arrival, Fate, Scripted, binomial, chi_square, config};

const N: u32 = 40_000;

/// A line from 100 to 300 packets with 0.2 at the top; `select` as it is read without `kind`.
fn queue(mut select: Value, mut more: Value) -> Scripted {
    let mut params = json!({
        "min_threshold": "100 packets",
        "max_threshold": "300 packets",
        "max_probability": 0.2,
        "spacing": "geometric",
    });
    let table = params.as_object_mut().expect("it is one");
    table.insert("select".to_owned(), select.take());
    table.append(more.as_object_mut().expect("a table"));
    Scripted::new(&config("preferential-red", params))
}

fn named(flows: &[&str]) -> Value {
    json!({ "static": { "flows": flows } })
}

/// Drops of the four flows, which take turns.
fn drops_in_turn(queue: &mut Scripted, length: u32) -> [u32; 4] {
    let mut dropped = [0; 4];
    for _ in 0..N {
        for (flow, dropped) in (0..).zip(&mut dropped) {
            *dropped +=
                u32::from(queue.offer(Arrival::at_length(length).of(flow)) == Fate::Dropped);
        }
    }
    dropped
}

/// Checks each flow's drops against its probability.
fn check(dropped: [u32; 4], p: [f64; 4]) -> Result<(), String> {
    dropped
        .into_iter()
        .zip(p)
        .try_for_each(|(dropped, p)| binomial(dropped, N, p))
}

/// §4.1: the probability of the named flows is multiplied, up to 1. `cubic` names both copies.
#[test]
fn named_flows_drop_by_the_multiplier() {
    let four = json!({ "multiplier": 4 });
    for (length, heavy, other) in [(120, 0.08, 0.02), (200, 0.4, 0.1), (280, 0.72, 0.18)] {
        let p = [heavy, heavy, other, other];
        let dropped = drops_in_turn(&mut queue(named(&["cubic"]), four.clone()), length);
        assert_eq!(check(dropped, p), Ok(()), "at {length}");
        // A queue that ignores the multiplier is detected, and so is a queue that prefers all
        // flows.
        let forgets = json!({ "multiplier": 1 });
        let dropped = drops_in_turn(&mut queue(named(&["cubic"]), forgets), length);
        assert!(check(dropped, p).is_err(), "at {length}");
        let all = named(&["cubic", "compound", "video"]);
        let dropped = drops_in_turn(&mut queue(all, four.clone()), length);
        assert!(check(dropped, p).is_err(), "at {length}");
    }
    let certain = drops_in_turn(
        &mut queue(named(&["cubic"]), json!({ "multiplier": 10 })),
        250,
    );
    assert_eq!(certain[0], N, "0.15 × 10 is 1");
    assert_eq!(binomial(certain[3], N, 0.15), Ok(()));
    let halved = drops_in_turn(
        &mut queue(named(&["video"]), json!({ "multiplier": 0.5 })),
        200,
    );
    assert_eq!(check(halved, [0.1, 0.1, 0.1, 0.05]), Ok(()));
}

#[test]
fn one_copy_may_be_named() {
    let dropped = drops_in_turn(
        &mut queue(named(&["cubic/1", "compound"]), json!({ "multiplier": 4 })),
        200,
    );
    assert_eq!(check(dropped, [0.1, 0.4, 0.4, 0.1]), Ok(()));
}

#[test]
fn outside_the_thresholds_all_are_alike() {
    for select in [named(&["cubic"]), json!({ "history": {} })] {
        let mut queue = queue(select, json!({ "multiplier": 1000 }));
        assert_eq!(drops_in_turn(&mut queue, 100), [0; 4]);
        assert_eq!(drops_in_turn(&mut queue, 300), [N; 4]);
    }
}

/// Distribution of the gaps of a single flow, from its hazard: the probability at the n-th packet.
fn gaps(hazard: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut rest = 1.0;
    let mut shares = Vec::new();
    let mut passed = 0.0;
    while rest > 1e-3 {
        let share: f64 = rest * hazard(passed).min(1.0);
        shares.push(share);
        rest -= share;
        passed += 1.0;
    }
    if let Some(last) = shares.last_mut() {
        *last += rest;
    }
    shares
}

/// The multiplier applies to the plain probability, before spacing, or to the spaced one.
#[test]
fn the_multiplication_precedes_or_follows_the_spacing() {
    // p = 0.02, times ten.
    let plain = gaps(|passed| 0.2 / (1.0 - passed * 0.2).max(0.2));
    let spaced = gaps(|passed| 0.2 / (1.0 - passed * 0.02));
    assert_eq!(plain.len(), 5, "uniform in 1..1/(10 p)");
    for (multiply, right, wrong) in [("plain", &plain, &spaced), ("spaced", &spaced, &plain)] {
        let more = json!({ "multiplier": 10, "multiply": multiply, "spacing": "uniform" });
        let mut queue = queue(named(&["cubic"]), more);
        let longest = u32::try_from(right.len()).expect("short");
        let gaps: Vec<u32> = queue
            .gaps(20_000, Arrival::at_length(120))
            .into_iter()
            .map(|gap| gap.min(longest))
            .collect();
        assert_eq!(chi_square(&gaps, right), Ok(()), "{multiply}");
        assert!(chi_square(&gaps, wrong).is_err(), "{multiply}");
    }
}

/// Two flows take turns, with p = 0.02 and ten times that. If the n-th packet of a gap is dropped
/// when n p exceeds the gap's random number, a light packet can be dropped only as the first of a
/// gap, with 0.02, after a drop of the heavy flow; the gap after that begins with a heavy packet.
/// So 0.02 of 1.02 drops belong to the light flow; random numbers per packet make it one in eleven.
#[test]
fn one_random_number_per_gap_spares_light_flows() {
    let lights = |spacing: &str| {
        let more = json!({ "multiplier": 10, "spacing": spacing });
        let mut queue = queue(named(&["cubic/0"]), more);
        let mut dropped = [0, 0];
        for _ in 0..N {
            for (flow, dropped) in [0, 3].into_iter().zip(&mut dropped) {
                let fate = queue.offer(Arrival::at_length(120).of(flow));
                *dropped += u32::from(fate == Fate::Dropped);
            }
        }
        (dropped[1], dropped[0] + dropped[1])
    };
    let (light, all) = lights("drawn");
    assert!(all > N / 4, "{all}");
    assert_eq!(binomial(light, all, 0.02 / 1.02), Ok(()));
    let (light, all) = lights("uniform");
    assert!(binomial(light, all, 0.02 / 1.02).is_err());
    let (light, all) = lights("geometric");
    assert_eq!(binomial(light, all, 1.0 / 11.0), Ok(()));
}

/// Flow 1 sends three of four packets, later flow 3 does. Each detector finds the heavy flow, and
/// its packets are dropped with ten times the probability.
#[test]
fn the_heaviest_flow_is_detected_and_updated() {
    for select in [
        json!({ "history": { "record_interval": 3, "history_length": 50 } }),
        json!({ "space-saving": { "half_life": 200 } }),
    ] {
        let mut queue = queue(select.clone(), json!({ "multiplier": 10 }));
        for heavy in [1, 3] {
            let mut arrivals = [0; 4];
            let mut dropped = [0; 4];
            for k in 0..N {
                let flow = if k % 4 == 0 { (k / 4) % 4 } else { heavy };
                let fate = queue.offer(Arrival::at_length(120).of(flow));
                // 1,000 packets are enough for the detectors.
                if k >= 1_000 {
                    arrivals[flow as usize] += 1;
                    dropped[flow as usize] += u32::from(fate == Fate::Dropped);
                }
            }
            for flow in 0..4_usize {
                let p = if flow == heavy as usize { 0.2 } else { 0.02 };
                let fits = binomial(dropped[flow], arrivals[flow], p);
                assert_eq!(fits, Ok(()), "{select}: flow {flow} beside {heavy}");
            }
        }
    }
}

/// Before the first statistics no flow is heavy.
#[test]
fn before_the_first_statistics_it_is_red() {
    let select = json!({ "history": { "statistics_interval": 1_000_000 } });
    let mut queue = queue(select, json!({ "multiplier": 10 }));
    let dropped = queue.drops(N, Arrival::at_length(120));
    assert_eq!(binomial(dropped, N, 0.02), Ok(()));
}

/// With multiplier 1 the result equals RED's, packet by packet.
#[test]
fn without_a_preference_it_is_red() {
    let params = json!({
        "min_threshold": "100 packets",
        "max_threshold": "300 packets",
        "max_probability": 0.2,
        "gentle": true,
        "weight": 0.1,
    });
    let mut one = params.clone();
    one["multiplier"] = json!(1);
    let mut plain = Scripted::new(&config("red", params));
    let mut preferential = Scripted::new(&config("preferential-red", one));
    for k in 0..20_000_u32 {
        let arrival = Arrival::at_length((k / 7) % 500).of(k % 3);
        assert_eq!(plain.offer(arrival), preferential.offer(arrival), "{k}");
    }
}
