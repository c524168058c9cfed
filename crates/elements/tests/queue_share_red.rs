//! Share-weighted RED: the equation of its module, and what would be wrong.

mod queue_support;

use anabranch_core::units::{Duration, Instant};
use queue_support::scripted::{Arrival, Fate, Scripted, binomial, config};
use serde_json::{Value, json};

/// From 100 to 300 packets, and a fifth at the top: a tenth at 200.
fn queue(mut more: Value) -> Scripted {
    let mut params = json!({
        "min_threshold": "100 packets",
        "max_threshold": "300 packets",
        "max_probability": 0.2,
        "spacing": "geometric",
        "history_length": 400,
        "record_interval": 1,
        "statistics_interval": 10,
    });
    let table = params.as_object_mut().expect("it is one");
    table.append(more.as_object_mut().expect("a table"));
    Scripted::new(&config("share-red", params))
}

/// Drops of each of three connections, the first of which sends twice as much as each other; `pause` between packets.
/// The first turns are not counted.
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

/// A full link: parts of 1/2 and 1/4 of it among three are 1.5 and 0.75 of an equal one.
#[test]
fn the_probability_goes_with_a_power_of_the_part() {
    const TURNS: u32 = 20_000;
    // 1,500 bytes at 10 Mbit/s.
    let full = Duration::from_micros(1_200);
    for exponent in [0.5, 1.0, 2.0, 3.0, 4.0, 5.0] {
        let expected = [1.5_f64, 0.75].map(|part| {
            let weight = anabranch_core::math::powf(part, exponent);
            (0.1 * weight).min(1.0)
        });
        let mut asked = queue(json!({ "exponent": exponent }));
        assert_eq!(
            check(drops(&mut asked, TURNS, full), TURNS, expected),
            Ok(()),
            "{exponent}"
        );
        // Plain RED is found out.
        let mut plain = queue(json!({ "exponent": 0 }));
        let dropped = drops(&mut plain, TURNS, full);
        assert!(check(dropped, TURNS, expected).is_err(), "{exponent}");
        assert_eq!(check(dropped, TURNS, [0.1, 0.1]), Ok(()));
    }
}

#[test]
fn a_link_with_room_drops_less() {
    const TURNS: u32 = 20_000;
    for (pause_us, load) in [(1_200_u64, 1.0_f64), (1_500, 0.8), (2_400, 0.5), (600, 1.0)] {
        let pause = Duration::from_micros(pause_us);
        for load_exponent in [1.0, 2.0] {
            let weight = anabranch_core::math::powf(load, load_exponent);
            let mut queue = queue(json!({ "exponent": 1, "load_exponent": load_exponent }));
            let expected = [0.15 * weight, 0.075 * weight];
            assert_eq!(
                check(drops(&mut queue, TURNS, pause), TURNS, expected),
                Ok(()),
                "{load}"
            );
        }
    }
}

/// Who has just begun has few records, and many who come once do not make one look heavy.
#[test]
fn the_young_are_spared_and_do_not_count() {
    let mut fresh = queue(json!({}));
    let begun = fresh.drops(100, Arrival::at_length(200));
    assert!(begun <= 1, "{begun} of the first hundred");

    let mut crowded = queue(json!({}));
    let (mut dropped, turns) = (0, 20_000);
    let pause = Duration::from_micros(1_200);
    let mut now = Instant::START;
    for turn in 0..turns + 1_000 {
        now = now + pause + pause;
        // Half of all packets are the long one's, the rest from someone else each time.
        crowded.offer(Arrival::at_length(200).of(1_000 + turn).at(now - pause));
        let fate = crowded.offer(Arrival::at_length(200).at(now));
        dropped += u32::from(fate == Fate::Dropped && turn >= 1_000);
    }
    // Alone it takes part, with half: (1/2)^4 of a tenth.
    assert_eq!(binomial(dropped, turns, 0.1 / 16.0), Ok(()));
}
