//! Share-weighted RED: the equation of its module, and wrong variants.

use crate::queue::support;

use anabranch_core::units::{Duration, Instant};
use serde_json::{Value, json};
use support::scripted::{Arrival, Fate, Scripted, binomial, config};

/// A line from 100 to 300 packets with 0.2 at the top: 0.1 at 200.
fn queue(mut more: Value) -> Scripted {
    let mut params = json!({
        "min_threshold": "100 packets",
        "max_threshold": "300 packets",
        "max_probability": 0.2,
        "spacing": "geometric",
        "history_length": 400,
        "record_interval": 1,
        "statistics_interval": 10,
        "load_memory": 400,
    });
    let table = params.as_object_mut().expect("it is one");
    table.append(more.as_object_mut().expect("a table"));
    Scripted::new(&config("share-red", params))
}

/// Drops of three connections, of which the first sends twice as much as each other, with `pause`
/// between packets. The first turns are not counted.
fn drops(queue: &mut Scripted, turns: u32, pause: Duration) -> [u32; 3] {
    let mut dropped = [0; 3];
    let mut now = Instant::START;
    for turn in 0..turns + 2_000 {
        for flow in [0, 1, 0, 2] {
            now = now + pause;
            let fate = queue.offer(Arrival::at_length(200).of(flow).at(now));
            let counts = fate == Fate::Dropped && turn >= 2_000;
            dropped[flow as usize] += u32::from(counts);
        }
    }
    dropped
}

fn check(dropped: [u32; 3], turns: u32, [heavy, light]: [f64; 2]) -> Result<(), String> {
    binomial(dropped[0], 2 * turns, heavy)?;
    binomial(dropped[1], turns, light)?;
    binomial(dropped[2], turns, light)
}

/// One exponent for connections above and below their share, at any queue length.
fn one_exponent(exponent: f64) -> Value {
    json!({ "exponent": exponent, "steep_exponent": exponent, "sparing_exponent": exponent })
}

const TURNS: u32 = 20_000;
/// 1,500 bytes at 10 Mbit/s.
const FULL: Duration = Duration::from_micros(1_200);

/// A full link: parts of 1/2 and 1/4 among three connections are 1.5 and 0.75 times an equal share.
#[test]
fn the_probability_follows_a_power_of_the_part() {
    for exponent in [0.5, 1.0, 2.0, 3.0, 4.0, 5.0] {
        let expected = [1.5_f64, 0.75].map(|part| {
            let weight = anabranch_core::math::powf(part, exponent);
            (0.1 * weight).min(1.0)
        });
        let mut asked = queue(one_exponent(exponent));
        assert_eq!(
            check(drops(&mut asked, TURNS, FULL), TURNS, expected),
            Ok(()),
            "{exponent}"
        );
        // Plain RED is detected.
        let mut plain = queue(one_exponent(0.0));
        let dropped = drops(&mut plain, TURNS, FULL);
        assert!(check(dropped, TURNS, expected).is_err(), "{exponent}");
        assert_eq!(check(dropped, TURNS, [0.1, 0.1]), Ok(()));
    }
}

/// RED's own probability is 0.1 here; the exponent is between the plain and the steep one, or
/// steep.
#[test]
fn the_exponent_rises_with_reds_own_probability() {
    let expected = |rises: f64, spares: f64| {
        let power = anabranch_core::math::powf;
        [
            (0.1 * power(1.5, rises)).min(1.0),
            0.1 * power(0.75, spares),
        ]
    };
    for (steep_at, rises) in [(0.4, 1.75), (0.2, 2.5), (0.1, 4.0), (0.05, 4.0)] {
        let exponents = json!({ "exponent": 1, "steep_exponent": 4, "sparing_exponent": 6, "steep_at": steep_at });
        let dropped = drops(&mut queue(exponents), TURNS, FULL);
        assert_eq!(
            check(dropped, TURNS, expected(rises, 6.0)),
            Ok(()),
            "{steep_at}"
        );
        // Wrong variants: never steep, always steep, no sparing.
        for wrong in [[1.0, 6.0], [5.0, 6.0], [rises, rises]] {
            let expected = expected(wrong[0], wrong[1]);
            assert!(
                check(dropped, TURNS, expected).is_err(),
                "{steep_at}: {wrong:?}"
            );
        }
    }
}

/// By default each packet's own probability counts; a common spacing doubles it.
#[test]
fn probabilities_of_different_packets_add_up() {
    let expected = [0.15, 0.075];
    for (spacing, right) in [("summed", true), ("uniform", false)] {
        let mut exponents = one_exponent(1.0);
        exponents["spacing"] = json!(spacing);
        let dropped = drops(&mut queue(exponents), TURNS, FULL);
        assert_eq!(check(dropped, TURNS, expected).is_ok(), right, "{spacing}");
    }
    let default = anabranch_path::queue::share_red::Params::default().spacing;
    assert_eq!(default, anabranch_path::queue::red::Spacing::Summed);
}

#[test]
fn a_link_with_room_drops_less() {
    for (pause_us, load) in [(1_200_u64, 1.0_f64), (1_500, 0.8), (2_400, 0.5), (600, 1.0)] {
        let pause = Duration::from_micros(pause_us);
        for load_exponent in [1.0, 2.0] {
            let weight = anabranch_core::math::powf(load, load_exponent);
            let mut params = one_exponent(1.0);
            params["load_exponent"] = json!(load_exponent);
            let expected = [0.15 * weight, 0.075 * weight];
            assert_eq!(
                check(drops(&mut queue(params), TURNS, pause), TURNS, expected),
                Ok(()),
                "{load}"
            );
        }
    }
}

/// A new connection has few records, and many single packets do not make a connection look heavy.
#[test]
fn new_connections_are_spared_and_do_not_count() {
    let young = |sparing: u32| {
        let params =
            json!({ "history_length": 4000, "load_exponent": 0, "sparing_exponent": sparing });
        queue(params).drops(300, Arrival::at_length(200))
    };
    // 300 of the 400 records of a share exist: at most 3/4.
    assert!(young(16) <= 1, "{} of the first 300", young(16));
    // Without sparing that is 30 ± 5.
    assert!(young(0) >= 5, "{} of the first 300", young(0));

    let mut crowded = queue(json!({ "sparing_exponent": 4 }));
    let (mut dropped, turns) = (0, 20_000);
    let mut now = Instant::START;
    for turn in 0..turns + 1_000 {
        now = now + FULL + FULL;
        // Half of all packets belong to the long connection, the rest to a new connection each
        // time.
        crowded.offer(Arrival::at_length(200).of(1_000 + turn).at(now - FULL));
        let fate = crowded.offer(Arrival::at_length(200).at(now));
        dropped += u32::from(fate == Fate::Dropped && turn >= 1_000);
    }
    // It is the only active connection, with half of the arrivals: (1/2)^4 of 0.1.
    assert_eq!(binomial(dropped, turns, 0.1 / 16.0), Ok(()));
}
