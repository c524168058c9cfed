//! One table: for each parameter of each registered component, a value below its bounds or of
//! another type, a value above, and the error message at the position of either.

use std::{collections::BTreeMap, fmt::Write};

use anabranch_scenario::catalog::{Entry, Parameter, catalog};
use serde_json::Value;

use super::{resolve, scenario};

/// Further parameters that a component requires.
const NEEDED: &[(&str, &[(&str, &str)])] = &[
    (
        "red",
        &[
            ("min_threshold", "\"5 packets\""),
            ("max_threshold", "\"15 packets\""),
            ("weight", "0.002"),
        ],
    ),
    (
        "preferential-red",
        &[
            ("min_threshold", "\"5 packets\""),
            ("max_threshold", "\"15 packets\""),
            ("weight", "0.002"),
        ],
    ),
    (
        "share-red",
        &[
            ("min_threshold", "\"5 packets\""),
            ("max_threshold", "\"15 packets\""),
            ("weight", "0.002"),
        ],
    ),
    ("threshold-mark", &[("threshold", "\"20 packets\"")]),
    ("interval", &[("interval", "4")]),
    ("bernoulli-loss", &[("rate", "0.1")]),
    ("gilbert-elliott", &[("p", "0.1"), ("r", "0.5")]),
    ("jitter", &[("mean", "\"5 ms\"")]),
    ("loss-list", &[("packets", "[1]")]),
    ("duplicate", &[("rate", "0.1")]),
    ("corrupt", &[("rate", "0.1")]),
    ("paced", &[("rate", "\"1 Mbit/s\"")]),
];

/// A scenario with this component, which begins at the last `{`.
fn with(kind: &str, component: &str) -> Option<String> {
    Some(match kind {
        "cc" => scenario("", &format!("cc = {component}")),
        "queue" => scenario(&format!("queue = {component}"), ""),
        "reorder" => scenario(
            &format!("queue = {{ kind = \"drop-tail\", reorder = {component} }}"),
            "",
        ),
        "impair" => scenario(&format!("impair = [{component}]"), ""),
        "remedy" => scenario("", &format!("transport = {{ reordering = {component} }}")),
        "fec" => scenario("", &format!("fec = {component}")),
        "control" => format!(
            "{}\n[group.core]\nbetween = [\"A\", \"B\"]\nmembers = 2\nrate = \"1 Mbit/s\"\ncontrol = {component}\n",
            scenario("", "")
        ),
        "split" | "restore" => format!(
            "{}\n[link.two]\nbetween = [\"S\", \"R\"]\nrate = \"1 Mbit/s\"\ndelay = \"9 ms\"\n\n[gateway.g]\nbetween = [\"S\", \"R\"]\n\
             routes = [\"path\", \"two\"]\n{kind} = {component}\n{}\n",
            scenario("", ""),
            if kind == "split" {
                "restore = \"none\""
            } else {
                "split = \"weighted-round-robin\""
            }
        ),
        _ => return None,
    })
}

/// Two invalid values of the parameter.
fn wrong(parameter: &Parameter) -> [String; 2] {
    match (&parameter.minimum, &parameter.maximum) {
        (Value::Number(least), Value::Number(most)) => {
            let (least, most) = (
                least.as_f64().expect("finite"),
                most.as_f64().expect("finite"),
            );
            if parameter.default.is_u64() || parameter.value_type.contains("integer") {
                [format!("{}", least - 1.0), format!("{}", most + 1.0)]
            } else {
                let step = (most - least) / 1024.0;
                [format!("{:?}", least - step), format!("{:?}", most + step)]
            }
        }
        (Value::String(least), Value::String(most)) => {
            let below = least
                .split_once(' ')
                .map_or("0 ms".to_owned(), |(n, unit)| {
                    let n: f64 = n.parse().expect("a number");
                    format!("{} {unit}", if n > 0.0 { 0.0 } else { -1.0 })
                });
            let above = most.split_once(' ').map_or("9 h".to_owned(), |(n, unit)| {
                let n: f64 = n.parse().expect("a number");
                format!("{} {unit}", 2.0 * n + 1.0)
            });
            [format!("{below:?}"), format!("{above:?}")]
        }
        _ if parameter.value_type == "boolean" => ["\"on\"".to_owned(), "1".to_owned()],
        _ => ["\"neither\"".to_owned(), "{ no = 1 }".to_owned()],
    }
}

/// The error of a component with this parameter, without its excerpt; the position must be that of
/// the value.
fn said(entry: &Entry, name: &str, value: &str) -> Result<String, String> {
    let needed = NEEDED.iter().find(|(of, _)| *of == entry.name);
    let mut component = format!("{{ kind = {:?}, {name} = {value}", entry.name);
    for (other, right) in needed.map_or(&[][..], |(_, needed)| needed) {
        if *other != name {
            let _ = write!(component, ", {other} = {right}");
        }
    }
    component += " }";
    let text = with(entry.kind, &component).expect("its kind is known");
    let Err(error) = resolve(&text) else {
        return Err(format!("{} {component} is taken", entry.kind));
    };
    let assigned = format!("{name} = {value}");
    let (at, line) = text
        .lines()
        .enumerate()
        .find(|(_, line)| line.contains(&component))
        .expect("it is in the text");
    // At or inside the value, at its key, or at the table if several values contradict each other.
    let begin = line.find(&assigned).expect("it is there");
    let table = line.find(&component).expect("it is there");
    let place = (begin..begin + assigned.len())
        .chain([table])
        .map(|column| format!("test.toml:{}:{}: ", at + 1, column + 1))
        .find(|place| error.starts_with(place));
    let Some(place) = place else {
        return Err(format!("{component}:\n{error}"));
    };
    let mut lines = error[place.len()..].lines();
    let first = lines.next().unwrap_or_default().to_owned();
    let help = lines
        .find_map(|line| line.trim_start().strip_prefix("= "))
        .map_or(String::new(), |help| format!("; {help}"));
    Ok(format!("{first}{help}"))
}

/// Detects a parameter whose values are not checked, and a message without a position. Each message
/// appears once, with a placeholder for the value, before its parameters.
#[test]
fn invalid_values_of_every_parameter_are_refused_at_their_position() {
    let mut messages: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut failures = String::new();
    for entry in catalog() {
        if with(entry.kind, "").is_none() {
            continue;
        }
        for parameter in &entry.parameters {
            let name = format!("{}.{}", entry.name, parameter.name);
            for value in wrong(parameter) {
                match said(&entry, &parameter.name, &value) {
                    Ok(said) => {
                        let bare = value.trim_matches('"');
                        let of = messages.entry(said.replace(bare, "…")).or_default();
                        if of.last() != Some(&name) {
                            of.push(name.clone());
                        }
                    }
                    Err(failure) => {
                        let _ = writeln!(failures, "{failure}");
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
    let mut table = String::new();
    for (message, parameters) in messages {
        let _ = writeln!(table, "{message}\n    {}", parameters.join(" "));
    }
    insta::with_settings!({ omit_expression => true }, {
        insta::assert_snapshot!("wrong_values", table);
    });
}
