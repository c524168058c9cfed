//! Connections that compete, and Jain's index of their goodputs.

use std::{cmp::Reverse, collections::BTreeMap};

use crate::{figures::Fairness, report::Connection};

/// Minimum time for which flows compete.
const LEAST_SECONDS: f64 = 1.0;

/// A connection's data over time.
struct Flow<'a> {
    id: u64,
    start_s: f64,
    interval_s: f64,
    rates: &'a [f64],
    ends: [&'a str; 2],
}

impl Flow<'_> {
    fn end_s(&self) -> f64 {
        self.start_s + self.interval_s * self.rates.len() as f64
    }

    /// The goodput within a time.
    fn within(&self, from: f64, to: f64) -> f64 {
        let bins = self.rates.iter().enumerate().map(|(k, rate)| {
            let start = self.start_s + self.interval_s * k as f64;
            let overlap = to.min(start + self.interval_s) - from.max(start);
            rate * overlap.max(0.0)
        });
        bins.sum::<f64>() / (to - from)
    }
}

/// The groups of connections that competed for a second or more.
pub(crate) fn fairness(connections: &[Connection]) -> Vec<Fairness> {
    let mut groups: BTreeMap<(bool, &str), Vec<usize>> = BTreeMap::new();
    let flows: Vec<Flow<'_>> = connections.iter().filter_map(flow).collect();
    for (k, flow) in flows.iter().enumerate() {
        let [sender, receiver] = flow.ends;
        groups.entry((true, receiver)).or_default().push(k);
        groups.entry((false, sender)).or_default().push(k);
    }
    let mut found: Vec<Fairness> = Vec::new();
    for ((receives, host), members) in groups {
        let members: Vec<_> = members.iter().map(|k| &flows[*k]).collect();
        let Some((from, to)) = busiest(&members) else {
            continue;
        };
        let members = members
            .into_iter()
            .filter(|flow| flow.start_s <= from && flow.end_s() >= to);
        let (ids, rates): (Vec<_>, Vec<_>) =
            members.map(|flow| (flow.id, flow.within(from, to))).unzip();
        let is_known = found.iter().any(|one| one.connections == ids);
        if let Some(jain) = jain(&rates).filter(|_| !is_known) {
            found.push(Fairness {
                host: host.to_owned(),
                receives,
                connections: ids,
                start_s: from,
                duration_s: to - from,
                goodput_mbit_s: rates,
                jain,
            });
        }
    }
    found.sort_by_key(|one| Reverse(one.connections.len()));
    found
}

fn flow(connection: &Connection) -> Option<Flow<'_>> {
    let model = connection.path.model.as_ref()?;
    let host = |end: &'_ str| -> usize { end.rfind(':').unwrap_or(end.len()) };
    let ends = connection.ends(model.direction);
    Some(Flow {
        id: connection.id,
        start_s: connection.start_s + model.goodput.start_s,
        interval_s: model.goodput.interval_s,
        rates: &model.goodput.mbit_s,
        ends: ends.map(|end| &end[..host(end)]),
    })
}

/// The longest time in which most flows sent data at once, if they are two or more.
fn busiest(flows: &[&Flow<'_>]) -> Option<(f64, f64)> {
    let starts = flows.iter().map(|flow| (flow.start_s, 1_i64));
    let ends = flows.iter().map(|flow| (flow.end_s(), -1));
    let mut steps: Vec<_> = starts.chain(ends).collect();
    steps.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let mut open = 0;
    let mut best: Option<(i64, f64, f64)> = None;
    for pair in steps.windows(2) {
        open += pair[0].1;
        let (from, to) = (pair[0].0, pair[1].0);
        let is_better =
            best.is_none_or(|(most, a, b)| open > most || (open == most && to - from > b - a));
        if open >= 2 && to - from >= LEAST_SECONDS && is_better {
            best = Some((open, from, to));
        }
    }
    best.map(|(_, from, to)| (from, to))
}

/// Jain's index; `None` without data.
fn jain(rates: &[f64]) -> Option<f64> {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rates_are_fair_and_one_of_four_is_a_quarter() {
        let rounded = |rates: &[f64]| jain(rates).map(|index| (index * 1e9).round() / 1e9);
        assert_eq!(rounded(&[2.0, 2.0, 2.0]), Some(1.0));
        assert_eq!(rounded(&[4.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(rounded(&[0.0]), None);
    }

    #[test]
    fn competition_is_the_time_with_most_flows() {
        let flows = [(0.0, 10), (2.0, 4), (3.0, 2)].map(|(start_s, seconds)| Flow {
            id: 0,
            start_s,
            interval_s: 1.0,
            rates: &[1.0; 10][..seconds],
            ends: ["a", "b"],
        });
        assert_eq!(busiest(&flows.each_ref()), Some((3.0, 5.0)));
        assert_eq!(busiest(&[&flows[0]]), None);
    }
}
