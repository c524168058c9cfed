//! Comparison of all outputs of runs that must be equal.

use anabranch_engine::Finished;
use serde_json::json;

/// The first output in which two runs differ, with both values; `None` if there is none. Packets
/// and samples are compared if both runs recorded them.
///
/// The engine's statistics about itself (`engine_stats`) are not a result.
pub fn first_difference(one: &Finished, other: &Finished) -> Option<String> {
    let summary = |run: &Finished| {
        let summary = &run.summary;
        [
            ("digest", json!(summary.digest)),
            ("flows", json!(summary.flows)),
            ("links", json!(summary.links)),
            ("groups", json!(summary.groups)),
            ("gateways", json!(summary.gateways)),
            ("fairness", json!(summary.fairness)),
            (
                "delivered packets",
                json!(summary.engine_stats.delivered_packets),
            ),
        ]
    };
    for ((name, a), (_, b)) in summary(one).into_iter().zip(summary(other)) {
        if a != b {
            return Some(format!("{name}: {a}\n{b}"));
        }
    }
    let logs = [one, other].map(|run| run.network.probe().log());
    if let [Some(a), Some(b)] = logs {
        let rows = first_in("packets", a.rows(), b.rows());
        let windows = || first_in("window events", a.windows().iter(), b.windows().iter());
        let needed = || first_in("needed", a.needed().iter(), b.needed().iter());
        if let Some(difference) = rows.or_else(windows).or_else(needed) {
            return Some(difference);
        }
    }
    let (a, b) = (&one.samples, &other.samples);
    if a.links.is_empty() || b.links.is_empty() {
        return None;
    }
    first_in("samples of flows", a.flows.iter(), b.flows.iter())
        .or_else(|| first_in("samples of links", a.links.iter(), b.links.iter()))
        .or_else(|| first_in("samples of groups", a.groups.iter(), b.groups.iter()))
}

/// The first entry of a table in which two runs differ.
fn first_in<T: std::fmt::Debug>(
    table: &str,
    one: impl Iterator<Item = T>,
    other: impl Iterator<Item = T>,
) -> Option<String> {
    let [one, other] = [
        one.map(|row| format!("{row:?}")).collect::<Vec<_>>(),
        other.map(|row| format!("{row:?}")).collect(),
    ];
    let place = (0..one.len().max(other.len())).find(|&n| one.get(n) != other.get(n))?;
    let [a, b] = [one.get(place), other.get(place)];
    Some(format!("{table}, row {place}: {a:?}\n{b:?}"))
}
