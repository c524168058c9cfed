//! The guard compares instructions per packet, events per packet and digests with the record.
//!
//! Time is never compared. Instruction counts are compared per compiler and target; events and
//! digests are the same for all.

use std::{collections::BTreeMap, fmt, fs, io, path::Path};

use serde::{Deserialize, Serialize};

use crate::{
    case::{Case, Kind, Span},
    child::Task,
    process::{self, Job},
};

/// An increase by more than this share is a failure.
const TOLERANCE: f64 = 0.02;

/// A case of the guard.
#[derive(Debug)]
pub struct Guarded {
    /// Name on record.
    pub name: &'static str,
    case: Case,
    span: Span,
    /// Largest increase, as a share of the record.
    tolerance: f64,
    /// Aim for the instructions per packet.
    aim: Option<Aim>,
}

#[derive(Debug, Clone, Copy)]
enum Aim {
    /// At most this number.
    Instructions(f64),
    /// At most this multiple of `plain/10`.
    TimesPlain(f64),
}

impl Guarded {
    const fn new(name: &'static str, kind: Kind, flows: u32, span: Span) -> Self {
        Self {
            name,
            case: Case::new(kind, flows),
            span,
            tolerance: TOLERANCE,
            aim: None,
        }
    }
    const fn aim(mut self, aim: Aim) -> Self {
        self.aim = Some(aim);
        self
    }
    const fn tolerance(mut self, tolerance: f64) -> Self {
        self.tolerance = tolerance;
        self
    }
}

/// Cases of the guard.
pub const fn cases() -> [Guarded; 7] {
    let span = Span::COUNTED;
    [
        Guarded::new("plain/10", Kind::Plain, 10, span).aim(Aim::Instructions(1_700.0)),
        Guarded::new("digest/10", Kind::Digest, 10, span).aim(Aim::Instructions(2_000.0)),
        Guarded::new("general/10", Kind::General, 10, span).tolerance(0.01),
        Guarded::new("linux/10", Kind::Linux, 10, span).aim(Aim::TimesPlain(1.15)),
        Guarded::new("plain/1000", Kind::Plain, 1_000, span).aim(Aim::Instructions(2_000.0)),
        Guarded::new("red-ecn-loss/100", Kind::RedEcnLoss, 100, span).tolerance(0.01),
        Guarded::new("recovery/10", Kind::Plain, 10, Span::RECOVERY)
            .aim(Aim::Instructions(4_000.0)),
    ]
}

/// Cases with the same packets: neither the digest nor the fast path changes results.
const SAME_DIGEST: [&str; 3] = ["plain/10", "digest/10", "general/10"];

/// The record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// Digests by case.
    pub digests: BTreeMap<String, String>,
    /// Events per packet by case.
    #[serde(default)]
    pub events_per_packet: BTreeMap<String, f64>,
    /// Instructions per packet by compiler and target, then by case.
    pub instructions_per_packet: BTreeMap<String, BTreeMap<String, f64>>,
}

/// The new measurement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// Digests by case.
    pub digests: BTreeMap<String, String>,
    /// Events per packet by case.
    pub events_per_packet: BTreeMap<String, f64>,
    /// Instructions per packet by case; empty where callgrind is missing.
    pub instructions_per_packet: BTreeMap<String, f64>,
    /// Cases without a result, with reasons.
    pub failed: BTreeMap<String, String>,
}

/// Result of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Equal to the record.
    Good(String),
    /// Not on record yet; it will be recorded.
    Unknown(String),
    /// Worse than the record.
    Bad(String),
}

/// Reasons why the guard has no record.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read or written.
    #[error("{file}: {source}")]
    File {
        /// The file.
        file: String,
        /// The reason.
        source: io::Error,
    },
    /// The file has an unknown format.
    #[error("{file}: {source}")]
    Format {
        /// The file.
        file: String,
        /// The error in its format.
        source: serde_json::Error,
    },
}

/// Figures of one case.
#[derive(Debug)]
pub struct Figures {
    digest: Option<String>,
    events_per_packet: f64,
    /// `None` where callgrind is missing.
    instructions_per_packet: Option<f64>,
}

impl Guarded {
    /// Measures the case; counts instructions if callgrind `counts`.
    pub fn figures(&self, counts: bool) -> Result<Figures, process::Error> {
        let (case, Span { settled, end }) = (&self.case, self.span);
        let count = |end| {
            if counts {
                Job::counting(case, end)
            } else {
                Job::new(case, Task::Count(end))
            }
        };
        let observe = Job::new(case, Task::Observe(end));
        let done: Result<Vec<_>, _> = Job::run_all(&[count(end), count(settled), observe])
            .into_iter()
            .collect();
        let [(long, more), (short, fewer), (observed, _)] = &done?[..] else {
            unreachable!("one result per job")
        };
        let packets = (long.packets - short.packets) as f64;
        Ok(Figures {
            digest: observed.digest.clone(),
            events_per_packet: (long.events - short.events) as f64 / packets,
            instructions_per_packet: counts.then(|| (more - fewer) as f64 / packets),
        })
    }
}

/// Measures cases. A failed one is named, and the others stay.
pub fn measure<E: fmt::Display>(
    cases: &[Guarded],
    mut figures: impl FnMut(&Guarded) -> Result<Figures, E>,
) -> Measured {
    let mut measured = Measured::default();
    // The comparison is far coarser than the last decimal.
    let rounded = |value: f64, steps: f64| (value * steps).round() / steps;
    for guarded in cases {
        let name = || guarded.name.to_owned();
        let figures = match figures(guarded) {
            Ok(figures) => figures,
            Err(error) => {
                measured.failed.insert(name(), error.to_string());
                continue;
            }
        };
        if let Some(digest) = figures.digest {
            measured.digests.insert(name(), digest);
        }
        let events = rounded(figures.events_per_packet, 10_000.0);
        measured.events_per_packet.insert(name(), events);
        if let Some(count) = figures.instructions_per_packet {
            let count = rounded(count, 100.0);
            measured.instructions_per_packet.insert(name(), count);
        }
    }
    measured
}

/// Compares, case by case.
pub fn compare(baseline: &Baseline, measured: &Measured, compiler: &str) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = measured
        .failed
        .iter()
        .map(|(case, reason)| Verdict::Bad(format!("{case}: {reason}")))
        .collect();
    for (case, digest) in &measured.digests {
        verdicts.push(match baseline.digests.get(case) {
            Some(known) if known == digest => Verdict::Good(format!("{case}: digest as on record")),
            Some(known) => Verdict::Bad(format!("{case}: digest {digest}, on record {known}")),
            None => Verdict::Unknown(format!("{case}: no digest on record")),
        });
    }
    let digests: Vec<&String> = SAME_DIGEST
        .iter()
        .filter_map(|&case| measured.digests.get(case))
        .collect();
    if digests.windows(2).any(|pair| pair[0] != pair[1]) {
        let cases = SAME_DIGEST.join(", ");
        verdicts.push(Verdict::Bad(format!("{cases}: digests differ")));
    }
    for guarded in cases() {
        let case = guarded.name;
        if let Some(&events) = measured.events_per_packet.get(case) {
            let before = baseline.events_per_packet.get(case).copied();
            let text = format!("{case}: {events:.2} events per packet");
            verdicts.push(judged(&text, events, before, guarded.tolerance, "", 2));
        }
        if let Some(&count) = measured.instructions_per_packet.get(case) {
            let known = baseline.instructions_per_packet.get(compiler);
            let before = known.and_then(|known| known.get(case)).copied();
            let plain = measured.instructions_per_packet.get("plain/10").copied();
            let aim = match guarded.aim {
                Some(Aim::Instructions(most)) => Some(most),
                Some(Aim::TimesPlain(times)) => plain.map(|plain| times * plain),
                None => None,
            };
            let aim = aim.map_or(String::new(), |aim| {
                let verdict = if count <= aim { "met" } else { "missed" };
                format!("; the aim of {aim:.0} is {verdict}")
            });
            let text = format!("{case}: {count:.0} instructions per packet");
            verdicts.push(judged(&text, count, before, guarded.tolerance, &aim, 0));
        }
    }
    verdicts
}

/// Judges a figure of which less is better.
fn judged(
    text: &str,
    now: f64,
    before: Option<f64>,
    tolerance: f64,
    aim: &str,
    decimals: usize,
) -> Verdict {
    let Some(before) = before else {
        return Verdict::Unknown(format!("{text}, nothing on record{aim}"));
    };
    let change = now / before - 1.0;
    let text = format!(
        "{text}, on record {before:.decimals$} ({:+.1} %){aim}",
        change * 100.0
    );
    if change > tolerance {
        Verdict::Bad(text)
    } else {
        Verdict::Good(text)
    }
}

impl Baseline {
    /// Reads the file; an absent one is an empty record.
    pub fn read(file: &Path) -> Result<Self, Error> {
        let name = || file.display().to_string();
        match fs::read_to_string(file) {
            Ok(text) => serde_json::from_str(&text).map_err(|source| Error::Format {
                file: name(),
                source,
            }),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(Error::File {
                file: name(),
                source,
            }),
        }
    }
    /// Writes the file by way of a temporary file.
    pub fn write(&self, file: &Path) -> Result<(), Error> {
        let error = |source| Error::File {
            file: file.display().to_string(),
            source,
        };
        let aside = file.with_extension("json.new");
        fs::write(&aside, self.text()).map_err(error)?;
        fs::rename(&aside, file).map_err(error)
    }
    /// Contents of the file.
    pub fn text(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("maps of strings and numbers");
        format!("{text}\n")
    }
    /// Records a measurement: all of it, or only entries that are not on record yet.
    pub fn take(&mut self, measured: &Measured, compiler: &str, replace: bool) {
        for (case, digest) in &measured.digests {
            put(&mut self.digests, case, digest.clone(), replace);
        }
        for (case, &events) in &measured.events_per_packet {
            put(&mut self.events_per_packet, case, events, replace);
        }
        if measured.instructions_per_packet.is_empty() {
            return;
        }
        let known = self
            .instructions_per_packet
            .entry(compiler.to_owned())
            .or_default();
        for (case, &count) in &measured.instructions_per_packet {
            put(known, case, count, replace);
        }
    }
}

fn put<T>(map: &mut BTreeMap<String, T>, key: &str, value: T, replace: bool) {
    if replace || !map.contains_key(key) {
        map.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPILER: &str = "rustc 1.88.0 x86_64-unknown-linux-gnu";

    /// Figures of `plain/10` and `general/10`.
    fn measured(digests: [&str; 2], counts: [f64; 2]) -> Measured {
        let names = ["plain/10", "general/10"].map(str::to_owned);
        Measured {
            digests: names
                .iter()
                .cloned()
                .zip(digests.map(str::to_owned))
                .collect(),
            events_per_packet: names.iter().cloned().zip([3.0, 12.0]).collect(),
            instructions_per_packet: names.into_iter().zip(counts).collect(),
            failed: BTreeMap::new(),
        }
    }

    fn on_record(digests: [&str; 2], counts: [f64; 2]) -> Baseline {
        let mut baseline = Baseline::default();
        baseline.take(&measured(digests, counts), COMPILER, false);
        baseline
    }

    fn bad(verdicts: &[Verdict]) -> usize {
        verdicts
            .iter()
            .filter(|verdict| matches!(verdict, Verdict::Bad(_)))
            .count()
    }

    #[test]
    fn a_rise_above_the_tolerance_is_bad_and_a_fall_is_not() {
        let baseline = on_record(["a", "a"], [1000.0, 2000.0]);
        // `general/10` may rise by 1 %, others by 2 %.
        for (counts, failures) in [
            ([1000.0, 2000.0], 0),
            ([1019.0, 2019.0], 0),
            ([1021.0, 2000.0], 1),
            ([1000.0, 2021.0], 1),
            ([500.0, 2100.0], 1),
        ] {
            let verdicts = compare(&baseline, &measured(["a", "a"], counts), COMPILER);
            assert_eq!(bad(&verdicts), failures, "{counts:?}: {verdicts:?}");
        }
    }

    #[test]
    fn more_events_are_bad_with_any_compiler() {
        let baseline = on_record(["a", "a"], [1000.0, 2000.0]);
        let mut now = measured(["a", "a"], [1000.0, 2000.0]);
        now.events_per_packet.insert("plain/10".to_owned(), 3.1);
        let verdicts = compare(&baseline, &now, "another");
        assert_eq!(bad(&verdicts), 1, "{verdicts:?}");
    }

    #[test]
    fn a_failed_case_is_named_and_the_others_are_compared() {
        let baseline = on_record(["a", "a"], [1000.0, 2000.0]);
        let mut now = measured(["a", "a"], [1000.0, 2000.0]);
        now.failed
            .insert("linux/10".to_owned(), "valgrind failed".to_owned());
        let verdicts = compare(&baseline, &now, COMPILER);
        assert_eq!(
            verdicts[0],
            Verdict::Bad("linux/10: valgrind failed".to_owned())
        );
        assert_eq!((bad(&verdicts), verdicts.len()), (1, 7), "{verdicts:?}");
    }

    #[test]
    fn a_failed_case_leaves_the_figures_of_the_others() {
        let measured = measure(&cases(), |guarded| {
            if guarded.name == "linux/10" {
                return Err("valgrind failed");
            }
            Ok(Figures {
                digest: Some("a".to_owned()),
                events_per_packet: 3.0,
                instructions_per_packet: Some(1000.0),
            })
        });
        assert_eq!(
            measured.failed,
            BTreeMap::from([("linux/10".to_owned(), "valgrind failed".to_owned())])
        );
        assert_eq!(measured.digests.len(), cases().len() - 1);
        assert_eq!(measured.instructions_per_packet.len(), cases().len() - 1);
    }

    #[test]
    fn a_missed_aim_is_reported_and_is_no_failure() {
        let baseline = on_record(["a", "a"], [1750.0, 2000.0]);
        for (count, verdict) in [(1750.0, "missed"), (1690.0, "met")] {
            let verdicts = compare(&baseline, &measured(["a", "a"], [count, 2000.0]), COMPILER);
            assert_eq!(bad(&verdicts), 0);
            let text = format!("the aim of 1700 is {verdict}");
            assert!(format!("{verdicts:?}").contains(&text), "{verdicts:?}");
        }
    }

    #[test]
    fn a_changed_digest_is_bad_with_any_compiler() {
        let baseline = on_record(["a", "a"], [1000.0, 2000.0]);
        let now = measured(["b", "b"], [1000.0, 2000.0]);
        let verdicts = compare(&baseline, &now, "another");
        assert_eq!(bad(&verdicts), 2, "{verdicts:?}");
        let now = measured(["a", "b"], [1.0, 1.0]);
        let verdicts = compare(&Baseline::default(), &now, COMPILER);
        assert_eq!(bad(&verdicts), 1, "the two paths must agree: {verdicts:?}");
    }

    #[test]
    fn an_unknown_compiler_is_recorded_and_nothing_else_changes() {
        let mut baseline = on_record(["a", "a"], [1000.0, 2000.0]);
        let now = measured(["b", "b"], [1100.0, 2100.0]);
        let verdicts = compare(&baseline, &now, "another");
        assert!(
            verdicts
                .iter()
                .any(|verdict| matches!(verdict, Verdict::Unknown(_)))
        );
        let before = baseline.clone();
        baseline.take(&now, "another", false);
        assert_eq!(baseline.digests, before.digests);
        assert_eq!(
            baseline.instructions_per_packet[COMPILER],
            before.instructions_per_packet[COMPILER]
        );
        assert_eq!(
            baseline.instructions_per_packet["another"],
            now.instructions_per_packet
        );
        baseline.take(&now, COMPILER, true);
        assert_eq!(baseline.digests, now.digests);
        assert_eq!(
            serde_json::from_str::<Baseline>(&baseline.text()).ok(),
            Some(baseline)
        );
    }
}
