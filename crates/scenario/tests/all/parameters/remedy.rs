//! What people see when a parameter of a remedy for reordering is wrong: the line and the column of the
//! value, and what it may be.

use std::collections::BTreeSet;

use anabranch_scenario::{Extensions, Scenario};
use anabranch_tcp::remedy::{Choice, registry};

/// The scenario's line of settings, and the error with it.
fn refused(transport: &str) -> (usize, String) {
    let text = format!(
        r#"duration = "10 s"

[link.path]
between = ["S", "R"]
rate = "10 Mbit/s"
delay = "5 ms"

[flow.main]
from = "S"
to = "R"
cc = "reno"
stack = "rfc"
{transport}
"#
    );
    let read = Scenario::parse(&text, "test.toml", &Extensions::default());
    let error = read
        .and_then(|scenario| scenario.resolve(None))
        .map(|_| ())
        .expect_err(transport);
    let line = text.lines().position(|line| line == transport);
    (line.expect("it is in the text") + 1, error.to_string())
}

/// Remedy, parameter, a value below or before what is allowed, one above or another, what is said of it.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const CASES: [Case; 15] = [
    ("blanton-allman", "variant", "\"mean\"", "3", "`maximum`"),
    (
        "blanton-allman",
        "increment",
        "\"0 packets\"",
        "\"1000001 packets\"",
        "from 1 to 1000000",
    ),
    ("blanton-allman", "gain", "-0.1", "1.1", "outside 0..1"),
    ("blanton-allman", "most", "-0.1", "1.1", "outside 0..1"),
    ("rr-tcp", "fa", "-0.01", "1.01", "outside 0..1"),
    ("rr-tcp", "step", "-1", "2", "outside 0..1"),
    ("rr-tcp", "history", "0", "1001", "outside 1..1000"),
    ("leung-ma", "mean_gain", "-0.1", "1.1", "outside 0..1"),
    ("leung-ma", "deviation_gain", "-0.1", "1.1", "outside 0..1"),
    ("leung-ma", "deviations", "0.05", "10.5", "outside 0.1..10"),
    ("leung-ma", "timeout_factor", "-0.1", "1.1", "outside 0..1"),
    ("ncr", "variant", "\"bold\"", "true", "`careful`"),
    ("ncr", "restart", "\"new\"", "0", "`keep`"),
    ("tcp-pr", "alpha", "-0.1", "1.1", "outside 0..1"),
    ("tcp-pr", "beta", "0.99", "100.5", "outside 1..100"),
];

#[test]
fn every_parameter_out_of_range_is_refused_at_its_place() {
    for (remedy, name, low, high, says) in CASES {
        for value in [low, high] {
            let assigned = format!("{name} = {value}");
            let transport =
                format!("transport = {{ reordering = {{ kind = \"{remedy}\", {assigned} }} }}");
            let (line, error) = refused(&transport);
            let column = transport.find(&assigned).expect("it is there") + name.len() + 4;
            let place = format!("test.toml:{line}:{column}: ");
            assert!(error.starts_with(&place), "{place} {error}");
            assert!(error.contains(says), "{says}: {error}");
        }
    }
}

#[test]
fn every_parameter_has_a_case() {
    let has: BTreeSet<_> = CASES.iter().map(|case| (case.0, case.1)).collect();
    let mut wanted = BTreeSet::new();
    for (_, config, _) in registry() {
        let remedy = config.name().to_owned();
        let table = serde_json::to_value(Choice(config)).expect("plain data");
        let names = table.as_object().expect("a table").keys().cloned();
        wanted.extend(
            names
                .filter(|name| name != "kind")
                .map(|name| (remedy.clone(), name)),
        );
    }
    let wanted: BTreeSet<_> = wanted
        .iter()
        .map(|(remedy, name)| (remedy.as_str(), name.as_str()))
        .collect();
    assert_eq!(has, wanted);
}

#[test]
fn an_unknown_parameter_is_refused_at_its_name() {
    for (remedy, name, near) in [
        ("leung-ma", "mean_gian", "`mean_gain`"),
        ("ncr", "restrat", "`restart`"),
        ("tcp-pr", "alhpa", "`alpha`"),
    ] {
        let transport =
            format!("transport = {{ reordering = {{ kind = \"{remedy}\", {name} = 1 }} }}");
        let (line, error) = refused(&transport);
        let column = transport.find(name).expect("it is there") + 1;
        let place = format!("test.toml:{line}:{column}: ");
        assert!(error.starts_with(&place), "{place} {error}");
        assert!(error.contains(near), "{error}");
    }
}
