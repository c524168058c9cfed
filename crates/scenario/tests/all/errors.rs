//! Error messages of invalid scenarios.

mod bounds;
mod held_limit;
mod input;
mod mtu;
mod network;
mod service;
mod value;

use std::{fmt::Write, sync::Arc};

use anabranch_congestion::{self as cc};
use anabranch_scenario::{Error, Extensions, Scenario};

/// A small valid scenario; tests replace parts of it.
const GOOD: &str = r#"duration = "10 s"

[link.access]
between = ["S", "R1"]
rate = "100 Mbit/s"
delay = "15 ms"

[link.bottleneck]
between = ["R1", "R"]
rate = "10 Mbit/s"
delay = "5 ms"
queue = { kind = "drop-tail", limit = "100 packets" }

[flow.main]
from = "S"
to = "R"
cc = "reno"
stack = "rfc"
"#;

fn check(text: &str, sets: &[&str]) -> Result<(), Error> {
    let mut scenario = Scenario::parse(text, "test.toml", &Extensions::default())?;
    for set in sets {
        scenario.set(set)?;
    }
    scenario.resolve(None)?;
    scenario.sweep()?;
    Ok(())
}

fn error(text: &str, sets: &[&str]) -> String {
    check(text, sets)
        .expect_err("this must be refused")
        .to_string()
}

/// The error of the valid scenario with one part replaced.
fn with(part: &str, instead: &str) -> String {
    assert!(GOOD.contains(part), "{part}");
    error(&GOOD.replacen(part, instead, 1), &[])
}

/// The error of the valid scenario with text appended.
fn plus(text: &str) -> String {
    error(&format!("{GOOD}{text}"), &[])
}

/// Compares with the accepted messages; the expression is omitted from the snapshot.
fn snapshot(name: &str, cases: &[(&str, String)]) {
    let mut text = String::new();
    for (case, error) in cases {
        let _ = write!(text, "### {case}\n{error}\n\n");
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn the_base_scenario_is_valid() {
    assert_eq!(check(GOOD, &[]), Ok(()));
}
