//! The history of peers, paths and classes over the last hour, day and month.
//!
//! Samples come from the daemon, which takes one every [`SAMPLE`] seconds. Each is folded into three
//! tiers of increasing coarseness, so that memory is bounded: a series takes at most 130 kB, and there
//! are [`MOST_SERIES`] at most. Time is that of a clock that only advances; the file has the wall
//! clock's time once, for the gap until the next start.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "values of a chart need no more than seven digits, and times are positive"
)]

mod keeper;
mod stored;

use std::{
    cmp::Ordering,
    collections::{BTreeMap, VecDeque},
};

use serde::{Deserialize, Serialize};

pub use keeper::{Keeper, Place};

/// Seconds between samples.
pub const SAMPLE: u64 = 5;
/// The most series; when there are more, the one without a sample for the longest time is dropped.
pub const MOST_SERIES: usize = 256;
/// The most peers that are sampled.
pub const MOST_PEERS: usize = 64;
/// The most events.
const MOST_EVENTS: usize = 500;
/// The most octets of an event.
const MOST_MESSAGE: usize = 400;
/// The most columns of a series.
const WIDTH: usize = 8;
/// A longer time between two samples counts as this time.
const LONGEST: f64 = 60.0;

/// A resolution of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    Hour,
    Day,
    Month,
}

impl Range {
    const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Month];

    /// Its name in a request.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// The range of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|range| range.name() == name)
    }

    /// Seconds of a point.
    fn step(self) -> u64 {
        match self {
            Self::Hour => SAMPLE,
            Self::Day => 120,
            Self::Month => 3600,
        }
    }

    /// The most points of a series.
    fn most(self) -> u32 {
        match self {
            Self::Hour | Self::Day => 720,
            Self::Month => 744,
        }
    }
}

/// A request for the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    pub range: Range,
    /// The peer; the first one if there is no name.
    pub peer: Option<String>,
}

impl Query {
    /// The request's line: `history RANGE`, then the peer's name as a JSON string.
    pub fn line(&self) -> String {
        let peer = self.peer.as_ref().map(|peer| serde_json::json!(peer));
        let peer = peer.map_or(String::new(), |peer| format!(" {peer}"));
        format!("history {}{peer}\n", self.range.name())
    }

    /// Reads a request's line.
    pub fn read(octets: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(octets).ok()?.strip_suffix('\n')?;
        let rest = line.strip_prefix("history ")?;
        let (range, peer) = match rest.split_once(' ') {
            Some((range, peer)) => (range, Some(serde_json::from_str(peer).ok()?)),
            None => (rest, None),
        };
        let range = Range::of(range)?;
        Some(Self { range, peer })
    }
}

/// The subject of a series: a peer, or a path or class of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    pub peer: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
}

/// How the values of a column are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fold {
    Mean,
    Least,
    Most,
}

type Column = (&'static str, Fold);

/// Rates are per second.
const OF_PEERS: &[Column] = &[
    ("up", Fold::Mean),
    ("sent_packets", Fold::Mean),
    ("received_packets", Fold::Mean),
    ("repaired_packets", Fold::Mean),
    ("correction_packets", Fold::Mean),
    ("rebuilt_packets", Fold::Mean),
    ("reordered_packets", Fold::Mean),
    ("dropped_packets", Fold::Mean),
];
const OF_PATHS: &[Column] = &[
    ("up", Fold::Mean),
    ("sent_bytes", Fold::Mean),
    ("received_bytes", Fold::Mean),
    ("rate_mbit_s", Fold::Mean),
    ("loss", Fold::Mean),
    ("loss_most", Fold::Most),
    ("rtt_ms_least", Fold::Least),
    ("rtt_ms_most", Fold::Most),
];
const OF_CLASSES: &[Column] = &[
    ("sent_packets", Fold::Mean),
    ("sent_bytes", Fold::Mean),
    ("dropped_packets", Fold::Mean),
    ("queued_packets", Fold::Most),
];

impl Subject {
    fn columns(&self) -> &'static [Column] {
        match (&self.path, &self.class) {
            (Some(_), _) => OF_PATHS,
            (None, Some(_)) => OF_CLASSES,
            (None, None) => OF_PEERS,
        }
    }
}

/// A value of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A total since the daemon's start; its rate is recorded.
    Total(u64),
    /// A present value.
    Now(f64),
}

/// The values of all subjects at one time, in the order of the subject's columns.
pub type Sample = Vec<(Subject, Vec<Value>)>;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    /// The number of its interval: time divided by the step.
    at: u32,
    /// Seconds that the samples cover.
    weight: f32,
    /// NaN where nothing is known.
    values: [f32; WIDTH],
}

#[derive(Debug)]
struct Series {
    subject: Subject,
    /// The previous sample and its time.
    before: Option<(Vec<Value>, f64)>,
    tiers: [VecDeque<Point>; 3],
}

impl Series {
    fn new(subject: Subject) -> Self {
        Self {
            subject,
            before: None,
            tiers: Default::default(),
        }
    }

    fn add(&mut self, values: &[Value], now: f64) {
        let Some((before, at)) = self.before.replace((values.to_vec(), now)) else {
            return;
        };
        let elapsed = now - at;
        if elapsed <= 0.0 {
            return;
        }
        let mut row = [f32::NAN; WIDTH];
        let pairs = values.iter().zip(before.iter());
        for (cell, pair) in row.iter_mut().zip(pairs) {
            *cell = match pair {
                // A total of another daemon or session begins again.
                (Value::Total(now), Value::Total(before)) => {
                    (now.saturating_sub(*before) as f64 / elapsed) as f32
                }
                (Value::Now(now), _) => *now as f32,
                (Value::Total(_), Value::Now(_)) => f32::NAN,
            };
        }
        let weight = elapsed.min(LONGEST) as f32;
        let columns = self.subject.columns();
        for (range, tier) in Range::ALL.into_iter().zip(&mut self.tiers) {
            let point = Point {
                at: interval(now, range),
                weight,
                values: row,
            };
            match tier.back_mut() {
                Some(last) if last.at == point.at => last.fold(&point, columns),
                Some(last) if last.at > point.at => {}
                _ => tier.push_back(point),
            }
        }
        self.expire(now);
    }

    fn expire(&mut self, now: f64) {
        for (range, tier) in Range::ALL.into_iter().zip(&mut self.tiers) {
            let present = interval(now, range);
            let is_old = |point: &Point| point.at.saturating_add(range.most()) <= present;
            while tier.front().is_some_and(is_old) {
                tier.pop_front();
            }
        }
    }

    /// The time of the last sample.
    fn last(&self) -> f64 {
        let newest = self.tiers.iter().zip(Range::ALL);
        let newest = newest.filter_map(|(tier, range)| {
            let last = tier.back()?;
            Some(f64::from(last.at) * range.step() as f64)
        });
        let sampled = self.before.iter().map(|(_, at)| *at);
        newest.chain(sampled).fold(0.0, f64::max)
    }
}

impl Point {
    fn fold(&mut self, other: &Self, columns: &[Column]) {
        let share = other.weight / (self.weight + other.weight);
        let cells = self.values.iter_mut().zip(other.values).zip(columns);
        for ((cell, new), (_, fold)) in cells {
            *cell = match fold {
                _ if cell.is_nan() => new,
                _ if new.is_nan() => *cell,
                Fold::Mean => *cell + (new - *cell) * share,
                Fold::Least => cell.min(new),
                Fold::Most => cell.max(new),
            };
        }
        self.weight += other.weight;
    }
}

fn interval(now: f64, range: Range) -> u32 {
    (now / range.step() as f64) as u32
}

/// A message of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Event {
    at: f64,
    message: String,
}

/// The history.
#[derive(Debug, Default)]
pub struct History {
    /// Seconds since the first start that the history covers.
    now: f64,
    series: Vec<Series>,
    events: VecDeque<Event>,
}

impl History {
    /// Advances the clock.
    pub fn advance(&mut self, seconds: f64) {
        self.now += seconds.max(0.0);
    }

    /// Adds a sample at the present time.
    pub fn add(&mut self, sample: Sample) {
        for (subject, values) in sample {
            let number = self.number_of(subject);
            if let Some(series) = number.and_then(|number| self.series.get_mut(number)) {
                series.add(&values, self.now);
            }
        }
        let now = self.now;
        self.series.retain_mut(|series| {
            series.expire(now);
            series.before.is_some() || series.tiers.iter().any(|tier| !tier.is_empty())
        });
    }

    /// The place of a subject's series, which is made if there is none.
    fn number_of(&mut self, subject: Subject) -> Option<usize> {
        let known = self.series.iter().position(|one| one.subject == subject);
        if known.is_some() {
            return known;
        }
        if self.series.len() == MOST_SERIES {
            let last = |series: &Series| series.last();
            let numbered = self.series.iter().map(last).enumerate();
            let oldest =
                numbered.min_by(|(_, a), (_, b)| a.partial_cmp(b).unwrap_or(Ordering::Equal));
            let (number, at) = oldest?;
            // All series have samples.
            if self.now - at <= LONGEST {
                return None;
            }
            self.series.remove(number);
        }
        self.series.push(Series::new(subject));
        Some(self.series.len() - 1)
    }

    /// Adds a message at the present time.
    pub fn note(&mut self, message: &str) {
        if self.events.len() == MOST_EVENTS {
            self.events.pop_front();
        }
        let message: String = message.chars().take(MOST_MESSAGE).collect();
        let at = self.now;
        self.events.push_back(Event { at, message });
    }

    /// The answer to a query, as JSON.
    pub fn answer(&self, query: &Query) -> String {
        let mut peers: Vec<&str> = Vec::new();
        for series in &self.series {
            if !peers.contains(&series.subject.peer.as_str()) {
                peers.push(&series.subject.peer);
            }
        }
        let peer = query.peer.as_deref().or(peers.first().copied());
        let range = query.range;
        let present = interval(self.now, range);
        let tier = Range::ALL.iter().position(|other| *other == range);
        let series = self.series.iter().filter(|series| {
            let subject = &series.subject;
            Some(subject.peer.as_str()) == peer
        });
        let series = series.filter_map(|series| {
            let is_new = |point: &&Point| point.at.saturating_add(range.most()) > present;
            let points = series.tiers.get(tier?)?.iter().filter(is_new);
            let columns = series.subject.columns().iter().enumerate();
            let values = columns.map(|(column, (name, _))| {
                let cells = points.clone().filter_map(|point| point.values.get(column));
                let cells: Vec<Option<f32>> = cells.map(|&cell| rounded(cell)).collect();
                (*name, cells)
            });
            Some(Excerpt {
                subject: &series.subject,
                age: points.clone().map(|point| present - point.at).collect(),
                values: values.collect(),
            })
        });
        let events = self.events.iter().rev().map(|event| EventExcerpt {
            age_s: (self.now - event.at).max(0.0).round(),
            message: &event.message,
        });
        let answer = Answer {
            range: range.name(),
            step_s: range.step(),
            points: range.most(),
            peer,
            peers: &peers,
            series: series.collect(),
            events: events.collect(),
        };
        serde_json::to_string(&answer).unwrap_or_default()
    }
}

/// Four significant digits; nothing if the value is unknown.
fn rounded(value: f32) -> Option<f32> {
    if !value.is_finite() {
        return None;
    }
    if value == 0.0 {
        return Some(0.0);
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    let scale = 10_f64.powi(digits);
    Some(((f64::from(value) * scale).round() / scale) as f32)
}

#[derive(Serialize)]
struct Answer<'a> {
    range: &'static str,
    /// Seconds of a point.
    step_s: u64,
    /// The most points of a series.
    points: u32,
    peer: Option<&'a str>,
    peers: &'a [&'a str],
    series: Vec<Excerpt<'a>>,
    /// The newest first.
    events: Vec<EventExcerpt<'a>>,
}

#[derive(Serialize)]
struct Excerpt<'a> {
    #[serde(flatten)]
    subject: &'a Subject,
    /// The age of each point in steps.
    age: Vec<u32>,
    values: BTreeMap<&'static str, Vec<Option<f32>>>,
}

#[derive(Serialize)]
struct EventExcerpt<'a> {
    age_s: f64,
    message: &'a str,
}

#[cfg(test)]
mod tests;
