//! Detection of heavy flows, compared with hand calculation and with a slower, simpler detector.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_core::{math, packet::ConnectionId};
use anabranch_path::heavy::{Config, Detector, HeavyFlows, registry};
use proptest::prelude::*;
use serde_json::{Value, json};

fn detector(name: &str, params: &Value) -> Detector {
    let config: Config = serde_json::from_value(json!({ name: params })).expect("they can be read");
    config.build()
}

fn heaviest(detector: &Detector) -> Option<u32> {
    detector.heaviest().map(|connection| connection.0)
}

fn hear(detector: &mut Detector, connections: &[u32]) {
    for &connection in connections {
        detector.on_packet(ConnectionId(connection), 1500);
    }
}

#[test]
fn every_detector_describes_itself() {
    let mut names = BTreeSet::new();
    for (meta, config, schema) in registry() {
        assert!(names.insert(meta.name), "{} is there twice", meta.name);
        assert_eq!(config.name(), meta.name);
        assert!(!meta.sources.is_empty() && meta.summary.ends_with('.'));
        let text = serde_json::to_value(&config).expect("parameters can be written");
        assert_eq!(serde_json::from_value::<Config>(text).ok(), Some(config));
        let properties = schema.get("properties").and_then(Value::as_object);
        for (parameter, property) in properties.expect("it has parameters") {
            let text = property["description"].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{}: {parameter}", meta.name);
            assert!(
                property.get("default").is_some(),
                "{}: {parameter}",
                meta.name
            );
        }
    }
    assert_eq!(names, BTreeSet::from(["history", "space-saving"]));
}

/// Every second packet is recorded, four records are kept, and the statistics are taken at each
/// sixth packet.
#[test]
fn a_history_by_hand() {
    let params = json!({ "record_interval": 2, "statistics_interval": 6, "history_length": 4 });
    let mut history = detector("history", &params);
    hear(&mut history, &[9, 1, 9, 2, 9]);
    assert_eq!(heaviest(&history), None);
    // Records 1, 2, 1: packets that were not recorded do not count.
    hear(&mut history, &[1]);
    assert_eq!(heaviest(&history), Some(1));
    assert_eq!(history.active(), 2);
    assert!((history.share(ConnectionId(1)) - 2.0 / 3.0).abs() < 1e-12);
    assert!(history.share(ConnectionId(9)) < 1e-12);
    // The last four of the records 1, 2, 1, 2, 2, 3 are left.
    hear(&mut history, &[9, 2, 9, 2, 9]);
    assert_eq!(heaviest(&history), Some(1), "until the next statistics");
    hear(&mut history, &[3]);
    assert_eq!(heaviest(&history), Some(2));
    // 3, 4, 2 and 5 occur once each: the most recently recorded wins.
    hear(&mut history, &[9, 4, 9, 2, 9, 5]);
    assert_eq!(heaviest(&history), Some(5));
}

/// The history as the study describes it, with a list and a table.
#[derive(Default)]
struct Plain {
    packets: u32,
    records: Vec<u32>,
    heaviest: Option<u32>,
}

impl Plain {
    fn hear(&mut self, connection: u32, [record, statistics, length]: [u32; 3]) {
        self.packets += 1;
        if self.packets.is_multiple_of(record) {
            self.records.push(connection);
        }
        if self.packets.is_multiple_of(statistics) {
            let newest = self.records.iter().rev().take(length as usize);
            let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
            for &connection in newest.clone() {
                *counts.entry(connection).or_default() += 1;
            }
            let most = counts.values().max().copied();
            self.heaviest = newest.copied().find(|c| Some(counts[c]) == most);
        }
    }
}

proptest! {
    #[test]
    fn a_history_matches_the_study(
        connections in proptest::collection::vec(0..6_u32, 0..400),
        intervals in [1..5_u32, 1..20_u32, 1..30_u32],
    ) {
        let [record, statistics, length] = intervals;
        let mut history = detector("history", &json!({
            "record_interval": record,
            "statistics_interval": statistics,
            "history_length": length,
        }));
        let mut plain = Plain::default();
        for connection in connections {
            hear(&mut history, &[connection]);
            plain.hear(connection, intervals);
            prop_assert_eq!(heaviest(&history), plain.heaviest);
        }
    }

    /// Metwally et al.: no share is too large, none is below the true share by more than 1/k, and a
    /// connection with more than all others together is the heaviest.
    #[test]
    fn space_saving_keeps_its_bounds(
        packets in proptest::collection::vec((0..40_u32, 40..1500_u32), 1..800),
        counters in 1..20_u32,
        statistics in 1..60_u32,
        half_life in 50..2000_u32,
    ) {
        let mut detector = detector("space-saving", &json!({
            "counters": counters,
            "statistics_interval": statistics,
            "half_life": half_life,
        }));
        let halves = f64::from(statistics) / f64::from(half_life);
        let fade = math::exp(-std::f64::consts::LN_2 * halves);
        let mut exact: BTreeMap<u32, f64> = BTreeMap::new();
        for (k, (connection, size)) in (1..).zip(packets) {
            detector.on_packet(ConnectionId(connection), size);
            *exact.entry(connection).or_default() += f64::from(size);
            let total: f64 = exact.values().sum();
            let statistics_now = u32::is_multiple_of(k, statistics);
            if statistics_now {
                for bytes in exact.values_mut() {
                    *bytes *= fade;
                }
            }
            let faded = if statistics_now { total * fade } else { total };
            // A counter below one byte is removed: less than a fortieth of the bytes that filled
            // it.
            let slack = 1e-9 + 1.0 / 39.0 + 1.0 / faded;
            for (&connection, &bytes) in &exact {
                let told = detector.share(ConnectionId(connection));
                let share = bytes / faded;
                prop_assert!(told <= share + 1e-9, "{told} of {share}");
                prop_assert!(
                    told >= share - 1.0 / f64::from(counters) - slack,
                    "{told} of {share}"
                );
            }
            prop_assert!(detector.active() <= counters as usize);
            if statistics_now && counters >= 4 {
                let most = exact.iter().max_by(|a, b| a.1.total_cmp(b.1)).expect("one");
                // Its count beyond the maximum error cannot belong to others.
                if *most.1 / faded > 0.5 + 1.0 / f64::from(counters) + slack {
                    prop_assert_eq!(heaviest(&detector), Some(*most.0));
                }
            }
        }
    }
}

/// The count is exact while all connections have counters.
#[test]
fn space_saving_is_exact_while_all_have_a_counter() {
    let mut detector = detector(
        "space-saving",
        &json!({ "counters": 3, "statistics_interval": 1_000 }),
    );
    for _ in 0..10 {
        detector.on_packet(ConnectionId(7), 1000);
        detector.on_packet(ConnectionId(8), 500);
        detector.on_packet(ConnectionId(9), 500);
    }
    assert!((detector.share(ConnectionId(7)) - 0.5).abs() < 1e-12);
    assert!((detector.share(ConnectionId(9)) - 0.25).abs() < 1e-12);
    assert_eq!(detector.active(), 3);
    assert_eq!(heaviest(&detector), None, "before the first statistics");
}

/// A new connection takes over the smallest counter, whose count becomes the error (§3 of the
/// source).
#[test]
fn space_saving_by_hand() {
    let mut detector = detector(
        "space-saving",
        &json!({ "counters": 2, "statistics_interval": 7 }),
    );
    // 1: 3 packets; 2: 1 packet; 3 takes 2's counter, with 1 of error.
    hear(&mut detector, &[1, 1, 1, 2, 3]);
    assert!((detector.share(ConnectionId(1)) - 3.0 / 5.0).abs() < 1e-12);
    assert!(detector.share(ConnectionId(2)) < 1e-12, "it has no counter");
    assert!((detector.share(ConnectionId(3)) - 1.0 / 5.0).abs() < 1e-12);
    hear(&mut detector, &[3, 3]);
    // Both have a guaranteed count of three packets: the older counter wins.
    assert_eq!(heaviest(&detector), Some(1));
}

#[test]
fn weights_halve_in_a_half_life() {
    let params = json!({ "half_life": 500, "statistics_interval": 100 });
    let mut detector = detector("space-saving", &params);
    hear(&mut detector, &vec![1; 10_000]);
    hear(&mut detector, &[2; 500]);
    // All earlier packets have half their weight, and the later ones are nearly the other half.
    assert!((detector.share(ConnectionId(1)) - 0.5).abs() < 1e-3);
    hear(&mut detector, &[2; 100]);
    assert_eq!(heaviest(&detector), Some(2));
    hear(&mut detector, &vec![2; 12_000]);
    assert_eq!(detector.active(), 1, "who has stopped is forgotten");
}

/// A million connections do not exceed the memory bound, and the heavy connection is found among
/// them.
#[test]
fn memory_does_not_grow_with_the_connections() {
    for (name, most) in [("history", 2_500), ("space-saving", 600)] {
        let mut detector = detector(name, &json!({}));
        for k in 0..4_000_000_u32 {
            let connection = if k % 3 == 0 { 5_000_000 } else { k % 1_000_000 };
            detector.on_packet(ConnectionId(connection), 1500);
        }
        assert!(
            detector.memory() <= most,
            "{name}: {} bytes",
            detector.memory()
        );
        assert_eq!(heaviest(&detector), Some(5_000_000), "{name}");
        let share = detector.share(ConnectionId(5_000_000));
        assert!((share - 1.0 / 3.0).abs() < 0.12, "{name}: {share}");
    }
}
