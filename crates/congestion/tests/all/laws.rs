//! Laws of every registered congestion control, by family.

#![expect(clippy::float_cmp, reason = "small whole numbers and copies are exact")]

use crate::support;

use std::collections::BTreeSet;

use anabranch_congestion::{Config, CongestionControl, Family, IdleRestart, Init, registry};
use anabranch_core::{
    registry::Meta,
    units::{Bytes, Duration, Rate},
};
use serde_json::{Value, json};
use support::{
    Path, SMSS, WINDOWS, assert_near,
    bottleneck::{Bottleneck, PACKET},
    segments,
};

const RTT: Duration = Duration::from_millis(50);

fn of_family(family: Family) -> impl Iterator<Item = (&'static Meta, Config)> {
    registry()
        .into_iter()
        .filter(move |(_, config, _)| config.family() == Some(family))
        .map(|(meta, config, _)| (meta, config))
}

/// Every control that reacts to a loss as such.
fn reacting_to_loss() -> impl Iterator<Item = (&'static Meta, Config)> {
    of_family(Family::LossBased).chain(of_family(Family::DelayBased))
}

/// The documented window after a loss, in segments, without earlier measurements.
fn after_loss(config: &Config, window: f64) -> f64 {
    let factor = config.decrease_factor().unwrap_or_else(|| match config {
        // Westwood+: the bandwidth times the smallest RTT; without a sample, half (see
        // `westwood_plus.rs`). H-TCP: `RTT_min / RTT_max`; before a second congestion event, half
        // (see `htcp.rs`).
        Config::WestwoodPlus(_) | Config::Htcp(_) => 0.5,
        Config::Bic(bic) if window < bic.low_window.as_f64() => 0.5,
        Config::Bic(_) => 0.875,
        _ => panic!("{} documents no factor", config.name()),
    });
    (factor * window).max(2.0)
}

// Every control.

#[test]
fn after_a_long_pause_only_one_rule_raises_ssthresh() {
    let long = Duration::from_secs(3);
    for (meta, config) in reacting_to_loss() {
        let resume = |rule, pause| {
            let mut path = Path::new(&config, 10, RTT);
            for _ in 0..3 {
                path.round_trip();
            }
            path.lose();
            path.recovered();
            // Congestion avoidance, until three quarters of the window exceed ssthresh after the
            // loss.
            let lost = path.ssthresh();
            for _ in 0..2_000 {
                path.round_trip();
                if path.cwnd() * 0.7 > lost + 1.0 {
                    break;
                }
            }
            assert!(path.cwnd() * 0.7 > lost + 1.0, "{}", meta.name);
            let before = (path.cwnd(), path.ssthresh());
            path.idle_by(rule, pause);
            (before, path.ssthresh())
        };
        let ((cwnd, ssthresh), after) = resume(IdleRestart::Rfc2861, long);
        assert!(after > ssthresh, "{}", meta.name);
        let whole = (cwnd / 2.0).floor() + (cwnd / 4.0).floor();
        assert!(
            (after - whole).abs() < 0.01,
            "{}: {after} of {cwnd}",
            meta.name
        );
        for (rule, pause) in [
            (IdleRestart::Off, long),
            (IdleRestart::Rfc5681, long),
            (IdleRestart::Rfc7661, long),
            (IdleRestart::Rfc2861, Duration::from_millis(900)),
        ] {
            let ((_, ssthresh), after) = resume(rule, pause);
            assert_eq!(after, ssthresh, "{} {rule:?}", meta.name);
        }
    }
}

#[test]
fn every_control_describes_itself() {
    let mut names = BTreeSet::new();
    for (meta, config, schema) in registry() {
        assert!(names.insert(meta.name), "{} is there twice", meta.name);
        assert!(
            meta.name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        );
        assert_eq!(config.name(), meta.name);
        assert_eq!(Config::named(meta.name).as_ref(), Some(&config));
        assert!(config.family().is_some());
        assert!(
            !meta.title.is_empty() && meta.summary.ends_with('.'),
            "{}",
            meta.name
        );
        assert!(!meta.sources.is_empty(), "{} has no source", meta.name);
        for source in meta.sources {
            assert!(
                !source.id.is_empty() && !source.items.is_empty(),
                "{}",
                meta.name
            );
        }
        for (name, property) in properties(&schema) {
            let text = property["description"].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{}: {name} has no description", meta.name);
            assert!(
                property.get("default").is_some(),
                "{}: {name} has no default",
                meta.name
            );
        }
    }
    assert!(
        ["reno", "cubic", "cubic-plus"]
            .iter()
            .all(|name| names.contains(name))
    );
}

fn properties(schema: &schemars::Schema) -> Vec<(String, Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// `{ name: { parameter: value } }`.
fn written(meta: &Meta, parameter: &str, value: &Value) -> Value {
    json!({ meta.name: { parameter: value } })
}

#[test]
fn parameters_survive_writing_and_reading() {
    for (meta, config, _) in registry() {
        let text = serde_json::to_value(&config).expect("parameters can be written");
        assert!(
            text.get(meta.name).is_some(),
            "{text} is called {}",
            meta.name
        );
        assert_eq!(
            serde_json::from_value::<Config>(text).expect("and read"),
            config
        );
        let empty = serde_json::from_value::<Config>(json!({ meta.name: {} }));
        assert_eq!(empty.expect("every parameter has a default"), config);
    }
    let alias = serde_json::from_value::<Config>(json!({ "new-reno": {} }));
    assert_eq!(alias.expect("the contract's other name").name(), "reno");
}

#[test]
fn unknown_parameters_are_rejected() {
    for (meta, _, _) in registry() {
        let file = written(meta, "no_such_parameter", &json!(1));
        let error = serde_json::from_value::<Config>(file).expect_err("unknown");
        assert!(error.to_string().contains("no_such_parameter"), "{error}");
    }
}

#[test]
fn reading_enforces_the_bounds_of_parameters() {
    let mut bounds = 0;
    for (meta, _, schema) in registry() {
        for (name, property) in properties(&schema) {
            let read = |value: f64| {
                // Whole numbers are written as integers.
                let value = value.to_string().parse().expect("a JSON number");
                serde_json::from_value::<Config>(written(meta, &name, &value))
            };
            let (minimum, maximum) = (property["minimum"].as_f64(), property["maximum"].as_f64());
            if property["type"] == "number" {
                assert!(
                    minimum.is_some() && maximum.is_some(),
                    "{}: {name}",
                    meta.name
                );
            }
            for (inside, outside) in [
                (minimum, minimum.map(|m| m - 1.0)),
                (maximum, maximum.map(|m| m + 1.0)),
            ] {
                let (Some(inside), Some(outside)) = (inside, outside) else {
                    continue;
                };
                read(inside).unwrap_or_else(|e| panic!("{}: {name} = {inside}: {e}", meta.name));
                assert!(read(outside).is_err(), "{}: {name} = {outside}", meta.name);
                bounds += 1;
            }
        }
    }
    assert!(bounds >= 20, "only {bounds} bounds found");
}

#[test]
fn windows_are_never_below_a_segment() {
    for (meta, config, _) in registry() {
        for window in WINDOWS {
            let mut path = Path::new(&config, window, RTT);
            for _ in 0..20 {
                path.rto(1);
                path.lose();
                path.mark();
                assert!(path.control.cwnd() >= SMSS, "{} at {window}", meta.name);
            }
        }
        let control = config.build(&Init::new(SMSS, Bytes::ZERO));
        assert!(
            control.cwnd() >= SMSS,
            "{} without an initial window",
            meta.name
        );
    }
}

// Controls that react to a loss: loss-based and delay-based ones.

#[test]
fn a_loss_leaves_the_documented_share() {
    for (meta, config) in reacting_to_loss() {
        for window in WINDOWS {
            let mut path = Path::new(&config, window, RTT);
            path.lose();
            assert_near(path.cwnd(), after_loss(&config, window as f64), 1e-6);
            assert_eq!(path.cwnd(), path.ssthresh(), "{} at {window}", meta.name);
            assert!(window < 3 || path.cwnd() < window as f64);
        }
    }
}

#[test]
fn a_mark_reduces_like_a_loss() {
    for (_, config) in reacting_to_loss() {
        for window in WINDOWS.into_iter().filter(|window| *window >= 4) {
            let (mut lost, mut marked) = (
                Path::new(&config, window, RTT),
                Path::new(&config, window, RTT),
            );
            lost.lose();
            marked.mark();
            assert_eq!(lost.cwnd(), marked.cwnd());
        }
    }
}

#[test]
fn a_timeout_leaves_one_segment_and_slow_start_recovers() {
    for (meta, config) in reacting_to_loss() {
        // Vegas doubles every other round trip, so that it can measure in between.
        let round_trips = match config.family() {
            Some(Family::LossBased) => 1,
            _ => 2,
        };
        for window in [1, 10, 100, 3_333] {
            let mut path = Path::new(&config, window, RTT);
            path.rto(1);
            assert_eq!(path.control.cwnd(), SMSS, "{} at {window}", meta.name);
            let ssthresh = path.ssthresh();
            assert_near(ssthresh, after_loss(&config, window as f64), 1e-6);
            path.rto(2);
            assert_eq!(
                path.ssthresh(),
                ssthresh,
                "{}: a second timeout holds it",
                meta.name
            );
            while path.cwnd() < ssthresh {
                let before = path.cwnd();
                for _ in 0..round_trips {
                    path.round_trip();
                }
                let doubled = (2.0 * before).min(ssthresh);
                assert!(path.cwnd() >= 0.95 * doubled, "{}: {before}", meta.name);
            }
        }
    }
}

#[test]
fn the_window_is_constant_in_a_recovery_or_unused() {
    for (meta, config) in reacting_to_loss() {
        for slow_start in [true, false] {
            let mut path = Path::new(&config, 100, RTT);
            if !slow_start {
                path.lose();
            }
            let before = path.control.cwnd();
            for _ in 0..1_000 {
                path.ack_as(|ack| ack.in_recovery = true);
                path.ack_as(|ack| ack.cwnd_limited = false);
                path.ack_as(|ack| ack.acked = Bytes::ZERO);
                path.pause(Duration::from_millis(5));
            }
            assert_eq!(path.control.cwnd(), before, "{}", meta.name);
            // The window could have grown.
            path.round_trip();
            path.round_trip();
            assert!(path.control.cwnd() > before, "{}", meta.name);
        }
    }
}

#[test]
fn a_reduced_window_grows_back() {
    for (meta, config) in reacting_to_loss() {
        let mut path = Path::new(&config, 50, RTT);
        path.lose();
        let mut round_trips = 0;
        while path.cwnd() < 50.0 {
            path.round_trip();
            round_trips += 1;
            assert!(round_trips < 200, "{} stays at {}", meta.name, path.cwnd());
        }
    }
}

#[test]
fn a_spurious_reduction_leaves_no_less_than_before() {
    for (meta, config) in reacting_to_loss() {
        for timeout in [false, true] {
            let mut path = Path::new(&config, 100, RTT);
            if timeout {
                path.rto(1);
            } else {
                path.lose();
            }
            path.spurious(timeout);
            assert_eq!(path.control.cwnd(), segments(100), "{}", meta.name);
            assert_eq!(path.control.ssthresh(), None, "{}", meta.name);
        }
    }
}

// Delay-based controls.

#[test]
fn a_standing_queue_alone_reduces_the_window() {
    let mut tried = 0;
    for (meta, config) in of_family(Family::DelayBased) {
        for window in [60, 100, 3_333] {
            let mut path = Path::new(&config, window, RTT);
            path.lose();
            path.recovered();
            for _ in 0..20 {
                path.round_trip();
            }
            let before = path.cwnd();
            assert!(before > 0.5 * window as f64, "{}", meta.name);
            // Half of the data in flight is in a queue; nothing is lost or marked.
            path.queued = path.rtt;
            for _ in 0..6 {
                path.round_trip();
            }
            assert!(path.cwnd() < before - 1.0, "{} at {window}", meta.name);
            assert!(path.control.cwnd() >= segments(2), "{}", meta.name);
            tried += 1;
        }
    }
    assert!(tried >= 6);
}

#[test]
fn without_a_queue_the_window_grows_every_round_trip() {
    for (meta, config) in of_family(Family::DelayBased) {
        let mut path = Path::new(&config, 100, RTT);
        path.lose();
        path.recovered();
        path.round_trip();
        let before = path.cwnd();
        for _ in 0..10 {
            path.round_trip();
        }
        assert!(path.cwnd() >= before + 9.0, "{}", meta.name);
    }
}

// Controls that model the path.

#[test]
fn a_model_finds_the_rate_and_the_smallest_rtt_of_any_path() {
    let mut tried = 0;
    for (meta, config) in of_family(Family::ModelBased) {
        for (mbit_s, rtt_ms) in [
            (1, 20),
            (10, 10),
            (10, 100),
            (100, 10),
            (100, 100),
            (1000, 20),
        ] {
            let (rate, delay) = (Rate::from_mbit_per_s(mbit_s), Duration::from_millis(rtt_ms));
            let mut path = Bottleneck::new(&config, rate, delay);
            path.run(Duration::from_secs(4));
            let time = Duration::from_secs(5);
            path.run(time);
            // Less the margin of the control, and the cost of a probe for the RTT.
            assert!(
                path.share(time) > 0.95,
                "{} at {mbit_s} Mbit/s: {}",
                meta.name,
                path.share(time)
            );
            assert_near(path.state("btl_bw"), mbit_s as f64, 0.02);
            let base = delay + PACKET / rate;
            assert_near(path.state("rt_prop"), base.as_millis_f64(), 0.05);
            // No standing queue of more than a window: at most two BDPs in flight, and bursts.
            let bdp = (rate * base).get() / PACKET.get();
            assert!(
                path.max_queue <= bdp + 16,
                "{}: {} packets",
                meta.name,
                path.max_queue
            );
            tried += 1;
        }
    }
    assert!(tried >= 6);
}

/// Time for which a rate that is no longer available can remain the largest. BBR: ten round trips
/// (draft-cardwell-iccrg-bbr-congestion-control-00 §4.1.1.2), here of twice the delay. BBRv3: two
/// cycles (draft-ietf-ccwg-bbr §2.11) of at most three seconds, and the probes.
fn memory(meta: &Meta) -> Duration {
    Duration::from_secs(if meta.name == "bbr3" { 8 } else { 4 })
}

#[test]
fn a_model_follows_a_path_that_becomes_slower_or_faster() {
    for (meta, config) in of_family(Family::ModelBased) {
        for (before, after) in [(20, 10), (10, 20)] {
            let delay = Duration::from_millis(40);
            let mut path = Bottleneck::new(&config, Rate::from_mbit_per_s(before), delay);
            path.run(Duration::from_secs(3));
            path.rate = Rate::from_mbit_per_s(after);
            path.run(memory(meta));
            assert_near(path.state("btl_bw"), after as f64, 0.05);
            assert!(path.control.cwnd() > SMSS.min(PACKET), "{}", meta.name);
        }
    }
}
