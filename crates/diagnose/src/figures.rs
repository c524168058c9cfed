//! Figures that people know: responsiveness, the use of the path's rate, and Jain's index.

use std::{cmp::Reverse, collections::BTreeMap};

use serde::Serialize;

use crate::{
    connection::rtt::Rtt,
    path::{Model, Seen},
    report::Connection,
};

/// Share of the round trips, the shortest ones, over which the mean is taken.
const TRIMMED_PERCENT: u32 = 95;
/// Least number of round trips under load.
const FEW: u64 = 10;
const MS_PER_MINUTE: f64 = 60_000.0;

/// Round trips per minute, idle and under load (draft-ietf-ippm-responsiveness). `None` if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Responsiveness {
    /// The least round trip.
    pub idle_ms: Option<f64>,
    /// 60,000 ÷ `idle_ms`.
    pub idle_rpm: Option<f64>,
    /// The mean of the shortest 95 % of the round trips that were measured while the connection
    /// filled the path.
    pub loaded_ms: Option<f64>,
    /// 60,000 ÷ `loaded_ms`.
    pub loaded_rpm: Option<f64>,
    /// These round trips, all of them.
    pub loaded_samples: u64,
}

impl Responsiveness {
    /// `back_ms` is the sender's part of the round trip.
    pub(crate) fn of(rtt: &Rtt, back_ms: f64) -> Self {
        let idle = rtt.min.map(crate::time::millis);
        let idle_ms = idle.map(|ms| ms + back_ms).filter(|ms| *ms > 0.0);
        let loaded = &rtt.loaded;
        let loaded_ms = if loaded.count() < FEW {
            None
        } else {
            let quantile = |k: u32| loaded.percentile(f64::from(k) + 0.5);
            let sum: u64 = (0..TRIMMED_PERCENT).filter_map(quantile).sum();
            Some(sum as f64 / f64::from(TRIMMED_PERCENT) / 1e3 + back_ms)
        };
        let rpm = |ms: f64| MS_PER_MINUTE / ms;
        Self {
            idle_ms,
            idle_rpm: idle_ms.map(rpm),
            loaded_ms,
            loaded_rpm: loaded_ms.map(rpm),
            loaded_samples: loaded.count(),
        }
    }
}

/// Jain's index of the connections to a host, or from one, while most of them sent data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fairness {
    /// The host that all of them send to or receive from.
    pub host: String,
    /// Whether the host receives their data.
    pub receives: bool,
    /// The connections.
    pub connections: Vec<u64>,
    /// Start of the time in which they all sent data, as in the file.
    pub start_s: f64,
    /// Its length.
    pub duration_s: f64,
    /// Their goodputs in this time.
    pub goodput_mbit_s: Vec<f64>,
    /// The square of the sum of the goodputs ÷ their number ÷ the sum of their squares: 1 if they
    /// are equal.
    pub jain: f64,
}

/// A goodput ÷ the rate of the path, if that was measured.
pub(crate) fn rate_used(model: &Model, goodput_mbit_s: Option<f64>) -> Option<f64> {
    let rate = model.rate_mbit_s;
    let rate = rate
        .value
        .filter(|value| rate.seen == Seen::Measured && *value > 0.0)?;
    Some(goodput_mbit_s? / rate)
}

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
